# SPDX-License-Identifier: Apache-2.0
"""Statistics for repeated timings, which are skewed, have outliers, and sometimes drift.

No function assumes a normal distribution unless its text states it, and no sample is ever dropped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from minrpc.timing.trend import Drift, drift

CONFIDENCE: Final = 0.95
# A median absolute deviation of normal samples, times this, is their standard deviation.
MAD_TO_STD: Final = 1.4826
# Iglewicz and Hoaglin (1993): a modified z-score above this names an outlier.
_OUTLIER_Z: Final = 3.5
# Ranks this many standard deviations below the median's rank have a probability too small for floating point.
_FAR: Final = 20

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """The interval of the median. confidence: the actual probability of the chosen ranks."""

    low: float
    high: float
    confidence: float

    @property
    def half_width(self) -> float:
        """Half of the interval's length."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class Summary:
    """Statistics of samples in one unit; all fields in that unit.

    mad: the median of the distances from the median.
    std: the sample standard deviation (ddof=1); 0 for one sample.
    interval: of the median; None if there are too few samples for `CONFIDENCE`.
    outliers: positions, counted from 0, of samples that are far from the median compared with the spread of
        the others.
    drift: None for fewer than 4 samples, which show no trend.
    resolution: the error of a sample that the clock's step causes.
    """

    count: int
    median: float
    mad: float
    mean: float
    std: float
    min: float
    max: float
    interval: Interval | None
    outliers: tuple[int, ...]
    drift: Drift | None
    resolution: float = 0.0

    @property
    def precision(self) -> float:
        """Half of the interval's length over the median: 0.01 is "known to 1 %". Infinite without an
        interval.

        At least the resolution: a coarse clock makes samples equal, but not more exact.
        """
        if self.interval is None:
            return math.inf
        unsure = max(self.interval.half_width, self.resolution)
        if unsure == 0:
            return 0.0
        return unsure / abs(self.median) if self.median else math.inf


def summarize(samples: Sequence[float], resolution: float = 0.0) -> Summary:
    """The summary of at least one sample, in the time that it takes to sort them.

    resolution: the error of a sample that the clock's step causes; no outlier is closer than this.
    """
    values = np.asarray(samples, np.float64)
    median = float(np.median(values))
    # Computed relative to the median, so that equal samples have exactly this mean and no deviation.
    away = values - median
    total = math.fsum(away)
    squares = math.fsum(away * away) - total * total / len(values)
    return Summary(
        count=len(values),
        median=median,
        mad=mad(values, median),
        mean=median + total / len(values),
        std=math.sqrt(max(0.0, squares) / (len(values) - 1)) if len(values) > 1 else 0.0,
        min=float(values.min()),
        max=float(values.max()),
        interval=median_interval(values),
        outliers=outliers(values, resolution),
        drift=drift(values),
        resolution=resolution,
    )


def mad(samples: Sequence[float] | Floats, median: float) -> float:
    """The median distance from `median`."""
    return float(np.median(np.abs(np.asarray(samples) - median)))


def median_interval(samples: Sequence[float] | Floats, confidence: float = CONFIDENCE) -> Interval | None:
    """Interval of the distribution's median, for any shape, by binomial ranks: between two samples.

    None if even the smallest and the largest sample don't give that confidence: for fewer than 6 samples at
    95 %.
    """
    count = len(samples)
    # The median is not between the k-th smallest and k-th largest when fewer than k lie on one side of it.
    tail = 0.0
    best: tuple[int, float] | None = None
    for rank in range(max(0, math.floor(count / 2 - _FAR * math.sqrt(count) / 2)), count // 2):
        tail += math.exp(_log_binomial(count, rank) - count * math.log(2))
        reached = 1 - 2 * tail
        if reached < confidence:
            break
        best = rank, reached
    if best is None:
        return None
    rank, reached = best
    ordered: Any = np.partition(samples, (rank, count - 1 - rank))
    return Interval(float(ordered[rank]), float(ordered[count - 1 - rank]), reached)


def _log_binomial(count: int, rank: int) -> float:
    return math.lgamma(count + 1) - math.lgamma(rank + 1) - math.lgamma(count - rank + 1)


def least_samples(confidence: float = CONFIDENCE) -> int:
    """The smallest number of samples that gives an interval."""
    return math.ceil(1 - math.log2(1 - confidence))


def samples_needed(summary: Summary, precision: float) -> int:
    """The approximate total number of samples to know the median to `precision` (0.01 is 1 %).

    The interval shrinks with the square root of their number. At least the number that an interval needs.
    """
    least = least_samples()
    if summary.interval is None or not math.isfinite(summary.precision):
        return max(least, 2 * summary.count)
    return max(least, math.ceil(summary.count * (summary.precision / precision) ** 2))


def outliers(samples: Sequence[float] | Floats, resolution: float = 0.0) -> tuple[int, ...]:
    """Positions of samples that are farther from the median than the spread of the others explains."""
    values = np.asarray(samples, np.float64)
    median = float(np.median(values))
    limit = max(_OUTLIER_Z * MAD_TO_STD * mad(values, median), resolution)
    # Distances within the rounding of floating point do not count.
    limit += abs(median) * 1e-12
    return tuple(np.flatnonzero(np.abs(values - median) > limit).tolist())
