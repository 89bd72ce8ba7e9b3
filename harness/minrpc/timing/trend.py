# SPDX-License-Identifier: Apache-2.0
"""The trend of samples in order of measurement: its significance and slope (Mann, Kendall; Theil, Sen)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

# Largest number of samples for which the slope is the median of all pairs; above it, of pairs half of the
# list apart.
ALL_PAIRS: Final = 1000
_FEWEST: Final = 4

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Drift:
    """A trend over the samples, in the order they were taken.

    slope: change from one sample to the next, in the samples' unit; see `theil_slope`.
    p_value: the probability of so much order by chance (Mann, Kendall).
    """

    slope: float
    p_value: float

    @property
    def significant(self) -> bool:
        """True if the trend is significant: by chance it has a probability below 1 %."""
        return self.p_value < 0.01


def drift(samples: Sequence[float] | Floats) -> Drift | None:
    """The trend over the samples' order, in the time that it takes to sort them. None for fewer than 4."""
    values = np.asarray(samples, np.float64)
    return Drift(theil_slope(values), mann_kendall(values)) if len(values) >= _FEWEST else None


def theil_slope(values: Floats) -> float:
    """The median of the slopes between samples, from one to the next.

    All pairs are used for up to `ALL_PAIRS` samples (Theil, Sen). Above that number, where all pairs would
    take quadratic time, each sample of the first half is paired with the sample at the same place of the
    second half (Theil's incomplete method).
    """
    count = len(values)
    if count > ALL_PAIRS:
        apart = count - count // 2
        return float(np.median((values[apart:] - values[:-apart]) / apart))
    first, second = np.triu_indices(count, 1)
    return float(np.median((values[second] - values[first]) / (second - first)))


def mann_kendall(values: Floats) -> float:
    """The probability of so much order by chance: two-sided, by the normal approximation with the corrections
    for ties and continuity.
    """
    count = len(values)
    sizes = tied(values)
    ties = sum(size * (size - 1) * (2 * size + 5) for size in sizes)
    variance = (count * (count - 1) * (2 * count + 5) - ties) / 18
    score = kendall_score(values)
    if variance <= 0 or score == 0:
        return 1.0
    return two_sided((abs(score) - 1) / math.sqrt(variance))


def kendall_score(values: Floats) -> int:
    """The number of pairs that rise in their order minus the number that fall."""
    count = len(values)
    equal = sum(size * (size - 1) // 2 for size in tied(values))
    return count * (count - 1) // 2 - equal - 2 * falling(values)


def falling(values: Floats) -> int:
    """The number of pairs that fall in their order (the first is larger than the second), in O(n log n).

    Ranks are sorted by one bit after another, the highest first. Within a block of ranks with the same higher
    bits, each bit 1 before a bit 0 is a falling pair.
    """
    bits = max(1, (len(values) - 1).bit_length())
    # The padding to a power of two comes last in order and in rank, so it falls with no sample.
    ranks: Integers = np.arange(1 << bits)
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    pairs = 0
    for bit in reversed(range(bits)):
        blocks = ranks.reshape(-1, 2 << bit)
        ones = (blocks >> bit) & 1
        pairs += int((np.cumsum(ones, axis=1) * (1 - ones)).sum())
        ranks = np.take_along_axis(blocks, np.argsort(ones, axis=1, kind="stable"), axis=1).reshape(-1)
    return pairs


def tied(values: Floats) -> list[int]:
    """The sizes of the groups of at least two equal samples."""
    sizes = np.unique(values, return_counts=True)[1]
    return [int(size) for size in sizes[sizes > 1]]


def two_sided(z: float) -> float:
    """The probability that a standard normal variable is at least this far from 0."""
    return min(1.0, 2 * NormalDist().cdf(-abs(z)))
