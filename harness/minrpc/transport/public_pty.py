# SPDX-License-Identifier: Apache-2.0
"""A pseudo-terminal that other programs open like a serial port, one after another.

The harness keeps no descriptor of the slave, so the master reads a hang-up exactly while no program has the
slave open. poll(2) can't wait for that state: it reports a hang-up at once, and never its end. So inotify(7),
which works on /dev/pts, reports when the slave is opened or closed.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import select
import socket
import termios
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final, Self

from minrpc.errors import ConfigurationError
from minrpc.transport.fd import set_raw

_IN_CLOSE_WRITE: Final = 0x8
_IN_CLOSE_NOWRITE: Final = 0x10
_IN_OPEN: Final = 0x20
_EVENTS_SIZE: Final = 4096
_TERMINALS: Final = "/dev/pts/"
# struct inotify_event: watch, mask, cookie, length of the name that follows.
_EVENT: Final = Struct("iIII")
_libc = ctypes.CDLL(None, use_errno=True)


class PublicPty:
    """The master's end, non-blocking, and news of the slave.

    path: of the slave.
    master: descriptor that carries the bytes.
    news: descriptor that is readable after a program opened or closed the slave.
    """

    def __init__(self) -> None:
        self.master, slave = os.openpty()
        try:
            self.path = os.ttyname(slave)
            set_raw(slave)
            self.news = _watch(self.path)
        except BaseException:
            os.close(self.master)
            raise
        finally:
            os.close(slave)
        os.set_blocking(self.master, False)
        self._openers = 0
        self._hang_up = select.poll()
        self._hang_up.register(self.master, 0)

    def is_open(self) -> bool:
        """True while a program has the slave open."""
        return not self._hang_up.poll(0)

    def read_news(self) -> bool:
        """Take the events of `news`; `is_open` has the result.

        True if the slave was closed by all programs in the meantime; it may be open again.
        """
        try:
            events = os.read(self.news, _EVENTS_SIZE)
        except BlockingIOError:
            return False
        left = False
        for mask in _masks(events):
            self._openers = max(0, self._openers + (1 if mask & _IN_OPEN else -1))
            left |= self._openers == 0
        if not self.is_open():  # The kernel merges two equal events in a row.
            self._openers = 0
        return left

    def clean(self) -> None:
        """Drop the unread bytes of a client that left, and undo its settings.

        The master's attributes are the slave's, and setting them can flush bytes that the slave has not read.
        So the slave is not opened, which would look like a client.
        """
        termios.tcflush(self.master, termios.TCOFLUSH)
        set_raw(self.master, termios.TCSAFLUSH)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the pseudo-terminal; a client that has it open reads an end of file."""
        os.close(self.news)
        os.close(self.master)


def _masks(events: bytes) -> Iterator[int]:
    """The mask of each of these inotify events."""
    position = 0
    while position < len(events):
        _, mask, _, name = _EVENT.unpack_from(events, position)
        yield mask
        position += _EVENT.size + name


def _watch(path: str) -> int:
    """An inotify descriptor for opening and closing `path`."""
    descriptor: int = _libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    mask = _IN_OPEN | _IN_CLOSE_WRITE | _IN_CLOSE_NOWRITE
    if _libc.inotify_add_watch(descriptor, os.fsencode(path), mask) < 0:
        os.close(descriptor)
        raise OSError(ctypes.get_errno(), "inotify_add_watch", path)
    return descriptor


class PublishedLink:
    """A symbolic link at `path` to `target`, removed at the end unless it leads elsewhere then.

    A link that a killed process left is replaced, even if another program has that terminal now: the
    publisher of a link holds a socket of the link's name, which the kernel closes. Raises ConfigurationError
    if anything else has that path.
    """

    def __init__(self, path: Path, target: str) -> None:
        self.path = path
        self._target = target
        self._claim = _claim(path)
        try:
            if path.is_symlink() and (not path.exists() or os.readlink(path).startswith(_TERMINALS)):
                path.unlink()
            path.symlink_to(target)
        except OSError as error:
            self._claim.close()
            step = "remove it, or give another path" if error.errno == errno.EEXIST else "give another path"
            message = f"no link can be made at {path}: {error.strerror}"
            raise ConfigurationError(message, stage="publish link", next_step=step) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.path.is_symlink() and os.readlink(self.path) == self._target:
            self.path.unlink()
        self._claim.close()


def _claim(path: Path) -> socket.socket:
    """An abstract socket of the link's name; one process at a time can have it. Raises
    ConfigurationError."""
    name = hashlib.sha256(os.fsencode(path.parent.resolve() / path.name)).hexdigest()
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0minrpc-link-{name}")
    except OSError as error:
        claim.close()
        raise ConfigurationError(
            f"no link can be made at {path}: another process serves it",
            stage="publish link",
            next_step="end that, or give another path",
        ) from error
    return claim
