# SPDX-License-Identifier: Apache-2.0
"""Readings of a device's clocks, and the time between two readings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClockReading:
    """Both clocks of a device at one instant.

    ticks: the cycle counter, `bits` wide, which counts ticks_hz a second.
    uptime: the slower clock, which counts coarse_hz a second; both are 0 without such a clock.
    """

    ticks: int
    uptime: int
    ticks_hz: int
    coarse_hz: int
    bits: int

    def ticks_since(self, start: ClockReading) -> int:
        """Cycles from `start` to this reading. The uptime supplies the wraps of a narrow counter.

        Without an uptime the counter must not have wrapped more than once.
        """
        if self.coarse_hz == 0:
            return (self.ticks - start.ticks) % (1 << self.bits)
        # A counter that the device widens in software loses wraps of 32 bits while it is not read.
        wrap = 1 << min(self.bits, 32)
        counted = (self.ticks - start.ticks) % wrap
        expected = (self.uptime - start.uptime) * self.ticks_hz // self.coarse_hz
        return counted + (expected - counted + wrap // 2) // wrap * wrap

    def seconds_since(self, start: ClockReading) -> float:
        """Seconds from `start` to this reading, by the cycle counter."""
        return self.ticks_since(start) / self.ticks_hz

    def stands_still_since(self, start: ClockReading) -> bool:
        """True if the cycle counter has not moved since `start`, although the device has worked since."""
        return self.ticks == start.ticks
