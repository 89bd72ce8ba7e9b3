# SPDX-License-Identifier: Apache-2.0
"""Measuring in turns, with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from minrpc_bench.paired import Paired, interleave, pair


class Clock:
    """A clock that stands still until the test moves it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log: list[str] = []

    def __call__(self) -> float:
        return self.now

    def takes(self, name: str, *seconds: float) -> Callable[[], None]:
        """A function that takes these times in turn, and the last time for all further calls."""
        left = list(seconds)

        def function() -> None:
            self.log.append(name)
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return function


def test_a_ratio_is_that_of_the_same_round() -> None:
    # The machine gets three times slower in the middle, which changes no ratio.
    result = pair([2.0, 6.0, 2.0], [1.0, 3.0, 1.0])
    assert (result.ratio, result.spread) == (2.0, 0.0)
    assert (result.value, result.baseline) == (2.0, 1.0)


def test_one_wild_round_does_not_move_the_median() -> None:
    assert pair([2.0, 2.0, 500.0], [1.0, 1.0, 1.0]).ratio == 2.0


@pytest.mark.parametrize(("values", "baselines"), [([], []), ([1.0], [1.0, 2.0])])
def test_rounds_without_a_partner_are_refused(values: list[float], baselines: list[float]) -> None:
    with pytest.raises(ValueError, match="make no pairs"):
        pair(values, baselines)


def test_the_spread_is_the_median_absolute_deviation() -> None:
    ratios = [1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0]
    assert pair(ratios, [1.0] * len(ratios)).spread == 1.0


def by(clock: Clock, ours: Callable[[], None], raw: Callable[[], None], rounds: int, calls: int) -> Paired:
    (result,) = interleave(ours, raw, rounds=rounds, calls=calls, clocks=[clock])
    return result


def test_the_first_calls_are_not_counted() -> None:
    clock = Clock()
    ours, baseline = clock.takes("ours", 100.0, 3.0), clock.takes("raw", 50.0, 1.0)
    result = by(clock, ours, baseline, rounds=2, calls=3)
    assert (result.value, result.baseline, result.ratio) == (3.0, 1.0, 3.0)


def test_they_take_turns_and_change_who_is_first() -> None:
    clock = Clock()
    by(clock, clock.takes("o", 1.0), clock.takes("r", 1.0), rounds=3, calls=2)
    assert "".join(clock.log) == "ro" + "rroo" + "oorr" + "rroo"


def test_a_round_is_the_median_of_its_calls() -> None:
    clock = Clock()
    ours = clock.takes("ours", 0.0, 2.0, 90.0, 2.0)
    assert by(clock, ours, clock.takes("raw", 1.0), rounds=1, calls=3).value == 2.0


def test_several_clocks_see_the_same_calls() -> None:
    wall, half = Clock(), Clock()

    def takes(seconds: float) -> Callable[[], None]:
        def function() -> None:
            wall.now += seconds
            half.now += seconds / 2

        return function

    first, second = interleave(takes(3.0), takes(1.0), rounds=3, calls=2, clocks=[wall, half])
    assert (first.value, first.baseline, first.ratio) == (3.0, 1.0, 3.0)
    assert (second.value, second.baseline, second.ratio) == (1.5, 0.5, 3.0)


def test_the_action_after_a_call_is_not_measured() -> None:
    clock = Clock()

    def after() -> None:
        clock.log.append(".")
        clock.now += 100.0

    ours, baseline = clock.takes("o", 2.0), clock.takes("r", 1.0)
    (result,) = interleave(ours, baseline, rounds=1, calls=2, clocks=[clock], after=after)
    assert (result.value, result.baseline) == (2.0, 1.0)
    assert "".join(clock.log) == "r.o." + "r.r.o.o."
