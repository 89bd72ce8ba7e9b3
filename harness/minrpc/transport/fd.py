# SPDX-License-Identifier: Apache-2.0
"""Transports over a file descriptor: pseudo-terminals, terminals and Unix sockets.

One `write` is one system call where the far end has room, one `read` is a wait and a read.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from math import ceil
from pathlib import Path

from minrpc.errors import DeadlineError, LinkClosedError
from minrpc.transport.base import MAX_READ

# Most bytes that are kept while the far end reads nothing: a device that sends without end can't use up the
# host's memory.
_MAX_KEPT = 64 * 1024 * 1024
# Seconds for which only new arrivals are waited for; after a read of _LONG bytes they are not, since
# bytes may be left.
_NEWS_S = 0.01
_LONG = 2048
# The far end of a socket has closed it; poll(2) reports a hang-up, of terminals, unasked.
_RDHUP = getattr(select, "POLLRDHUP", 0)

if sys.platform != "win32":
    import termios

_GONE = frozenset({errno.EIO, errno.EPIPE, errno.ECONNRESET, errno.ENXIO, errno.ENODEV, errno.EBADF})


def set_raw(fd: int, when: int | None = None) -> None:
    """Make the terminal carry all 256 byte values unchanged both ways: no echo, signals or flow control.

    when: as tcsetattr(3) has it; TCSAFLUSH also drops unread bytes.
    """
    attributes = termios.tcgetattr(fd)
    iflag, oflag, cflag, lflag = range(4)
    attributes[iflag] = 0
    attributes[oflag] = 0
    attributes[lflag] = 0
    attributes[cflag] &= ~(termios.CSIZE | termios.PARENB | termios.CSTOPB | termios.HUPCL | termios.CRTSCTS)
    attributes[cflag] |= termios.CS8 | termios.CREAD | termios.CLOCAL
    attributes[6][termios.VMIN] = 1
    attributes[6][termios.VTIME] = 0
    termios.tcsetattr(fd, termios.TCSANOW if when is None else when, attributes)


def _milliseconds(seconds: float) -> int:
    """The time in milliseconds for poll(2), rounded up so that a short wait does not become a busy wait."""
    return ceil(min(seconds * 1000, 2**31 - 1)) if seconds > 0 else 0


def _edge_triggered(fd: int) -> select.epoll | None:
    """An epoll(7) that reports each arrival at `fd` once; None where there is no epoll."""
    if sys.platform != "linux":
        return None
    news = select.epoll()
    news.register(fd, select.EPOLLIN | select.EPOLLET)
    return news


class FdTransport:
    """A link over a descriptor that it owns from now on; a terminal must be raw already (`set_raw`).

    close: called instead of os.close after the descriptor's use, for owners that close it themselves.
    gone: the class of error raised when the far end is gone.
    """

    def __init__(
        self,
        fd: int,
        name: str,
        *,
        close: Callable[[], None] | None = None,
        gone: type[LinkClosedError] = LinkClosedError,
    ) -> None:
        self.name = name
        self._fd = fd
        self._close = close or (lambda: os.close(fd))
        self._gone = gone
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0
        self._open = True
        os.set_blocking(fd, False)
        self._streams = False
        self._news = _edge_triggered(fd)
        self._readable = select.poll()
        self._readable.register(fd, select.POLLIN)
        self._both = select.poll()
        self._both.register(fd, select.POLLIN | select.POLLOUT)
        self._writable = select.poll()
        self._writable.register(fd, select.POLLOUT)

    def fileno(self) -> int:
        """The descriptor, for select and friends."""
        return self._fd

    def write(self, data: bytes, timeout_s: float) -> None:
        """Write all of `data`; see `Transport.write`."""
        try:
            written = os.write(self._fd, data)
        except OSError:
            written = self._write_some(data)
        if written < len(data):
            self._write_rest(memoryview(data)[written:], timeout_s, len(data))

    def write_now(self, data: bytes) -> int:
        """Writes without waiting, and returns how many bytes fitted. Raises as `write` does."""
        return self._write_some(data)

    def read(self, timeout_s: float) -> bytes:
        """The bytes that have arrived; see `Transport.read`."""
        if self._kept:
            return self._take_kept()
        if not self._open:
            self._check_open()
        if not self._comes(timeout_s):
            return b""
        try:
            data = os.read(self._fd, MAX_READ)
        except OSError:
            return self._read_some()
        self._streams = len(data) >= _LONG
        return data or self._read_some()

    def go_on(self, other: FdTransport) -> None:
        """Go on over the link of `other`, which is closed; bytes of the present link are dropped."""
        os.dup2(other.fileno(), self._fd, inheritable=False)
        other.close()
        self.name, self._streams = other.name, False
        self._kept.clear()
        self._kept_bytes = 0
        if self._news is not None:
            self._news.register(self._fd, select.EPOLLIN | select.EPOLLET)

    def is_gone(self) -> bool:
        """True if the far end is gone; reads nothing."""
        gone = select.poll()
        gone.register(self._fd, _RDHUP)
        return bool(gone.poll(0))

    def close(self) -> None:
        """Close the descriptor."""
        if self._open:
            self._open = False
            self._fd = -1
            if self._news is not None:
                self._news.close()
            self._close()

    def _comes(self, timeout_s: float) -> bool:
        """Waits until bytes have arrived, or the link has ended.

        poll(2) asks a terminal whether bytes are there before it waits, and the kernel then waits for its
        driver's worker, which takes longer than a read. So this waits for new arrivals first. In a stream the
        worker's delay is useful, since the worker collects bytes.
        """
        if self._news is not None and not self._streams:
            wait_s = _NEWS_S if timeout_s >= _NEWS_S else 0.0
            if self._news.poll(wait_s, 1):
                return True
            timeout_s -= wait_s
        return bool(self._readable.poll(_milliseconds(timeout_s)))

    def _write_rest(self, rest: memoryview, timeout_s: float, total: int) -> None:
        end = time.monotonic() + timeout_s
        while rest:
            if not self._wait_for_room(max(0.0, end - time.monotonic())):
                raise self._timed_out(total - len(rest), total, timeout_s)
            rest = rest[self._write_some(rest) :]

    def _wait_for_room(self, timeout_s: float) -> bool:
        """Waits for room, or for bytes, which are kept; False when the time has passed."""
        poll = self._both if self._kept_bytes < _MAX_KEPT else self._writable
        events = poll.poll(_milliseconds(timeout_s))
        if events and events[0][1] & (select.POLLIN | select.POLLHUP | select.POLLERR):
            self._keep(self._read_some())
        return bool(events)

    def _keep(self, data: bytes) -> None:
        if data:
            self._kept.append(data)
            self._kept_bytes += len(data)

    def _take_kept(self) -> bytes:
        data = self._kept.popleft()
        self._kept_bytes -= len(data)
        return data

    def _write_some(self, data: bytes | memoryview) -> int:
        self._check_open()
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise self._closed(error) from error

    def _read_some(self) -> bytes:
        try:
            data = os.read(self._fd, MAX_READ)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise self._closed(error) from error
        if not data:
            raise self._gone(f"{self.name}: the far end closed the link")
        return data

    def _check_open(self) -> None:
        if not self._open:
            error = LinkClosedError(f"{self.name}: the link is closed", next_step="open the device again")
            error.by_us = True
            raise error

    def _closed(self, error: OSError) -> Exception:
        if error.errno in _GONE:
            return self._gone(f"{self.name}: the far end is gone ({error.strerror})")
        return error

    def _timed_out(self, written: int, total: int, timeout_s: float) -> DeadlineError:
        failure = DeadlineError(
            f"{self.name}: the device took {written} of {total} bytes within {round(timeout_s, 3):g} s",
            waited_for="room on the link",
            wall_s=timeout_s,
        )
        failure.written = written
        return failure


def open_terminal(path: str | Path, name: str | None = None) -> FdTransport:
    """Open the terminal or pseudo-terminal at `path`, raw. Raises LinkClosedError when that can't be done."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise LinkClosedError(f"{path} can't be opened: {error.strerror}", stage="open link") from error
    try:
        set_raw(fd)
        return FdTransport(fd, name or f"pty {path}")
    except termios.error as error:
        os.close(fd)
        raise LinkClosedError(f"{path} is not a terminal", stage="open link") from error
    except BaseException:
        os.close(fd)
        raise


class SocketTransport(FdTransport):
    """A link over a connected stream socket."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        super().__init__(connection.fileno(), name, close=connection.close)

    @classmethod
    def connect(cls, path: str | Path, timeout_s: float) -> SocketTransport:
        """Connect to the Unix socket at `path`. Raises LinkClosedError when there is no listener."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(timeout_s)
            connection.connect(str(path))
            return cls(connection, f"socket {path}")
        except OSError as error:
            connection.close()
            raise LinkClosedError(
                f"socket {path}: {error.strerror or error}",
                stage="open link",
                next_step="start the program that listens there, or correct the path",
            ) from error
