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


def interleave(
    ours: Callable[[], object],
    baseline: Callable[[], object],
    *,
    rounds: int,
    calls: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Paired:
    """Measure both in `rounds` rounds; a round is the median of `calls` calls of each.

    Which of the two comes first changes from round to round. One call of each before the first round does not
    count.
    """
    baseline()
    ours()
    values: list[float] = []
    baselines: list[float] = []
    for number in range(rounds):
        order = [(baseline, baselines), (ours, values)]
        for function, times in order if number % 2 == 0 else reversed(order):
            times.append(median(timed(function, clock) for _ in range(calls)))
    return pair(values, baselines)


def timed(function: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds that one call takes."""
    begin = clock()
    function()
    return clock() - begin
