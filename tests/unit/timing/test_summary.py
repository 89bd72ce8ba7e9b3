# SPDX-License-Identifier: Apache-2.0
"""Statistics, compared with published values and with laws for any samples."""

import math
import random
import statistics

import pytest
from hypothesis import given, strategies as st
from minrpc.timing import Interval, samples_needed, summarize
from minrpc.timing.significance import least_p, mann_whitney, shift
from minrpc.timing.summary import least_samples, median_interval, outliers

SAMPLES = st.lists(st.floats(1, 1e9), min_size=1, max_size=40)


def test_of_a_known_set() -> None:
    summary = summarize([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    assert (summary.count, summary.median, summary.mean) == (8, 4.5, 5.0)
    assert (summary.mad, summary.min, summary.max) == (0.5, 2.0, 9.0)
    assert summary.std == pytest.approx(2.13809, rel=1e-5)  # ddof=1


def test_half_of_an_interval() -> None:
    assert Interval(1.0, 2.5, 0.95).half_width == 0.75


@given(SAMPLES)
def test_whatever_the_samples(samples: list[float]) -> None:
    summary = summarize(samples)
    assert summary.min <= summary.median <= summary.max
    assert 0 <= summary.mad <= summary.max - summary.min
    if summary.interval is not None:
        assert summary.interval.low <= summary.median <= summary.interval.high
        assert summary.interval.confidence >= 0.95
    assert (summary.interval is None) == (len(samples) < least_samples())


@pytest.mark.parametrize(
    ("count", "low", "high", "confidence"),
    # Ranks from the tables of the binomial confidence interval for a median (Hollander & Wolfe, table A.2).
    [(6, 1, 6, 0.96875), (10, 2, 9, 0.97852), (20, 6, 15, 0.95861)],
)
def test_the_interval_has_the_ranks_of_the_tables(count: int, low: int, high: int, confidence: float) -> None:
    interval = median_interval([float(rank) for rank in range(1, count + 1)])
    assert interval is not None
    assert (interval.low, interval.high) == (low, high)
    assert interval.confidence == pytest.approx(confidence, abs=1e-5)


def test_the_interval_covers_as_often_as_it_says() -> None:
    """It covers the median of a skewed distribution, too: no shape is assumed."""
    rng = random.Random(7)
    true = math.log(2)
    intervals = [median_interval([rng.expovariate(1) for _ in range(15)]) for _ in range(2000)]
    covered = (
        sum(interval is not None and interval.low <= true <= interval.high for interval in intervals) / 2000
    )
    assert covered == pytest.approx(0.9648, abs=0.015)


def test_an_outlier_is_named_by_its_place() -> None:
    assert outliers([10.0, 10.1, 9.9, 10.0, 25.0, 10.1]) == (4,)
    assert outliers([10.0, 11.0, 9.0, 10.5, 9.5]) == ()


def test_what_the_resolution_explains_is_no_outlier() -> None:
    equal_but_one = [100.0] * 9 + [101.0]
    assert outliers(equal_but_one) == (9,)
    assert outliers(equal_but_one, resolution=1.0) == ()


def test_a_trend_is_seen_and_noise_is_not() -> None:
    rng = random.Random(3)
    rising = summarize([100 + index + rng.gauss(0, 1) for index in range(30)]).drift
    level = summarize([100 + rng.gauss(0, 1) for index in range(30)]).drift
    assert rising is not None
    assert rising.significant
    assert rising.slope == pytest.approx(1, abs=0.1)
    assert level is not None
    assert not level.significant


def test_equal_samples_have_no_trend_and_are_known_exactly() -> None:
    summary = summarize([42.0] * 10)
    assert summary.drift is not None
    assert not summary.drift.significant
    assert summary.precision == 0.0
    assert samples_needed(summary, 0.01) == least_samples()


def test_four_times_the_samples_for_half_the_interval() -> None:
    summary = summarize([float(value) for value in range(100, 120)])
    assert samples_needed(summary, summary.precision / 2) == 80
    assert samples_needed(summarize([1.0, 2.0]), 0.01) == least_samples()


def test_samples_that_agree_are_known_no_better_than_the_clock() -> None:
    assert summarize([100.0] * 10, resolution=2.0).precision == 0.02


@pytest.mark.parametrize(
    ("base", "head", "p_value"),
    # The first two are counted by hand: 2/C(6,3), 2 * 2/C(6,3). The third is from scipy.stats.mannwhitneyu.
    [
        ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], 0.1),
        ([1.0, 2.0, 4.0], [3.0, 5.0, 6.0], 0.2),
        ([19.0, 22.0, 16.0, 29.0, 24.0], [20.0, 11.0, 17.0, 12.0], 0.1111111),
    ],
)
def test_mann_whitney_counted_out(base: list[float], head: list[float], p_value: float) -> None:
    assert mann_whitney(base, head) == pytest.approx(p_value, abs=1e-6)
    assert mann_whitney(head, base) == pytest.approx(p_value, abs=1e-6)


def test_mann_whitney_with_ties() -> None:
    assert mann_whitney([1.0] * 10, [1.0] * 10) == 1.0
    assert mann_whitney([1.0] * 10, [2.0] * 10) < 1e-4


def test_mann_whitney_cries_wolf_as_rarely_as_it_says() -> None:
    rng = random.Random(11)
    same = [[rng.expovariate(1) for _ in range(12)] for _ in range(1000)]
    alarms = sum(mann_whitney(item, other) < 0.05 for item, other in zip(same[::2], same[1::2], strict=True))
    assert alarms / 500 < 0.08


def test_the_shift_is_by_how_much() -> None:
    base = [10.0, 11.0, 12.0, 40.0]
    assert shift(base, [value + 3 for value in base]) == 3.0
    assert least_p(3, 3) == 0.1
    assert statistics.median(base) == 11.5


def test_samples_needed_grow_with_the_square() -> None:
    summary = summarize([float(value) for value in range(100, 120)])
    assert samples_needed(summary, summary.precision / 3) == pytest.approx(180, abs=1)
    assert samples_needed(summarize([1.0] * 5), 0.01) == 10
    assert samples_needed(summarize([0.0] * 9 + [1.0]), 0.01) == least_samples()
    assert samples_needed(summarize([-1.0] * 5 + [0.0] + [1.0] * 5), 0.01) == 22


def test_the_least_probability_is_one_at_most() -> None:
    assert least_p(1, 1) == 1.0
    assert least_p(1, 0) == 1.0
    assert least_p(0, 100) == 1.0
