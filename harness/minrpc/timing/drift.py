# SPDX-License-Identifier: Apache-2.0
"""The rate of a device's clock against the host's, from readings that are enclosed by two host times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from minrpc.timing.reading import ClockReading

PPM: Final = 1e6


@dataclass(frozen=True, slots=True)
class Enclosed:
    """The device read its clocks at some time from `before_s` to `after_s` of the host's clock."""

    before_s: float
    after_s: float
    reading: ClockReading


@dataclass(frozen=True, slots=True)
class ClockDrift:
    """The device's clock is fast by `ppm` parts in a million, within ± `error_ppm`: a bound, not an estimate.

    seconds: time of observation, by the host's clock.
    """

    ppm: float
    error_ppm: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.ppm:+.2f} ± {self.error_ppm:.2f} ppm over {self.seconds:.1f} s"


def clock_drift(readings: Sequence[Enclosed]) -> ClockDrift:
    """The drift, from at least two readings in order.

    A rate is possible if all readings lie between their host times; the first and the last bound the rate.
    The readings at either end with the tightest bounds are used.
    """
    half = max(1, len(readings) // 2)
    start = min(readings[:half], key=_width)
    end = min(readings[half:], key=_width)
    device_s = end.reading.seconds_since(start.reading)
    shortest, longest = end.before_s - start.after_s, end.after_s - start.before_s
    if shortest <= 0:
        raise ValueError("the readings are too close together for a rate")
    fast, slow = device_s / shortest - 1, device_s / longest - 1
    return ClockDrift((fast + slow) / 2 * PPM, (fast - slow) / 2 * PPM, (shortest + longest) / 2)


def _width(enclosed: Enclosed) -> float:
    return enclosed.after_s - enclosed.before_s
