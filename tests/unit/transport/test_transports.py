# SPDX-License-Identifier: Apache-2.0
"""Guarantees of every transport, over real ptys and sockets."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from minrpc import DeadlineError, LinkClosedError
from minrpc.transport import (
    MAX_READ,
    FdTransport,
    SocketTransport,
    Transport,
    fd,
    memory_pair,
    open_terminal,
    set_raw,
)
from minrpc.transport.fd import _milliseconds

Pair = tuple[Transport, Transport]
ALL_BYTES = bytes(range(256)) * 4


def pty_pair() -> Pair:
    master, slave = os.openpty()
    set_raw(slave)
    return FdTransport(master, "pty, master"), FdTransport(slave, "pty, slave")


def reversed_pty_pair() -> Pair:
    host, device = pty_pair()
    return device, host


def socket_pair() -> Pair:
    host, device = socket.socketpair()
    return SocketTransport(host, "socket, host"), SocketTransport(device, "socket, device")


ALL = (pty_pair, reversed_pty_pair, socket_pair, memory_pair)


def over(*kinds: Callable[[], Pair]) -> pytest.MarkDecorator:
    """Run the test over these kinds of link only: the others lack a needed property."""
    return pytest.mark.parametrize("ends", kinds, indirect=True)


@pytest.fixture(params=ALL)
def ends(request: pytest.FixtureRequest) -> Iterator[Pair]:
    make: Callable[[], Pair] = request.param
    host, device = make()
    yield host, device
    host.close()
    device.close()


def read_exactly(link: Transport, size: int) -> bytes:
    received = b""
    while len(received) < size:
        data = link.read(30.0)
        assert data, f"{len(received)} of {size} bytes came"
        received += data
    return received


def test_all_byte_values_pass_both_ways(ends: Pair) -> None:
    for source, sink in (ends, ends[::-1]):
        source.write(ALL_BYTES, 10.0)
        assert read_exactly(sink, len(ALL_BYTES)) == ALL_BYTES


def test_a_raw_terminal_passes_everything_on() -> None:
    near, far = os.openpty()
    set_raw(far)
    iflag, oflag, _, lflag, *_ = termios.tcgetattr(far)
    os.close(near)
    os.close(far)
    assert (iflag, oflag, lflag) == (0, 0, 0)


def test_read_returns_nothing_when_nothing_came(ends: Pair) -> None:
    assert ends[0].read(0.0) == b""
    assert ends[0].read(0.001) == b""


# When a pty's master is closed, the kernel drops bytes that its slave has not read.
@over(pty_pair, socket_pair, memory_pair)
def test_what_arrived_before_the_end_is_read_then_the_end_shows(ends: Pair) -> None:
    host, device = ends
    device.write(b"last words", 10.0)
    device.close()
    assert read_exactly(host, 10) == b"last words"
    with pytest.raises(LinkClosedError, match="far end"):
        host.read(30.0)


# A pty's master may write before a program opens its slave.
@over(reversed_pty_pair, socket_pair, memory_pair)
def test_writing_to_nobody_is_an_error(ends: Pair) -> None:
    host, device = ends
    device.close()
    with pytest.raises(LinkClosedError):
        host.write(b"x", 1.0)


def test_a_closed_link_says_so(ends: Pair) -> None:
    host, _ = ends
    host.close()
    host.close()
    with pytest.raises(LinkClosedError):
        host.read(1.0)
    with pytest.raises(LinkClosedError):
        host.write(b"x", 1.0)


def test_a_full_link_times_out_and_says_what_went_out(ends: Pair) -> None:
    host, device = ends
    data = bytes(8 << 20)
    with pytest.raises(DeadlineError) as caught:
        host.write(data, 0.0)
    written = caught.value.written
    assert 0 < written < len(data)
    assert read_exactly(device, written) == bytes(written)


# A memory link gets the room that a test needs.
@over(pty_pair, reversed_pty_pair, socket_pair)
def test_two_that_write_first_and_read_later_do_not_block(ends: Pair) -> None:
    """Each side fills the other's buffers many times before it reads a byte; both copies must go on."""
    data = {0: os.urandom(1 << 20), 1: os.urandom(1 << 20)}
    received: dict[int, bytes] = {}

    def talk(index: int, link: Transport) -> None:
        link.write(data[index], 60.0)
        received[index] = read_exactly(link, 1 << 20)

    threads = [threading.Thread(target=talk, args=(index, link)) for index, link in enumerate(ends)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert received == {0: data[1], 1: data[0]}


def test_a_read_is_bounded(ends: Pair) -> None:
    host, device = ends
    with pytest.raises(DeadlineError):
        device.write(bytes(4 << 20), 0.0)
    assert 0 < len(host.read(10.0)) <= MAX_READ


def test_what_a_long_read_leaves_is_read_next() -> None:
    host, device = socket_pair()
    sent = os.urandom(MAX_READ + 5000)
    device.write(sent, 10.0)
    assert host.read(60.0) == sent[:MAX_READ]
    assert host.read(60.0) == sent[MAX_READ:]
    assert host.read(0.02) == b""
    host.close()
    device.close()


class Waits:
    """Replaces epoll(7) and poll(2): no event comes. Keeps the time-outs in seconds."""

    def __init__(self) -> None:
        self.news: list[float] = []
        self.readable: list[float] = []
        self.link, self.far = socket_pair()
        assert isinstance(self.link, FdTransport)
        self.link._news = self._recorder(self.news, 1)  # type: ignore[assignment]
        self.link._readable = self._recorder(self.readable, 1000)  # type: ignore[assignment]

    @staticmethod
    def _recorder(waits: list[float], per_s: int) -> object:
        def poll(wait: float, *_: int) -> list[tuple[int, int]]:
            waits.append(wait / per_s)
            return []

        return SimpleNamespace(poll=poll, close=lambda: None)

    def close(self) -> None:
        self.link.close()
        self.far.close()


@pytest.mark.skipif(sys.platform != "linux", reason="epoll(7) is Linux's")
def test_a_read_waits_no_longer_than_it_is_told() -> None:
    waits = Waits()
    for timeout_s in (0.0, 0.001, 0.01, 0.05, 60.0):
        waits.news.clear()
        waits.readable.clear()
        assert waits.link.read(timeout_s) == b""
        assert sum(waits.news) + sum(waits.readable) == pytest.approx(timeout_s)
        assert len(waits.readable) == 1
    waits.close()


@pytest.mark.skipif(sys.platform != "linux", reason="epoll(7) is Linux's")
def test_behind_a_long_read_no_news_are_waited_for() -> None:
    """A long read may have left bytes, for which no event comes."""
    waits = Waits()
    waits.far.write(bytes(3000), 1.0)
    waits.link._readable = SimpleNamespace(poll=lambda _: [(0, 1)])  # type: ignore[attr-defined]
    assert len(waits.link.read(60.0)) == 3000
    waits.news.clear()
    waits.far.write(b"short", 1.0)
    assert waits.link.read(60.0) == b"short"
    assert waits.news == []
    waits.far.write(b"next", 1.0)
    assert waits.link.read(60.0) == b"next"
    assert len(waits.news) == 1
    waits.close()


@over(pty_pair, reversed_pty_pair, socket_pair, memory_pair)
def test_the_end_shows_at_each_read(ends: Pair) -> None:
    host, device = ends
    device.close()
    for _ in range(3):
        with pytest.raises(LinkClosedError, match="far end"):
            host.read(30.0)


def test_a_link_leaves_no_descriptor_behind() -> None:
    before = os.listdir("/proc/self/fd")
    for link in socket_pair():
        link.close()
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_small_message_is_one_system_call(monkeypatch: pytest.MonkeyPatch) -> None:
    host, device = pty_pair()
    calls: list[int] = []
    write = os.write

    def counted(fd: int, data: bytes) -> int:
        calls.append(len(data))
        return write(fd, data)

    monkeypatch.setattr("minrpc.transport.fd.os.write", counted)
    host.write(b"request", 1.0)
    assert calls == [7]
    assert device.read(10.0) == b"request"
    host.close()
    device.close()


def test_the_far_end_hangs_up_in_mid_write() -> None:
    host, device = socket_pair()
    writing = threading.Event()

    def hang_up() -> None:
        writing.wait(30.0)
        device.read(30.0)
        device.close()

    thread = threading.Thread(target=hang_up)
    thread.start()
    writing.set()
    with pytest.raises(LinkClosedError):
        host.write(bytes(64 << 20), 60.0)
    thread.join()
    host.close()


def test_open_terminal_makes_it_raw() -> None:
    master, slave = os.openpty()
    link = open_terminal(os.ttyname(slave))
    os.close(slave)
    os.write(master, b"\x03\r\n\x04\x11\x13\xff")
    assert link.read(10.0) == b"\x03\r\n\x04\x11\x13\xff"
    link.write(b"\n", 1.0)
    assert os.read(master, 10) == b"\n"
    link.close()
    os.close(master)


def test_open_terminal_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LinkClosedError, match="No such file"):
        open_terminal(tmp_path / "ttyACM0")


