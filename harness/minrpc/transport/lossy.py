# SPDX-License-Identifier: Apache-2.0
"""A transport that loses and damages bytes. A seed gives the same faults, however the bytes are split into
reads."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import Final

from minrpc.transport.base import Transport

_LONGEST_CUT: Final = 16  # the size of a UART's FIFO, which is lost at once
_NEVER: Final = 1 << 62


@dataclass(frozen=True)
class Faults:
    """The rate of each fault, per byte: 0.001 is one byte in a thousand.

    drop: the byte is left out. flip: one bit of the byte is inverted. duplicate: the byte arrives twice.
    cut: the byte and up to 15 bytes after it are left out.
    delay: the bytes after it arrive with the next
        write or read; nothing is lost.
    """

    drop: float = 0.0
    flip: float = 0.0
    duplicate: float = 0.0
    cut: float = 0.0
    delay: float = 0.0

    @classmethod
    def spread(cls, rate: float) -> Faults:
        """All kinds equally often; `rate` is their sum."""
        return cls(*(rate / 5,) * 5)

    def total(self) -> float:
        """The rate of all kinds together."""
        return self.drop + self.flip + self.duplicate + self.cut + self.delay


class _Direction:
    """The faults of one direction, continued from one piece of data to the next."""

    def __init__(self, faults: Faults, seed: str, counts: dict[str, int]) -> None:
        self._faults = faults
        self._random = Random(seed)
        self._counts = counts
        self._clean = self._clean_run()
        self._cut = 0

    def damage(self, data: bytes) -> list[bytes]:
        """The parts of `data` that arrive; each part is one arrival."""
        parts = [bytearray()]
        while data:
            data = data[self._skip_cut(data) :]
            passed, data = data[: self._clean], data[self._clean :]
            parts[-1] += passed
            self._clean -= len(passed)
            if data and not self._clean:
                self._fault(data[0], parts)
                data = data[1:]
        return [bytes(part) for part in parts if part]

    def _skip_cut(self, data: bytes) -> int:
        skipped = min(self._cut, len(data))
        self._cut -= skipped
        return skipped

    def _fault(self, byte: int, parts: list[bytearray]) -> None:
        kinds = vars(self._faults)
        kind = self._random.choices(list(kinds), list(kinds.values()))[0]
        self._counts[kind] += 1
        self._clean = self._clean_run()
        match kind:
            case "flip":
                parts[-1].append(byte ^ (1 << self._random.randrange(8)))
            case "duplicate":
                parts[-1] += bytes([byte, byte])
            case "cut":
                self._cut = self._random.randrange(_LONGEST_CUT)
            case "delay":
                parts[-1].append(byte)
                parts.append(bytearray())

    def _clean_run(self) -> int:
        """Number of bytes before the next fault."""
        rate = self._faults.total()
        return int(self._random.expovariate(rate)) if rate else _NEVER


@dataclass
class LossyTransport:
    """`inner` with faults in both directions.

    counts: faults so far, by kind.
    """

    inner: Transport
    faults: Faults
    seed: int = 0
    counts: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.name = f"lossy {self.inner.name}"
        self.counts = dict.fromkeys(vars(self.faults), 0)
        self._out = _Direction(self.faults, f"{self.seed} out", self.counts)
        self._in = _Direction(self.faults, f"{self.seed} in", self.counts)
        self._waiting: deque[bytes] = deque()

    def write(self, data: bytes, timeout_s: float) -> None:
        """Writes the bytes of `data` that remain after the faults; see `Transport.write`."""
        for part in self._out.damage(data):
            self.inner.write(part, timeout_s)

    def read(self, timeout_s: float) -> bytes:
        """The arrived bytes that remain after the faults, b"" if none remain; see `Transport.read`."""
        if not self._waiting:
            self._waiting += self._in.damage(self.inner.read(timeout_s))
        return self._waiting.popleft() if self._waiting else b""

    def close(self) -> None:
        """Close `inner`."""
        self.inner.close()
