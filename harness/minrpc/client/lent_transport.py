# SPDX-License-Identifier: Apache-2.0
"""A transport that is lent to a test: it records the traffic, and the test can't close it."""

from __future__ import annotations

from collections import deque
from itertools import groupby
from typing import Final

from minrpc.transport import Transport
from minrpc.wire.explain import FROM_DEVICE, TO_DEVICE, explain

_CHUNKS: Final = 200
_MERGED: Final = 4096
_MESSAGES: Final = 16


class LentTransport:
    """`inner`, lent for one test; it can be replaced. `trace` shows the last chunks in both directions."""

    def __init__(self, inner: Transport) -> None:
        self.name = inner.name
        self.inner = inner
        self._chunks: deque[tuple[str, bytes | bytearray]] = deque(maxlen=_CHUNKS)

    def write(self, data: bytes, timeout_s: float) -> None:
        """Does the same as `Transport.write`."""
        self._note(TO_DEVICE, data)
        self.inner.write(data, timeout_s)

    def read(self, timeout_s: float) -> bytes:
        """Does the same as `Transport.read`."""
        data = self.inner.read(timeout_s)
        if data:
            self._note(FROM_DEVICE, data)
        return data

    def fileno(self) -> int:
        """The descriptor of `inner`; -1 when it has none."""
        number: int = getattr(self.inner, "fileno", lambda: -1)()
        return number

    def close(self) -> None:
        """Does nothing: the lender goes on using the transport."""

    def trace(self) -> str:
        """The last messages, a line each: ">" to the device, "<" from it.

        Repeated messages, such as probes for a missing answer, share one line.
        """
        said = explain((mark, bytes(data)) for mark, data in self._chunks)
        return "\n".join([_counted(line, len(list(same))) for line, same in groupby(said)][-_MESSAGES:])

    def _note(self, direction: str, data: bytes) -> None:
        """Records `data`; single bytes of a slow link are joined to one chunk."""
        before, last = self._chunks[-1] if self._chunks else ("", b"")
        if before == direction and isinstance(last, bytearray) and len(last) + len(data) <= _MERGED:
            last += data
        else:
            self._chunks.append((direction, bytearray(data) if len(data) < _MERGED else data))


def _counted(line: str, times: int) -> str:
    return line if times == 1 else f"{line} ({times} times)"
