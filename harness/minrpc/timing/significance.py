# SPDX-License-Identifier: Apache-2.0
"""Tests whether two sets of timings differ (Mann, Whitney), for any distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from minrpc.timing.trend import Integers, tied, two_sided

SIGNIFICANT: Final = 0.01
# Largest number of samples for which the probability is counted exactly, if no two are equal.
_EXACT_SAMPLES: Final = 40
# Largest number of differences that are sorted; more are narrowed down by a sample of this size.
_FEW: Final = 1 << 21
_PICKED: Final = 4096
# Distance in ranks of the sample: half of it, to either side of the wanted rank, is 4 standard deviations.
_AROUND: Final = round(4 * math.sqrt(_PICKED))

Floats = npt.NDArray[np.float64]


def mann_whitney(base: Sequence[float], head: Sequence[float]) -> float:
    """The probability that samples of one distribution differ in rank at least so much; two-sided.

    Exact for few samples without ties, else by the normal approximation with the corrections for ties and
    continuity.
    """
    item, other = (np.sort(np.asarray(samples, np.float64)) for samples in (base, head))
    # The number of pairs in which the head's sample is larger; a pair of equal samples counts half.
    larger = len(other) - np.searchsorted(other, item, "right")
    equal = len(other) - np.searchsorted(other, item, "left") - larger
    below = int(larger.sum()) + int(equal.sum()) / 2
    sizes = tied(np.concatenate([item, other]))
    if not sizes and len(item) + len(other) <= _EXACT_SAMPLES:
        return _exact_p(round(below), len(item), len(other))
    return _normal_p(below, len(item), len(other), sizes)


def least_p(base: int, head: int) -> float:
    """The smallest probability that so many samples can give: above `SIGNIFICANT` there are too few
    samples."""
    if base + head <= _EXACT_SAMPLES:
        return min(1.0, 2 / math.comb(base + head, base))
    orders = math.lgamma(base + head + 1) - math.lgamma(base + 1) - math.lgamma(head + 1)
    return min(1.0, 2 * math.exp(-orders))


def shift(base: Sequence[float], head: Sequence[float]) -> float:
    """The amount by which `head` is above `base`: the median of all differences (Hodges, Lehmann).

    The differences of two sorted lists are counted by binary search, without making all of them.
    """
    differences = _Differences(np.asarray(base, np.float64), np.asarray(head, np.float64))
    low, high = (differences.count - 1) // 2, differences.count // 2
    lower = differences.ranked(low)
    return lower if low == high else (lower + differences.ranked(high)) / 2


class _Differences:
    """The differences of each of `head` and each of `base`, in order, without making them all."""

    def __init__(self, base: Floats, head: Floats) -> None:
        self._base, self._head = np.sort(base), np.sort(head)
        self.count = len(base) * len(head)

    def ranked(self, rank: int) -> float:
        """The difference at a place in the order, counted from 0."""
        # For each sample of base: the samples of head from `low` to `high` may still form the wanted
        # difference.
        low: Integers = np.zeros(len(self._base), np.int64)
        high: Integers = np.full(len(self._base), len(self._head))
        random = np.random.default_rng(0)
        left = self.count
        while left > _FEW:
            picked = np.sort(self._picked(low, high, random.integers(left, size=_PICKED)))
            place = (rank - int(low.sum())) * _PICKED // left
            for near in (max(0, place - _AROUND), min(_PICKED - 1, place + _AROUND)):
                smaller, up_to = self._below(picked[near], "left"), self._below(picked[near], "right")
                if int(smaller.sum()) > rank:
                    high = np.minimum(high, smaller)
                elif int(up_to.sum()) <= rank:
                    low = np.maximum(low, up_to)
                else:
                    return float(picked[near])
            before, left = left, int((high - low).sum())
            if left == before:  # The rest differ by less than the resolution of floating point.
                return float(picked[place])
        place = rank - int(low.sum())
        return float(np.partition(self._picked(low, high, np.arange(left)), place)[place])

    def _picked(self, low: Integers, high: Integers, places: Integers) -> Floats:
        """The differences at the `places` among those that are left, in no order."""
        ends = np.cumsum(high - low)
        rows = np.searchsorted(ends, places, "right")
        columns = high[rows] - (ends[rows] - places)
        differences: Floats = self._head[columns] - self._base[rows]
        return differences

    def _below(self, value: float, side: Literal["left", "right"]) -> Integers:
        """For each sample of base, the number of samples of head that exceed it by less than `value`;
        "right": by at most `value`."""
        return np.searchsorted(self._head, self._base + value, side)


def _exact_p(below: int, base: int, head: int) -> float:
    smaller = min(below, base * head - below)
    as_extreme = sum(_arrangements(base, head, u) for u in range(smaller + 1))
    return min(1.0, 2 * as_extreme / math.comb(base + head, base))


@cache
def _arrangements(base: int, head: int, u: int) -> int:
    """The number of orders of base + head samples in which the head's sample is the larger in exactly `u`
    pairs."""
    if u < 0 or u > base * head:
        return 0
    if base == 0 or head == 0:
        return 1
    return _arrangements(base - 1, head, u - head) + _arrangements(base, head - 1, u)


def _normal_p(below: float, n: int, m: int, tied_sizes: Sequence[int]) -> float:
    total = n + m
    ties = sum(size**3 - size for size in tied_sizes) / (total * (total - 1))
    variance = n * m / 12 * (total + 1 - ties)
    distance = max(0.0, abs(below - n * m / 2) - 0.5)
    return two_sided(distance / math.sqrt(variance)) if variance > 0 else 1.0
