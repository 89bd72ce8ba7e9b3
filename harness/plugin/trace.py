# SPDX-License-Identifier: Apache-2.0
"""A transport that is lent to a test: it remembers what passed, and the test can't close it."""

from __future__ import annotations

from collections import deque
from itertools import groupby
from operator import itemgetter
from typing import Final

from harness.transport import Transport

_CHUNKS: Final = 200
_MESSAGES: Final = 12
_SHOWN_BYTES: Final = 32


class LentTransport:
    """`inner` for the time of one test. `trace` shows the last chunks in both directions."""

    def __init__(self, inner: Transport) -> None:
        self.name = inner.name
        self._inner = inner
        self._chunks: deque[tuple[str, bytes]] = deque(maxlen=_CHUNKS)

    def write(self, data: bytes, timeout_s: float) -> None:
        """As `Transport.write`."""
        self._chunks.append((">", data))
        self._inner.write(data, timeout_s)

    def read(self, timeout_s: float) -> bytes:
        """As `Transport.read`."""
        data = self._inner.read(timeout_s)
        if data:
            self._chunks.append(("<", data))
        return data

    def close(self) -> None:
        """Nothing: the lender goes on using it."""

    def trace(self) -> str:
        """The last exchanges, a line for each direction: ">" to the device, "<" from it, long ones cut."""
        runs = [
            f"{mark} {_shown(b''.join(data for _, data in run))}"
            for mark, run in groupby(self._chunks, key=itemgetter(0))
        ]
        return "\n".join(runs[-_MESSAGES:])


def _shown(data: bytes) -> str:
    if len(data) <= _SHOWN_BYTES:
        return data.hex(" ")
    return f"{data[:_SHOWN_BYTES].hex(' ')} ... ({len(data)} bytes)"
