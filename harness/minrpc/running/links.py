# SPDX-License-Identifier: Apache-2.0
"""The two ends of a link to a program that this process starts."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from minrpc.errors import EmulatorExitedError, HarnessError
from minrpc.host import sandbox
from minrpc.targets import Link
from minrpc.transport import FdTransport, SocketTransport, set_raw

if sys.platform != "win32":
    import termios


@dataclass
class LinkPair:
    """This process's end as a transport, and the device's end as a descriptor to be inherited.

    device_path: the device's end as a terminal's path; "" for a socket.
    """

    transport: FdTransport
    device_fd: int
    device_path: str

    def release_device_end(self) -> None:
        """Close this process's copy of the device's end, so that the link shows when the device is gone."""
        if self.device_fd >= 0:
            os.close(self.device_fd)
            self.device_fd = -1

    def close(self) -> None:
        """Close both ends."""
        self.release_device_end()
        self.transport.close()


def limit_reads(pty: FdTransport, tenths: int) -> None:
    """Let each read(2) of the device's end of `pty` return after so many tenths of a second, also without
    bytes."""
    attributes = termios.tcgetattr(pty.fileno())
    attributes[6][termios.VMIN], attributes[6][termios.VTIME] = 0, tenths
    termios.tcsetattr(pty.fileno(), termios.TCSANOW, attributes)


def open_pair(kind: Link) -> LinkPair:
    """A new link. This process holds both ends, so that nothing is lost before the device opens its own."""
    return _socket_pair() if kind == "socket" else _pty_pair()


@contextmanager
def pair_for_process(kind: Link) -> Iterator[LinkPair]:
    """A new link for a process that the block starts, which then alone has the device's end. An error in the
    block closes both ends."""
    pair = open_pair(kind)
    try:
        yield pair
    except BaseException:
        pair.close()
        raise
    pair.release_device_end()


def _pty_pair() -> LinkPair:
    try:
        master, slave = os.openpty()
    except OSError as error:
        raise HarnessError(
            f"no pseudo-terminal can be made: {error.strerror}",
            stage="open link",
            next_step='mount devpts on /dev/pts (`mount -t devpts devpts /dev/pts`), or use link="socket"',
        ) from error
    set_raw(slave)
    name = os.ttyname(slave)
    # A sandbox has no pseudo-terminals by name. A program that starts itself again loses its descriptors.
    path = f"/dev/fd/{slave}" if sandbox.is_up() else name
    return LinkPair(FdTransport(master, f"pty {name}"), slave, path)


def _socket_pair() -> LinkPair:
    ours, theirs = socket.socketpair()
    return LinkPair(SocketTransport(ours, "socket pair"), theirs.detach(), "")


@contextmanager
def starting(name: str, program: str) -> Iterator[None]:
    """Start `program`, which is or runs the device `name`. Raises EmulatorExitedError if it can't."""
    try:
        yield
    except OSError as error:
        raise EmulatorExitedError(f"{name} can't be started: {program}: {error.strerror}") from error
