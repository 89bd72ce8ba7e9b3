# SPDX-License-Identifier: Apache-2.0
"""Whether two sets of timings differ: by Mann and Whitney, who ask nothing of their distribution."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Final

from minrpc.timing.summary import two_sided

SIGNIFICANT: Final = 0.01
# Up to so many samples in all, and where no two are equal, the probability is counted out.
_EXACT_SAMPLES: Final = 40


def mann_whitney(base: Sequence[float], head: Sequence[float]) -> float:
    """The probability that samples of one distribution differ in rank at least so much; two-sided.

    Counted out where there are few and no ties, else by the normal approximation with the corrections for
    ties and continuity.
    """
    below = sum(_half_order(one, other) for one in base for other in head)
    if len(set(base) | set(head)) == len(base) + len(head) <= _EXACT_SAMPLES:
        return _exact_p(round(below), len(base), len(head))
    return _normal_p(below, base, head)


def least_p(base: int, head: int) -> float:
    """The smallest probability that so many samples give: above `SIGNIFICANT` there are too few to tell."""
    return min(1.0, 2 / math.comb(base + head, base))


def shift(base: Sequence[float], head: Sequence[float]) -> float:
    """By how much `head` is above `base`: the median of all differences (Hodges, Lehmann)."""
    return statistics.median(other - one for one in base for other in head)


def _half_order(one: float, other: float) -> float:
    return 1.0 if one < other else 0.5 if one == other else 0.0


def _exact_p(below: int, base: int, head: int) -> float:
    smaller = min(below, base * head - below)
    as_extreme = sum(_arrangements(base, head, u) for u in range(smaller + 1))
    return min(1.0, 2 * as_extreme / math.comb(base + head, base))


@cache
def _arrangements(base: int, head: int, u: int) -> int:
    """In how many orders of base + head samples exactly `u` pairs have the head's above the base's."""
    if u < 0 or u > base * head:
        return 0
    if base == 0 or head == 0:
        return 1
    return _arrangements(base - 1, head, u - head) + _arrangements(base, head - 1, u)


def _normal_p(below: float, base: Sequence[float], head: Sequence[float]) -> float:
    n, m = len(base), len(head)
    total = n + m
    ties = sum(size**3 - size for size in Counter([*base, *head]).values()) / (total * (total - 1))
    variance = n * m / 12 * (total + 1 - ties)
    distance = max(0.0, abs(below - n * m / 2) - 0.5)
    return two_sided(distance / math.sqrt(variance)) if variance > 0 else 1.0
