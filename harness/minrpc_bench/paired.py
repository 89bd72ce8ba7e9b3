# SPDX-License-Identifier: Apache-2.0
"""Two things measured in turns, so that what disturbs one disturbs the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median


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
    rounds: int


def deviation(numbers: Sequence[float]) -> float:
    """The median absolute deviation: half of `numbers` are nearer to their median than this."""
    middle = median(numbers)
    return median(abs(number - middle) for number in numbers)


def pair(values: Sequence[float], baselines: Sequence[float]) -> Paired:
    """From the seconds of each round. Raises ValueError when they are none, or not as many of each."""
    if not values or len(values) != len(baselines):
        raise ValueError(f"{len(values)} values and {len(baselines)} baselines make no pairs")
    ratios = [value / baseline for value, baseline in zip(values, baselines, strict=True)]
    return Paired(median(values), median(baselines), median(ratios), deviation(ratios), len(ratios))


Clock = Callable[[], float]
"""What passes is the difference of two readings, in seconds: of the wall's time, or of a process's."""


def interleave(
    ours: Callable[[], object],
    baseline: Callable[[], object],
    *,
    rounds: int,
    calls: int,
    clock: Clock = time.perf_counter,
) -> Paired:
    """Measure both in `rounds` rounds; a round is the median of `calls` calls of each.

    Which of the two comes first changes from round to round. One call of each before the first round does not
    count.
    """
    return interleave_clocks(ours, baseline, rounds=rounds, calls=calls, clocks=[clock])[0]


def interleave_clocks(
    ours: Callable[[], object],
    baseline: Callable[[], object],
    *,
    rounds: int,
    calls: int,
    clocks: Sequence[Clock],
    after: Callable[[], object] = lambda: None,
) -> list[Paired]:
    """As `interleave`, the same calls by several clocks; a result for each.

    after: called after each call, and not measured: it takes away what the call has left.
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
    """For each clock the median of the calls."""
    times = []
    for _ in range(calls):
        times.append(_timed(function, clocks))
        after()
    return [median(each) for each in zip(*times, strict=True)]


def _timed(function: Callable[[], object], clocks: Sequence[Clock]) -> list[float]:
    begin = [clock() for clock in clocks]
    function()
    return [clock() - first for clock, first in zip(clocks, begin, strict=True)]


def timed(function: Callable[[], object], clock: Clock = time.perf_counter) -> float:
    """Seconds that one call takes."""
    return _timed(function, [clock])[0]
