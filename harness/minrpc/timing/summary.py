# SPDX-License-Identifier: Apache-2.0
"""Statistics of repeated timings that hold for what timings are: skewed, with outliers, sometimes drifting.

Nothing here assumes a normal distribution but where it says so, and no sample is ever dropped.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Final

CONFIDENCE: Final = 0.95
# A median absolute deviation of normal samples, times this, is their standard deviation.
MAD_TO_STD: Final = 1.4826
# Iglewicz and Hoaglin (1993): a modified z-score above this names an outlier.
_OUTLIER_Z: Final = 3.5


@dataclass(frozen=True, slots=True)
class Interval:
    """Where the median lies with probability `confidence`, which is what the ranks really give."""

    low: float
    high: float
    confidence: float

    @property
    def half_width(self) -> float:
        """Half of its length."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class Drift:
    """A trend over the repeats, in the order they were taken.

    slope: change from one repeat to the next, in the samples' unit; the median of all pairs' (Theil, Sen).
    p_value: how likely so much order is by chance (Mann, Kendall).
    """

    slope: float
    p_value: float

    @property
    def significant(self) -> bool:
        """Whether chance alone would do this less than once in a hundred times."""
        return self.p_value < 0.01


@dataclass(frozen=True, slots=True)
class Summary:
    """Of samples in one unit; all fields in that unit.

    mad: the median of the distances from the median.
    std: the sample standard deviation (ddof=1); 0 for one sample.
    interval: of the median; None where there are too few samples for `CONFIDENCE`.
    outliers: positions, counted from 0, of samples far from the median for how the others spread.
    drift: None for fewer than 4 samples, which show no trend.
    resolution: what a sample can be off by because the clock is no finer.
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
        """Half of the interval's length over the median: 0.01 is "known to 1 %". Infinite without one.

        Never better than the resolution: samples that agree only because the clock is coarse know no more.
        """
        if self.interval is None:
            return math.inf
        unsure = max(self.interval.half_width, self.resolution)
        if unsure == 0:
            return 0.0
        return unsure / abs(self.median) if self.median else math.inf


def summarize(samples: Sequence[float], resolution: float = 0.0) -> Summary:
    """Of at least one sample.

    resolution: what a sample can be off by because the clock is no finer; no outlier is closer than this.
    """
    median = statistics.median(samples)
    return Summary(
        count=len(samples),
        median=median,
        mad=mad(samples, median),
        mean=statistics.fmean(samples),
        std=statistics.stdev(samples) if len(samples) > 1 else 0.0,
        min=min(samples),
        max=max(samples),
        interval=median_interval(samples),
        outliers=outliers(samples, resolution),
        drift=drift(samples),
        resolution=resolution,
    )


def mad(samples: Sequence[float], median: float) -> float:
    """The median distance from `median`."""
    return statistics.median(abs(sample - median) for sample in samples)


def median_interval(samples: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """Where the median of the distribution lies, whatever its shape, by binomial ranks: between two samples.

    None when even the smallest and the largest sample don't give that confidence: below 6 for 95 %.
    """
    ordered = sorted(samples)
    count = len(ordered)
    # The median is not between the k-th smallest and k-th largest when fewer than k lie on one side of it.
    tail = 0.0
    best: Interval | None = None
    for rank in range(count // 2):
        tail += math.exp(_log_binomial(count, rank) - count * math.log(2))
        reached = 1 - 2 * tail
        if reached < confidence:
            break
        best = Interval(ordered[rank], ordered[count - 1 - rank], reached)
    return best


def _log_binomial(count: int, rank: int) -> float:
    return math.lgamma(count + 1) - math.lgamma(rank + 1) - math.lgamma(count - rank + 1)


def least_samples(confidence: float = CONFIDENCE) -> int:
    """The fewest samples that give an interval at all."""
    return math.ceil(1 - math.log2(1 - confidence))


def samples_needed(summary: Summary, precision: float) -> int:
    """About how many samples it takes to know the median to `precision` (0.01 is 1 %), all in all.

    The interval shrinks with the square root of their number. Never fewer than an interval needs.
    """
    least = least_samples()
    if summary.interval is None or not math.isfinite(summary.precision):
        return max(least, 2 * summary.count)
    return max(least, math.ceil(summary.count * (summary.precision / precision) ** 2))


def outliers(samples: Sequence[float], resolution: float = 0.0) -> tuple[int, ...]:
    """Positions of samples whose distance from the median the others' spread does not explain."""
    median = statistics.median(samples)
    limit = max(_OUTLIER_Z * MAD_TO_STD * mad(samples, median), resolution)
    # A distance that floating point alone makes is none.
    limit += abs(median) * 1e-12
    return tuple(index for index, sample in enumerate(samples) if abs(sample - median) > limit)


def drift(samples: Sequence[float]) -> Drift | None:
    """The trend over the samples' order. None for fewer than 4."""
    count = len(samples)
    if count < 4:
        return None
    pairs = list(combinations(range(count), 2))
    slope = statistics.median((samples[j] - samples[i]) / (j - i) for i, j in pairs)
    score = sum((samples[j] > samples[i]) - (samples[j] < samples[i]) for i, j in pairs)
    return Drift(slope, _kendall_p(samples, score))


def _kendall_p(samples: Sequence[float], score: int) -> float:
    """Two-sided, by the normal approximation, with the correction for ties."""
    count = len(samples)
    ties = sum(size * (size - 1) * (2 * size + 5) for size in Counter(samples).values())
    variance = (count * (count - 1) * (2 * count + 5) - ties) / 18
    if variance <= 0 or score == 0:
        return 1.0
    return two_sided((abs(score) - 1) / math.sqrt(variance))


def two_sided(z: float) -> float:
    """How likely a standard normal variable is at least so far from 0."""
    return min(1.0, 2 * NormalDist().cdf(-abs(z)))
