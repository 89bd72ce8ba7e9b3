# SPDX-License-Identifier: Apache-2.0
"""Bytes on the wire."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from minrpc.errors import DeadlineError
from minrpc.transport import Transport


class Traffic(NamedTuple):
    """Bytes that passed a link.

    sent, received: all of them.
    escapes: those of both that only say that the next one is a literal 0xff.
    requests: writes.
    """

    sent: int = 0
    received: int = 0
    escapes: int = 0
    requests: int = 0

    @property
    def total(self) -> int:
        """Both directions."""
        return self.sent + self.received


class MeteredTransport:
    """`inner`, counting."""

    def __init__(self, inner: Transport) -> None:
        self.name = inner.name
        self._inner = inner
        self._sent = bytearray()
        self._received = bytearray()
        self._requests = 0

    def write(self, data: bytes, timeout_s: float) -> None:
        """As `Transport.write`. What a slow far end has not taken is not sent yet: its writer comes again."""
        self._requests += 1
        try:
            self._inner.write(data, timeout_s)
        except DeadlineError as error:
            self._sent += data[: error.written]
            raise
        self._sent += data

    def read(self, timeout_s: float) -> bytes:
        """As `Transport.read`."""
        data = self._inner.read(timeout_s)
        self._received += data
        return data

    def close(self) -> None:
        """As `Transport.close`."""
        self._inner.close()

    def during(self, action: Callable[[], object]) -> Traffic:
        """What passes while `action` runs."""
        self._sent.clear()
        self._received.clear()
        self._requests = 0
        action()
        escapes = count_escapes(self._sent) + count_escapes(self._received)
        return Traffic(len(self._sent), len(self._received), escapes, self._requests)


class ReplayingTransport:
    """`inner`; while it replays nothing is sent, and the last answer is there at once.

    No system call is made then: what a call costs is what this program does for it, and nothing of the link,
    the device or the kernel.
    """

    def __init__(self, inner: Transport) -> None:
        self.name = inner.name
        self.replays = False
        self._inner = inner
        self._answer = b""

    def write(self, data: bytes, timeout_s: float) -> None:
        """As `Transport.write`."""
        if not self.replays:
            self._inner.write(data, timeout_s)

    def read(self, timeout_s: float) -> bytes:
        """As `Transport.read`."""
        if not self.replays:
            self._answer = self._inner.read(timeout_s)
        return self._answer

    def close(self) -> None:
        """As `Transport.close`."""
        self._inner.close()


def count_escapes(wire: bytes | bytearray) -> int:
    """Bytes of whole frames that escape a literal 0xff: a 0xff and what follows it belong together."""
    return re.findall(rb"\xff.", wire, re.DOTALL).count(b"\xff\xff")