def test_a_file_is_no_terminal(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    with pytest.raises(LinkClosedError, match="not a terminal"):
        open_terminal(tmp_path / "plain")


def test_connect_to_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "link"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        link = SocketTransport.connect(path, 10.0)
        connection, _ = server.accept()
    with connection:
        link.write(b"hello", 1.0)
        assert connection.recv(5) == b"hello"
    with pytest.raises(LinkClosedError):
        link.read(10.0)
    link.close()
    with pytest.raises(LinkClosedError, match="refused"):
        SocketTransport.connect(path, 1.0)


def test_what_is_kept_while_we_write_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A far end that reads nothing and sends without end can't use up all memory."""
    monkeypatch.setattr(fd, "_MAX_KEPT", 100_000)
    ours, theirs = socket.socketpair()
    link, far = SocketTransport(ours, "ours"), SocketTransport(theirs, "theirs")
    babbled = 0
    for _ in range(50):
        with contextlib.suppress(DeadlineError):
            link.write(bytes(1 << 20), 0.0)
        try:
            far.write(bytes(1 << 20), 0.0)
        except DeadlineError as error:
            babbled += error.written
    kept = 0
    while data := link.read(0.0):
        kept += len(data)
    assert kept == babbled
    assert babbled < 100_000 + MAX_READ + (1 << 20)
    link.close()
    far.close()


@over(pty_pair)
def test_what_is_kept_while_it_writes_has_a_limit_and_is_counted_down(
    ends: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the limit it stops reading: further bytes stay in the kernel until some have been taken."""
    host, _ = ends
    assert isinstance(host, FdTransport)
    monkeypatch.setattr(fd, "_MAX_KEPT", 100)
    listening: list[str] = []

    class Poll:
        def __init__(self, name: str) -> None:
            self.name = name

        def poll(self, _milliseconds: int) -> list[tuple[int, int]]:
            listening.append(self.name)
            return []

    for name in ("_both", "_writable"):
        monkeypatch.setattr(host, name, Poll(name))
    for data in (b"x" * 60, b"y" * 39, b"z"):
        host._wait_for_room(0.0)
        host._keep(data)
    host._wait_for_room(0.0)
    assert host.read(0.0) == b"x" * 60
    host._wait_for_room(0.0)
    assert host.read(0.0) + host.read(0.0) == b"y" * 39 + b"z"
    assert host._kept_bytes == 0
    assert listening == ["_both"] * 3 + ["_writable", "_both"]


def test_a_limit_without_end_waits_as_long_as_poll_can() -> None:
    assert _milliseconds(float("inf")) == _milliseconds(1e300) == 2**31 - 1
    assert (_milliseconds(0.0001), _milliseconds(0)) == (1, 0)
