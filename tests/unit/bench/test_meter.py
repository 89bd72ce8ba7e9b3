# SPDX-License-Identifier: Apache-2.0
"""Counting bytes on the wire, and answering a call again."""

from __future__ import annotations

import pytest
from minrpc import PLATFORMS, Target, build, connect, lacking, start
from minrpc.transport import memory_pair
from minrpc_bench.meter import MeteredTransport, Traffic
from minrpc_bench.round_trip import calls_of, own_cpu_s


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
    missing = lacking(PLATFORMS["posix"])
    if missing:
        pytest.skip(f"posix lacks {', '.join(item.name for item in missing)}")
    with start(build(Target.named("posix"))) as running:
        meter = MeteredTransport(running.transport)
        with connect(running, transport=meter, direct=False) as device:
            for call in calls_of(device).values():
                call()
                assert meter.during(lambda: own_cpu_s(meter, call, 20, 2)) == Traffic()  # noqa: B023
                assert min(meter.during(call)) > 0
