# SPDX-License-Identifier: Apache-2.0
"""A transport that loses and damages bytes, the same ones each time for the same seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from harness.transport.base import Transport


@dataclass(frozen=True)
class Faults:
    """How often each happens, per byte: 0.001 is one in a thousand.

    drop: the byte is left out. flip: one bit of it is inverted. duplicate: it comes twice.
    cut: it and the rest of this write or read are left out.
    delay: what is read from here on is handed out by the next read only; nothing is lost.
    """

    drop: float = 0.0
    flip: float = 0.0
    duplicate: float = 0.0
    cut: float = 0.0
    delay: float = 0.0

    @classmethod
    def spread(cls, rate: float) -> Faults:
        """All kinds equally often, `rate` together."""
        return cls(*(rate / 5,) * 5)

    def total(self) -> float:
        """Of any kind."""
        return self.drop + self.flip + self.duplicate + self.cut + self.delay


@dataclass
class LossyTransport:
    """`inner` with faults in both directions.

    counts: how many there were of each kind.
    """

    inner: Transport
    faults: Faults
    seed: int = 0
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = f"lossy {self.inner.name}"
        self._random = Random(self.seed)
        self._delayed = b""

    def write(self, data: bytes, timeout_s: float) -> None:
        """Write what the faults leave of `data`; see `Transport.write`."""
        sent, late = self._damage(data)
        if sent + late:
            self.inner.write(sent + late, timeout_s)

    def read(self, timeout_s: float) -> bytes:
        """What the faults leave of what is there; see `Transport.read`. b"" also when they left nothing."""
        if self._delayed:
            data, self._delayed = self._delayed, b""
            return data
        data, self._delayed = self._damage(self.inner.read(timeout_s))
        return data

    def close(self) -> None:
        """Close `inner`."""
        self.inner.close()

    def _damage(self, data: bytes) -> tuple[bytes, bytes]:
        """What arrives, and what of it arrives late."""
        out = bytearray()
        late: int | None = None
        rest = data
        while rest:
            skip = self._clean_run()
            out += rest[:skip]
            if skip >= len(rest):
                break
            byte, rest = rest[skip], rest[skip + 1 :]
            kind = self._kind()
            self.counts[kind] = self.counts.get(kind, 0) + 1
            if kind == "cut":
                break
            if kind == "delay" and late is None:
                late = len(out)
            out += {
                "drop": b"",
                "flip": bytes([byte ^ (1 << self._random.randrange(8))]),
                "duplicate": bytes([byte, byte]),
            }.get(kind, bytes([byte]))
        at = len(out) if late is None else late
        return bytes(out[:at]), bytes(out[at:])

    def _clean_run(self) -> int:
        """How many bytes pass before the next fault."""
        rate = self.faults.total()
        return int(self._random.expovariate(rate)) if rate else 1 << 62

    def _kind(self) -> str:
        kinds = vars(self.faults)
        return self._random.choices(list(kinds), list(kinds.values()))[0]
