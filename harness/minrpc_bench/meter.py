# SPDX-License-Identifier: Apache-2.0
"""A transport that counts bytes, and can repeat the answer to a call without the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from minrpc.errors import DeadlineError
from minrpc.transport import Transport


class Traffic(NamedTuple):
    """Bytes that passed a link."""

    sent: int = 0
    received: int = 0


class MeteredTransport:
    """`inner`, with its bytes counted.

    replays: nothing is sent, and the reads after a write give the last answer again, in the same pieces, and
        then nothing. A call then makes no system call: its time is this program's own, without link, device
        and kernel.
    """

    def __init__(self, inner: Transport) -> None:
        self.name = inner.name
        self.replays = False
        self._inner = inner
        self._sent = self._received = 0
        self._answer: list[bytes] = []
        self._given = 0

    def write(self, data: bytes, timeout_s: float) -> None:
        """Does the same as `Transport.write`. Bytes that a slow far end has not taken are written again,
        and counted once."""
        self._given = 0
        if self.replays:
            return
        self._answer.clear()
        try:
            self._inner.write(data, timeout_s)
        except DeadlineError as error:
            self._sent += error.written
            raise
        self._sent += len(data)

    def read(self, timeout_s: float) -> bytes:
        """Does the same as `Transport.read`."""
        if self.replays:
            self._given += 1
            return self._answer[self._given - 1] if self._given <= len(self._answer) else b""
        data = self._inner.read(timeout_s)
        self._answer += [data] if data else []
        self._received += len(data)
        return data

    def close(self) -> None:
        """Does the same as `Transport.close`."""
        self._inner.close()

    def during(self, action: Callable[[], object]) -> Traffic:
        """The bytes that pass while `action` runs."""
        self._sent = self._received = 0
        action()
        return Traffic(self._sent, self._received)
