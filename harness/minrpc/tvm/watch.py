# SPDX-License-Identifier: Apache-2.0
"""Ends a client's session from outside, during a request or between two."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Callable
from typing import Final, Protocol, Self

# The longest timeout of poll(2), 24 days. A longer session has no limit.
_LONGEST_MS: Final = (1 << 31) - 1


class Stream(Protocol):
    """Protocol: a client's byte stream: a socket, or an object with its methods."""

    def fileno(self) -> int:
        """The descriptor: readable when bytes wait; hung up when the client has gone."""

    def recv(self, size: int, /) -> bytes:
        """Receives 1 to `size` bytes; none if the client has gone."""

    def sendall(self, data: bytes, /) -> None:
        """Raises OSError when the client has gone."""

    def settimeout(self, seconds: float | None, /) -> None:
        """Limits each `recv` and `sendall`, which then raise TimeoutError."""

    def shutdown(self, how: int, /) -> None:
        """End a waiting `recv`."""


class Watch:
    """Ends a session from outside: its client has gone, its time is up, or the server is to stop.

    interrupt: called from a separate thread if a request runs when the session ends.
    reason: the message for the client; "" while the session goes on.
    interrupted: a descriptor that is readable once a request was to end.
    """

    def __init__(
        self, stream: Stream, stop_fd: int | None, limit_s: float | None, interrupt: Callable[[], None]
    ) -> None:
        self.reason = ""
        self.interrupted = os.eventfd(0)
        self._stream = stream
        self._stop_fd = stop_fd
        self._limit_s = limit_s
        limit_ms = None if limit_s is None else limit_s * 1000
        self._limit_ms = limit_ms if limit_ms is not None and limit_ms <= _LONGEST_MS else None
        self._interrupt = interrupt
        self._lock = threading.Lock()
        self._busy = False
        self._done, self._told = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="minrpc-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.close()
        self._thread.join()
        self._told.close()
        os.close(self.interrupted)

    def begin(self) -> None:
        """Mark the begin of a request. Raises ConnectionResetError if the session has already ended."""
        with self._lock:
            if self.reason:
                raise ConnectionResetError(self.reason)
            self._busy = True

    def end(self) -> None:
        """Mark the end of the request."""
        with self._lock:
            self._busy = False

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._stream, select.POLLRDHUP)
        if self._stop_fd is not None:
            poll.register(self._stop_fd, select.POLLIN)
        poll.register(self._told, select.POLLIN)
        ready = dict(poll.poll(self._limit_ms))
        if self._told.fileno() in ready:
            return
        with self._lock:
            self.reason = self._why(ready, self._busy)
            if self._busy:
                os.eventfd_write(self.interrupted, 1)
                self._interrupt()
            elif self._stream.fileno() not in ready:
                self._stream.shutdown(socket.SHUT_RD)  # Ends the wait for the next request.

    def _why(self, ready: dict[int, int], busy: bool) -> str:
        if self._stop_fd in ready:
            return "the server stops"
        if self._stream.fileno() in ready:
            return "the client left while its request ran" if busy else "the client left without a word"
        return f"the session's {self._limit_s:g} s are over, as its client wanted"
