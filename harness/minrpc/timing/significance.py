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
# Up to so many samples in all, and where no two are equal, the probability is counted out.
_EXACT_SAMPLES: Final = 40
# Differences that are looked at one by one; where there are more, a sample of so many narrows them down.
_FEW: Final = 1 << 21
_PICKED: Final = 4096
# Of the picked ones: half of this distance from the wanted rank, to either side, is 4 standard deviations.
_AROUND: Final = round(4 * math.sqrt(_PICKED))

Floats = npt.NDArray[np.float64]


def mann_whitney(base: Sequence[float], head: Sequence[float]) -> float:
    """The probability that samples of one distribution differ in rank at least so much; two-sided.

    Counted out where there are few and no ties, else by the normal approximation with the corrections for
    ties and continuity.
    """
    item, other = (np.sort(np.asarray(samples, np.float64)) for samples in (base, head))
    # Pairs in which the head's is larger, equal ones by half.
    larger = len(other) - np.searchsorted(other, item, "right")
    equal = len(other) - np.searchsorted(other, item, "left") - larger
    below = int(larger.sum()) + int(equal.sum()) / 2
    sizes = tied(np.concatenate([item, other]))
    if not sizes and len(item) + len(other) <= _EXACT_SAMPLES:
        return _exact_p(round(below), len(item), len(other))
    return _normal_p(below, len(item), len(other), sizes)


def least_p(base: int, head: int) -> float:
    """The smallest probability that so many samples give: above `SIGNIFICANT` there are too few to tell."""
    if base + head <= _EXACT_SAMPLES:
        return min(1.0, 2 / math.comb(base + head, base))
    orders = math.lgamma(base + head + 1) - math.lgamma(base + 1) - math.lgamma(head + 1)
    return min(1.0, 2 * math.exp(-orders))


def shift(base: Sequence[float], head: Sequence[float]) -> float:
    """The amount by which `head` is above `base`: the median of all differences (Hodges, Lehmann).

    Found without making them all: the differences of two sorted lists are counted by binary search.
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
        """The one at that place, counted from 0."""
        # For each of base, those of head from `low` to `high` are the ones that it may still be with.
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
            if left == before:  # They differ by less than a sum can tell.
                return float(picked[place])
        place = rank - int(low.sum())
        return float(np.partition(self._picked(low, high, np.arange(left)), place)[place])

    def _picked(self, low: Integers, high: Integers, places: Integers) -> Floats:
        """Those at the `places` among the differences that are left, in no order."""
        ends = np.cumsum(high - low)
        rows = np.searchsorted(ends, places, "right")
        columns = high[rows] - (ends[rows] - places)
        differences: Floats = self._head[columns] - self._base[rows]
        return differences

    def _below(self, value: float, side: Literal["left", "right"]) -> Integers:
        """For each of base the number of head that are less above it than `value`; "right": at most so
        much."""
        return np.searchsorted(self._head, self._base + value, side)


def _exact_p(below: int, base: int, head: int) -> float:
    smaller = min(below, base * head - below)
    as_extreme = sum(_arrangements(base, head, u) for u in range(smaller + 1))
    return min(1.0, 2 * as_extreme / math.comb(base + head, base))


@cache
def _arrangements(base: int, head: int, u: int) -> int:
    """The number of orders of base + head samples in which exactly `u` pairs have the head's above the
    base's."""
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
