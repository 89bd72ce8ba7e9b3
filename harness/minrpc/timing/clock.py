# SPDX-License-Identifier: Apache-2.0
"""The clock of a measurement, and its accuracy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Final, Literal, Self

from minrpc.timing.units import quantity

Mode = Literal["exact", "wall", "board"]
CountUnit = Literal["ticks", "core cycles", "instructions"]

NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Timebase:
    """The source of a device's clock.

    mode: "exact" (QEMU counts instructions, so numbers repeat), "wall" (the host's time: advice only),
        "board" (real hardware).
    source: the counter's name, "SysTick"; "" if unknown.
    counts: the unit of a count; "ticks" unless the platform gives another.
    icount_shift: an instruction takes 2 ** icount_shift ns; None where instructions don't drive the clock.
    """

    mode: Mode = "board"
    source: str = ""
    counts: CountUnit = "ticks"
    icount_shift: int | None = None

    def clock(self, ticks_hz: int) -> DeviceClock:
        """This timebase with the rate that the device reports."""
        return DeviceClock(ticks_hz=ticks_hz, **asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClock(Timebase):
    """A timebase and its rate.

    ticks_hz: counts per second, as the device read it when it ran.
    coarse_hz: ticks per second of the slower clock, which replaces a counter that stood still or ran at
    another rate (times are whole ticks then); 0 if the counter was right.
    """

    ticks_hz: int
    coarse_hz: int = 0

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Reads a document of `to_json`."""
        return cls(**document)

    def to_json(self) -> dict[str, Any]:
        """The document for a file."""
        return asdict(self)

    @property
    def exact(self) -> bool:
        """True if numbers repeat exactly, so that a difference of 1 is significant."""
        return self.mode == "exact"

    @property
    def ticks_per_instruction(self) -> Fraction | None:
        """Counts per instruction; None if the platform has no fixed relation."""
        if self.icount_shift is not None:
            return Fraction((1 << self.icount_shift) * self.ticks_hz, NS)
        return Fraction(1) if self.counts == "instructions" else None

    @property
    def resolution_s(self) -> float:
        """Seconds per count, or per tick of the slower clock: the resolution of readings."""
        return 1.0 / (self.coarse_hz or self.ticks_hz)

    @property
    def step_ticks(self) -> float:
        """The resolution in counts."""
        return self.ticks_hz / self.coarse_hz if self.coarse_hz else 1.0

    def seconds(self, ticks: float) -> float:
        """`ticks` in seconds, rounded once."""
        return ticks / self.ticks_hz

    def __str__(self) -> str:
        name = self.source or "the platform timer"
        rate = quantity(self.ticks_hz, "Hz")
        text = f"{self.mode}: {name}, {rate}, resolution {quantity(self.resolution_s, 's')}"
        if self.coarse_hz:
            text += (
                f" by the device's slower clock of {quantity(self.coarse_hz, 'Hz')}: the counter is not right"
            )
        if self.counts != "ticks":
            text += f", counts {self.counts}"
        if self.icount_shift is not None:
            text += f", {1 << self.icount_shift} ns an instruction (icount shift {self.icount_shift})"
        return text
