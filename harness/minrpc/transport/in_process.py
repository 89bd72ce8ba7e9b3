# SPDX-License-Identifier: Apache-2.0
"""Two ends of a link in this process, for tests of code above a transport."""

from __future__ import annotations

import threading

from minrpc.errors import DeadlineError, LinkClosedError
from minrpc.transport.base import MAX_READ


class _Pipe:
    """Bytes in one direction; at most `capacity` bytes wait to be read."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._bytes = bytearray()
        self._closed = False
        self._changed = threading.Condition()

    def put(self, data: bytes, timeout_s: float) -> int:
        """Waits for room, adds as many bytes as fit, and returns their number."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._bytes) < self._capacity, timeout_s)
            if self._closed:
                raise LinkClosedError("the far end of the memory link is closed")
            taken = data[: self._capacity - len(self._bytes)]
            self._bytes += taken
            self._changed.notify_all()
            return len(taken)

    def get(self, timeout_s: float) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._bytes, timeout_s)
            if self._closed and not self._bytes:
                raise LinkClosedError("the far end of the memory link is closed")
            data = bytes(self._bytes[:MAX_READ])
            del self._bytes[:MAX_READ]
            self._changed.notify_all()
            return data

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class MemoryTransport:
    """One end of the pair that `memory_pair` makes; the two ends may be used from two threads."""

    def __init__(self, name: str, incoming: _Pipe, outgoing: _Pipe) -> None:
        self.name = name
        self._incoming = incoming
        self._outgoing = outgoing

    def write(self, data: bytes, timeout_s: float) -> None:
        """Write all of `data`; see `Transport.write`."""
        written = 0
        while written < len(data):
            taken = self._outgoing.put(data[written:], timeout_s)
            if not taken:
                failure = DeadlineError(f"{self.name}: no room for {len(data) - written} bytes")
                failure.written = written
                raise failure
            written += taken

    def read(self, timeout_s: float) -> bytes:
        """The bytes that have arrived; see `Transport.read`."""
        return self._incoming.get(timeout_s)

    def close(self) -> None:
        """Close both directions; the other end still reads bytes that were written before."""
        self._incoming.close()
        self._outgoing.close()


def memory_pair(capacity: int = 1 << 20) -> tuple[MemoryTransport, MemoryTransport]:
    """Two connected ends; `capacity` bytes fit each way before a write waits."""
    there, back = _Pipe(capacity), _Pipe(capacity)
    host = MemoryTransport("memory, host end", incoming=back, outgoing=there)
    device = MemoryTransport("memory, device end", incoming=there, outgoing=back)
    return host, device
