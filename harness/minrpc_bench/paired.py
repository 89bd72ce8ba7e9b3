# SPDX-License-Identifier: Apache-2.0
"""Measures two actions in turns, so that a disturbance affects both."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

Clock = Callable[[], float]
"""A clock in seconds: wall time, or a process's CPU time."""
WALL: Final[Sequence[Clock]] = (time.perf_counter,)


@dataclass(frozen=True, slots=True)
class Paired:
    """The result, over all rounds.

    value, baseline: medians of the rounds, in seconds.
    ratio: median of value / baseline within each round.
    spread: median absolute deviation of that ratio.
    """

    value: float
    baseline: float
    ratio: float
    spread: float


def pair(values: Sequence[float], baselines: Sequence[float]) -> Paired:
    """The result from the seconds of each round. Raises ValueError without rounds, and for different numbers
    of them."""
    if not values or len(values) != len(baselines):
        raise ValueError(f"{len(values)} values and {len(baselines)} baselines make no pairs")
    ratios = [value / baseline for value, baseline in zip(values, baselines, strict=True)]
    middle = median(ratios)
    spread = median(abs(ratio - middle) for ratio in ratios)
    return Paired(median(values), median(baselines), middle, spread)


def interleave(
    ours: Callable[[], object],
    baseline: Callable[[], object],
    *,
    rounds: int,
    calls: int,
    clocks: Sequence[Clock] = WALL,
    after: Callable[[], object] = lambda: None,
) -> list[Paired]:
    """Measure both by each of `clocks`, in `rounds` rounds; a round is the median of `calls` calls of each.

    The order of the two changes from round to round. One call of each before the first round does not count.

    after: called after each call, and not measured.
    """
    for function in (baseline, ours):
        function()
        after()
    values: list[list[float]] = []
    baselines: list[list[float]] = []
    for number in range(rounds):
        order = [(baseline, baselines), (ours, values)]
        for function, times in order if number % 2 == 0 else reversed(order):
            times.append(_round(function, calls, clocks, after))
    return [pair(*each) for each in zip(zip(*values, strict=True), zip(*baselines, strict=True), strict=True)]


def _round(
    function: Callable[[], object], calls: int, clocks: Sequence[Clock], after: Callable[[], object]
) -> list[float]:
    """The median of the calls by each clock."""
    times = []
    for _ in range(calls):
        begin = [clock() for clock in clocks]
        function()
        times.append([clock() - first for clock, first in zip(clocks, begin, strict=True)])
        after()
    return [median(each) for each in zip(*times, strict=True)]
