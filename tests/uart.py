# SPDX-License-Identifier: Apache-2.0
"""A UART's wire, true to the bit: 8 data bits, no parity, one stop bit; each end has a rate of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from minrpc.transport import Transport

_FRAME = 10
_MIDDLE = 0.5


class Received(NamedTuple):
    """A byte, and True if its stop bit was a 1."""

    byte: int
    framed: bool


def levels(data: bytes) -> list[int]:
    """The levels of the wire, one a bit: a start bit, eight data bits from the lowest, a stop bit."""
    return [level for byte in data for level in (0, *(byte >> at & 1 for at in range(8)), 1)]


def receive(wire: list[int], sent: float, read: float) -> Iterator[Received]:
    """The bytes that a receiver takes from the wire. sent, read: the bits a second of both ends.

    The receiver waits for a falling edge and looks at the middle of each of its own bits, as a 16550 does;
    the wire is at 1 before and after.
    """
    step = sent / read
    at = 0.0
    while (edge := _falling(wire, at)) is not None:
        seen = [_level(wire, edge + (bit + _MIDDLE) * step) for bit in range(_FRAME)]
        at = edge + (_FRAME - 1 + _MIDDLE) * step
        if seen[0] == 0:
            yield Received(sum(level << bit for bit, level in enumerate(seen[1:-1])), seen[-1] == 1)
        else:  # The start bit was shorter than half of the receiver's.
            at = edge + _MIDDLE * step


def carried(data: bytes, sent: float, read: float) -> bytes:
    """The bytes that arrive, those with a framing error too, as a raw terminal has them."""
    return bytes(item.byte for item in receive(levels(data), sent, read))


def _level(wire: list[int], at: float) -> int:
    return wire[int(at)] if at < len(wire) else 1


def _falling(wire: list[int], after: float) -> int | None:
    """The place of the first falling edge at or after `after`, at which the wire may be at 0 still."""
    first = max(0, -int(-after // 1))
    before = 1 if first == 0 else wire[first - 1] if first <= len(wire) else 1
    for place in range(first, len(wire)):
        if before == 1 and wire[place] == 0:
            return place
        before = wire[place]
    return None


Damage = Callable[[list[int]], list[int]]


@dataclass
class Wire:
    """A link whose bytes cross a UART's wire in both directions.

    damage: changes the levels of the wire. rates: bits a second of the host's end and of the device's.
    damaged: the pieces of data that did not arrive as they were sent.
    """

    inner: Transport
    damage: Damage
    rates: tuple[float, float] = (1.0, 1.0)
    damaged: int = 0

    def __post_init__(self) -> None:
        self.name = f"wire {self.inner.name}"

    def write(self, data: bytes, timeout_s: float) -> None:
        """Writes the bytes that arrive; see `Transport.write`."""
        if arrived := self._carry(data, *self.rates):
            self.inner.write(arrived, timeout_s)

    def read(self, timeout_s: float) -> bytes:
        """The bytes that arrive; see `Transport.read`."""
        return self._carry(self.inner.read(timeout_s), *reversed(self.rates))

    def close(self) -> None:
        """Close `inner`."""
        self.inner.close()

    def _carry(self, data: bytes, sent: float, read: float) -> bytes:
        arrived = bytes(item.byte for item in receive(self.damage(levels(data)), sent, read)) if data else b""
        self.damaged += arrived != data
        return arrived
