# SPDX-License-Identifier: Apache-2.0
"""A running device under gdb: by QEMU's gdb server, as a process, or by the server of a board's probe."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from minrpc.errors import ConfigurationError, HarnessError
from minrpc.host.deadline import Deadline
from minrpc.host.sandbox import program_of
from minrpc.running.qemu_monitor import QemuMonitor
from minrpc.running.running_device import RunningDevice

_ANSWER_S: Final = 10.0
# Packets of gdb's remote protocol, "detach process 1" and "OK"; gdb's manual, appendix E.
_DETACH: Final = b"$D;1#b0"
_OK: Final = b"$OK#9a"


class GdbServer(NamedTuple):
    """attach: gdb's command that stops the device and takes it over.

    release: lets the device run on without breakpoints, once gdb has ended, in whatever way; for any thread.
    """

    attach: str
    release: Callable[[], None]


@contextmanager
def gdb_server(running: RunningDevice, directory: Path, board: str | None) -> Iterator[GdbServer]:
    """For the block: a way for gdb to the device.

    directory: an own one, for a socket. board: HOST:PORT of the gdb server of a board's probe.
    Raises ConfigurationError for a board without `board` and for `board` without one, HarnessError if QEMU
    can't open its server.
    """
    if board is not None and (running.qemu is not None or running.process is not None):
        message = f"a gdb server (--gdb-server) is for a board: {running.name} is started here"
        raise ConfigurationError(message, next_step="leave it out")
    if running.qemu is not None:
        with _by_qemu(running.qemu, running, directory / "gdb") as server:
            yield server
    elif running.process is not None and running.platform.starts != "process":
        raise ConfigurationError(f"{running.name}: gdb can't reach it", next_step="take QEMU or posix")
    elif running.process is not None:
        pid = program_of(running.process)
        yield GdbServer(f"attach {pid}", partial(_go_on, pid))
    elif board is not None:
        yield GdbServer(f"target extended-remote {board}", _nothing)
    else:
        step = "start OpenOCD, pyOCD or probe-rs, and name its gdb server: --gdb-server localhost:3333"
        raise ConfigurationError(f"{running.name} is a board: gdb reaches it by its probe", next_step=step)


@contextmanager
def _by_qemu(qemu: QemuMonitor, running: RunningDevice, path: Path) -> Iterator[GdbServer]:
    deadline = Deadline("open QEMU's gdb server", _ANSWER_S, running.clock)
    answer = qemu.ask(f"gdbserver unix:{path},server=on,wait=off", deadline)
    if not path.exists():
        raise HarnessError(f"QEMU opens no gdb server: {answer.strip()}")
    try:
        yield GdbServer(f"target remote {path}", partial(_detach, path))
    finally:
        if running.alive():
            qemu.ask("gdbserver none", Deadline("close QEMU's gdb server", _ANSWER_S, running.clock))


def _detach(path: Path) -> None:
    """End the session of a gdb that has ended: QEMU keeps breakpoints of one that was killed."""
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.settimeout(_ANSWER_S)
            server.connect(str(path))
            server.sendall(_DETACH)
            received = b""
            while _OK not in received:
                data = server.recv(1024)
                if not data:
                    return
                received += data
        except OSError:
            return  # QEMU has ended.


def _go_on(pid: int) -> None:
    """The kernel detaches a gdb that was killed, and leaves the process stopped."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def _nothing() -> None:
    """A probe's server is its owner's."""
