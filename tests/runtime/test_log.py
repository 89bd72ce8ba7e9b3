# SPDX-License-Identifier: Apache-2.0
"""Logs: their length, and their place: never between the bytes of another message."""

from __future__ import annotations

import pytest
from minrpc.wire.requests import CallFunc
from minrpc.wire.session_layer import MessageType

from tests.runtime.door import Door
from tests.runtime.host import LOG_MAX, Host


def logged(host: Host, text: bytes) -> int:
    """The result of a log."""
    return int(host.door.call("minrpc_server_log", host.server, host.door.memory(text), len(text)))


@pytest.mark.parametrize("size", [0, 1, 1022, 1023, 1024, 2046, 4000])
def test_long_logs_go_out_in_pieces_that_clients_survive(host: Host, size: int) -> None:
    """Clients survive no empty log and none over 1,023 bytes."""
    talk = host.function("talk")
    host.functions.log_size = size
    host.send(CallFunc(talk, ()))
    for at in range(0, size, LOG_MAX):
        assert len(host.take_log("x")) == min(size - at, LOG_MAX)
    assert host.take().kind == MessageType.NORMAL
    host.silent()


def test_a_log_in_mid_frame_is_refused_and_the_frame_is_whole(door: Door) -> None:
    """The port acts like a driver that prints from inside its write."""
    host = Host(door, send=4)
    tick = host.function("tick")
    plain = host.platform.write
    results: list[int] = []

    def write_and_log(context: int, data: int, size: int, *_: int) -> int:
        result = door.call(plain, context, data, size & 0xFFFFFFFF)
        results.append(logged(host, b"in between"))
        return int(result)

    host.platform.write = host.server.writer.write = door.callback(write_and_log)
    host.send(CallFunc(tick, ()))
    assert len(results) > 1
    # After the frame's last byte a log is none in between.
    assert set(results[:-1]) == {-1}
    assert host.take().kind == MessageType.NORMAL
    host.server.writer.write = plain
    host.messages().clear()
    assert host.serves()
    host.stop()


def test_a_log_of_which_a_piece_is_refused_has_failed(door: Door) -> None:
    """The link may refuse any of its pieces, even if it would take the next."""
    host = Host(door, send=4096)
    plain = host.platform.write
    left = [1 << 30]

    def write_until(context: int, data: int, size: int, *_: int) -> int:
        left[0] -= 1
        return -1 if left[0] == -1 else int(door.call(plain, context, data, size & 0xFFFFFFFF))

    host.platform.write = door.callback(write_until)
    for piece in range(3):
        left[0] = 1 << 30
        host.restart()
        left[0] = piece
        assert logged(host, b"x" * 3000) == -1
        assert logged(host, b"x" * 3000) == 0
    assert logged(host, b"") == 0
    host.stop()


def test_the_pieces_of_a_log_are_its_text(host: Host) -> None:
    text = bytes(ord("a") + i // 7 % 26 for i in range(2500))
    assert logged(host, text) == 0
    assert {message.kind for message in host.messages()} == {MessageType.LOG}
    assert b"".join(message.body for message in host.messages()) == text
