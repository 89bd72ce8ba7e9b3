# SPDX-License-Identifier: Apache-2.0
"""QEMU's monitor: an answer belongs to its own command, and a refusal is an error."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from minrpc.errors import DeadlineError, MonitorError
from minrpc.host import Deadline
from minrpc.running.qemu_monitor import QemuMonitor

LIMIT_S = 10.0
GREETING = b"QEMU 7.2.0 monitor - type 'help' for more information\r\n(qemu) "


def answer(command: str, output: str = "") -> bytes:
    """QEMU echoes a command as its line grows, each time from its begin."""
    echo = "".join("\x1b[D" * length + command[: length + 1] + "\x1b[K" for length in range(len(command)))
    return f"{echo}\r\n{output}(qemu) ".encode()


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_the_answer_of_an_earlier_command_is_passed_over(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    asking: list[bool] = []

    @contextmanager
    def around() -> Iterator[None]:
        asking.append(True)
        yield
        asking.append(False)

    monitor = QemuMonitor(ours, around)
    theirs.sendall(GREETING + answer("info status", "VM status: paused (prelaunch)\r\n"))
    monitor.open(Deadline("open", LIMIT_S))
    assert monitor.ready
    monitor.send("cont")
    # A part of an answer, which comes too late for the first question.
    late = answer("info registers", "R00=00000001\r\nR01=00000002\r\n")
    theirs.sendall(answer("cont") + late[:-9])
    with pytest.raises(DeadlineError, match="QEMU's monitor"):
        monitor.ask("info registers", Deadline("ask", 0.01))
    theirs.sendall(late[-9:] + answer("info pic", "none\r\n"))
    assert monitor.ask("info pic", Deadline("ask", LIMIT_S)) == "none\r\n"
    assert asking == [True, False, True, True, False]
    assert theirs.recv(4096) == b"info status\ncont\ninfo registers\ninfo pic\n"


def test_a_refusal_is_an_error(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    monitor = QemuMonitor(ours)
    theirs.sendall(GREETING + answer("stop", "unknown command: 'stop'\r\n") + answer("stop"))
    with pytest.raises(MonitorError, match="QEMU refused stop: unknown command: 'stop'"):
        monitor.order("stop", Deadline("order", LIMIT_S))
    monitor.order("stop", Deadline("order", LIMIT_S))


def test_another_qemu_greets_again(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = socket.socketpair()
    first, second = QemuMonitor(ours), QemuMonitor(ends[0])
    first.send("quit")
    theirs.close()
    first.go_on(second)
    assert not first.ready
    ends[1].sendall(GREETING + answer("info status", "VM status: running\r\n"))
    assert first.ask("info status", Deadline("ask", LIMIT_S)) == "VM status: running\r\n"
