# SPDX-License-Identifier: Apache-2.0
"""Rows of devices and their baseline, the raw firmware with the host's side. On a process and in QEMU."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest
from minrpc import PLATFORMS, HarnessError, RunningDevice, connect, start
from minrpc.host import Deadline, read_before
from minrpc.transport import memory_pair
from minrpc_bench import counted, peers, service, times
from minrpc_bench.peers import (
    RAW_OPTIONS,
    MeteredTransport,
    Peers,
    Raw,
    Traffic,
    command,
    expect_ready,
    on_one_cpu,
    running_raw,
)

from tests.native import built

PATIENCE_S = 120.0
EVERY_BYTE = bytes(range(256))


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.slow) for name in ("posix", "bare_mps2_an385")],
)
def raw(request: pytest.FixtureRequest) -> Iterator[Raw]:
    with running_raw(built(request.param, *RAW_OPTIONS)) as started:
        yield started


@pytest.fixture(scope="module")
def server() -> Iterator[RunningDevice]:
    with start(built("posix")) as running:
        yield running


def answer(running: RunningDevice, size: int) -> bytes:
    deadline = Deadline("raw", PATIENCE_S)
    came = b""
    while len(came) < size:
        came += read_before(running.transport, deadline, "the raw firmware's answer")
    return came


@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_commands_follow_each_other_however_they_are_cut(raw: Raw, piece: int) -> None:
    sent = (
        (command("e", 256) + EVERY_BYTE)
        + (command("s", 256) + EVERY_BYTE)
        + command("g", 3)
        + (command("e", 1) + b"z")
    )
    expected = EVERY_BYTE + b"!" + bytes(3) + b"z"
    for at in range(0, len(sent), piece):
        raw.running.transport.write(sent[at : at + piece], PATIENCE_S)
    assert answer(raw.running, len(expected)) == expected


def test_nothing_is_a_count_too_and_other_letters_are_none(raw: Raw) -> None:
    for letter in "egxs":
        raw.running.transport.write(command(letter, 0), PATIENCE_S)
    raw.running.transport.write(command("x", 9) + command("e", 1) + b"z", PATIENCE_S)
    assert answer(raw.running, 2) == b"!z"


def test_streams_leave_nothing_on_the_link(raw: Raw) -> None:
    data = EVERY_BYTE * 20
    for stream in (raw.takes(data), raw.gives(len(data))):
        stream()
        stream()
    raw.running.transport.write(command("e", 2) + b"ok", PATIENCE_S)
    assert answer(raw.running, 2) == b"ok"


@pytest.mark.slow
def test_an_endless_echo_is_for_pings() -> None:
    with running_raw(built("posix", *RAW_OPTIONS)) as raw:
        raw.echo_all()
        for data in (b"x", command("g", 1000), EVERY_BYTE):
            raw.pings(data)()
        raw.__exit__()
        raw.running.transport.write(command("e", 1), PATIENCE_S)
        assert answer(raw.running, 5) == command("e", 1)


def test_a_link_that_stops_is_named(server: RunningDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_STALL_MS", 1)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(b"xy")
        with pytest.raises(HarnessError, match="stopped with 3 of 5 bytes to come, 0 to go"):
            Raw(ours.fileno(), server).gives(5)()
        monkeypatch.setattr(peers, "_PINGS_S", 1)
        with (
            pytest.raises(HarnessError, match="of posix stopped: bytes of an echo are lost"),
            Raw(ours.fileno(), server) as raw,
        ):
            raw.pings(b"abc")()


def test_another_firmware_is_not_taken_for_the_raw_one(server: RunningDevice) -> None:
    with pytest.raises(HarnessError, match="posix began with"):
        expect_ready(server)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_one_cpu_is_for_all_threads(raw: Raw) -> None:
    allowed = os.sched_getaffinity(0)
    assert raw.running.process is not None
    with on_one_cpu(raw.running):
        mine = os.sched_getaffinity(0)
        threads = os.listdir(f"/proc/{raw.running.process.pid}/task")
        assert [os.sched_getaffinity(int(thread)) for thread in threads] == [mine] * len(threads)
    assert len(mine) == 1
    assert os.sched_getaffinity(0) == allowed


@pytest.mark.parametrize("platform", ["posix", "bare_mps2_an385"])
def test_the_name_of_a_copy_tells_its_size(platform: str) -> None:
    with start(built("posix")) as running:
        meter = MeteredTransport(running.transport)
        with connect(running, transport=meter, direct=False) as device:
            up, back = times.copies_of(device, PLATFORMS[platform])
            for copy in (up, back):
                rows, columns = map(int, copy.name.partition(" ")[0].split("x"))
                assert copy.nbytes == rows * columns
            up.run()  # the session asks the device for its limits
            assert 1 < meter.during(up.run).sent / up.nbytes < 1.02
            assert 1 < meter.during(back.run).received / back.nbytes < 1.02


@pytest.mark.slow
def test_rows_of_copies() -> None:
    rows = times.copy(Peers(built("posix"), built("posix", *RAW_OPTIONS)), rounds=1)
    assert [row.name for row in rows] == ["512x512 int8 to the device", "512x512 int8 back"]
    assert all(row.unit == "MiB/s" and row.goal and row.ratio and row.ratio > 0 for row in rows)


@pytest.mark.slow
def test_rows_of_starts() -> None:
    boot, boot_cpu, opened, opened_cpu = times.starts(
        Peers(built("posix"), built("posix", *RAW_OPTIONS)), rounds=1
    )
    assert (opened.unit, opened.goal and opened.goal.limit) == ("us", 3000.0)
    assert {row.goal for row in (boot, boot_cpu, opened_cpu)} == {None}
    assert all(row.value > 0 for row in (boot, boot_cpu, opened, opened_cpu))
    assert os.sched_getaffinity(0) == os.sched_getaffinity(os.getppid())


@pytest.mark.slow
def test_rows_of_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "_LOADS", 2)
    firmware = built("posix")
    *calls, a_minute = times.loads(Peers(firmware, firmware), rounds=1)
    assert len(calls) == 4
    assert all(row.ratio and row.ratio > 0 for row in calls)
    assert [row.name for row in calls if not row.goal] == ["the same over the link alone, as on a board"]
    assert (a_minute.unit, a_minute.baseline) == ("1/min", None)


def test_both_directions_are_counted_for_each_action() -> None:
    host, device = memory_pair()
    meter = MeteredTransport(host)
    device.write(b"early", 1.0)
    meter.read(1.0)

    def action() -> None:
        meter.write(b"request", 1.0)
        meter.write(b"12", 1.0)
        device.write(b"reply", 1.0)
        meter.read(1.0)

    assert meter.during(action) == Traffic(sent=9, received=5)
    assert meter.during(lambda: None) == Traffic()
    assert device.read(1.0) == b"request12"
    meter.close()


def test_a_replayed_call_gives_the_answer_again_and_sends_nothing() -> None:
    host, device = memory_pair()
    transport = MeteredTransport(host)
    transport.write(b"call", 1.0)
    for part in (b"ans", b"wer"):
        device.write(part, 1.0)
        assert transport.read(1.0) == part
    transport.replays = True
    for _ in range(3):
        transport.write(b"call", 1.0)
        assert [transport.read(0.0) for _ in range(4)] == [b"ans", b"wer", b"", b""]
    transport.replays = False
    assert device.read(0.0) == b"call"
    assert device.read(0.0) == b""
    transport.close()


@pytest.mark.slow
def test_a_call_is_measured_without_its_device() -> None:
    with start(built("posix")) as running:
        meter = MeteredTransport(running.transport)
        with connect(running, transport=meter, direct=False) as device:
            for call in times.calls_of(device).values():
                call()
                assert meter.during(lambda: times.own_cpu_s(meter, call, 20, 2)) == Traffic()  # noqa: B023
                assert min(meter.during(call)) > 0


@pytest.mark.slow
def test_a_call_and_a_byte_have_rows() -> None:
    """Counts vary: on a busy host the device sleeps between bytes, and waking up is counted."""
    firmware = built("bare_mps2_an385")
    index, to_device, back = counted.instructions(Peers(firmware, firmware))
    assert index.name == "a call of inc"
    assert index.value > 1000
    assert "minrpc_reader_feed" in index.note
    assert 1 < to_device.value < 1000
    assert 1 < back.value < 1000


def test_a_process_has_no_such_rows() -> None:
    firmware = built("posix")
    assert counted.instructions(Peers(firmware, firmware)) == []


@pytest.mark.slow
def test_a_good_client_is_compared_with_one_that_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_GOOD", 2)
    monkeypatch.setattr(service, "_BAD", 5)
    firmware = built("posix")
    row = service._crowd(Peers(firmware, firmware), 1)
    assert row.ratio == pytest.approx(row.value / row.baseline)  # type: ignore[operator]
    assert row.value > 0
    monkeypatch.setattr(service, "_SOURCE", b"#error %d\n")
    with pytest.raises(HarnessError, match="does not compile"):
        service._crowd(Peers(firmware, firmware), 1)
