# SPDX-License-Identifier: Apache-2.0
"""Statistics compared with scipy's, for any samples; and a million samples take seconds."""

import importlib
import itertools
import math
import random
import statistics
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from minrpc.check.leakage import welch_t
from minrpc.timing import Interval, samples_needed, summarize
from minrpc.timing.significance import least_p, mann_whitney, shift
from minrpc.timing.summary import MAD_TO_STD, least_samples, outliers
from minrpc.timing.trend import ALL_PAIRS, falling, kendall_score, mann_kendall, theil_slope

# Samples with and without ties.
SAMPLES = st.one_of(
    st.lists(st.integers(1, 8).map(float), min_size=1, max_size=60),
    st.lists(st.floats(1, 1e9), min_size=1, max_size=60),
)


@cache
def stats() -> Any:  # noqa: ANN401 - a module without types
    """scipy.stats, imported on first use: the import takes a second, and each worker collects this file."""
    return importlib.import_module("scipy.stats")


def noise(seed: int, count: int, step: float = 0.0) -> list[float]:
    """Skewed samples, like times; with a `step` they are its multiples, so that many are equal."""
    values = 1000 + np.random.default_rng(seed).exponential(10, count)
    return [float(value) for value in (np.round(values / step) * step if step else values)]


@given(SAMPLES)
def test_location_and_spread(samples: list[float]) -> None:
    summary = summarize(samples)
    assert summary.median == statistics.median(samples)
    assert summary.mad == stats().median_abs_deviation(samples)
    assert summary.mean == pytest.approx(statistics.fmean(samples), rel=1e-14)
    expected = statistics.stdev(samples) if len(samples) > 1 else 0.0
    assert summary.std == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert (summary.min, summary.max) == (min(samples), max(samples))


@given(SAMPLES)
def test_the_interval_is_that_of_the_binomial_distribution(samples: list[float]) -> None:
    """The interval's ranks are the largest that scipy's distribution allows."""
    interval, count, ordered = summarize(samples).interval, len(samples), sorted(samples)
    ranks = [rank for rank in range(count // 2) if 1 - 2 * stats().binom.cdf(rank, count, 0.5) >= 0.95]
    if not ranks:
        assert interval is None
        return
    assert interval is not None
    assert (interval.low, interval.high) == (ordered[ranks[-1]], ordered[count - 1 - ranks[-1]])
    assert interval.confidence == pytest.approx(1 - 2 * stats().binom.cdf(ranks[-1], count, 0.5), abs=1e-9)


@pytest.mark.parametrize("count", [100, 5_000, 200_000])
def test_the_interval_of_many(count: int) -> None:
    interval = summarize([float(rank) for rank in range(count)]).interval
    assert interval is not None
    low = int(stats().binom.ppf(0.025, count, 0.5)) - 1
    assert (interval.low, interval.high) == (low, count - 1 - low)


@given(SAMPLES, st.floats(0, 10))
def test_outliers_by_the_modified_z_score(samples: list[float], resolution: float) -> None:
    middle, mad = np.median(samples), stats().median_abs_deviation(samples)
    limit = max(3.5 * MAD_TO_STD * mad, resolution) + middle * 1e-12
    expected = [at for at, sample in enumerate(samples) if abs(sample - middle) > limit]
    assert list(outliers(samples, resolution)) == expected


@given(SAMPLES)
def test_a_score_counts_the_pairs_that_rise_and_fall(samples: list[float]) -> None:
    pairs = list(itertools.combinations(samples, 2))
    fall = sum(pair > other for pair, other in pairs)
    assert falling(np.array(samples)) == fall
    assert kendall_score(np.array(samples)) == sum(pair < other for pair, other in pairs) - fall


@given(SAMPLES)
def test_mann_and_kendall(samples: list[float]) -> None:
    """Scipy has no correction for continuity: the corrected distance is scipy's minus one pair."""
    count = len(samples)
    if count < 4 or len(set(samples)) == 1:
        return
    scipy = stats().kendalltau(range(count), samples, method="asymptotic")
    z = stats().norm.isf(scipy.pvalue / 2)
    score = abs(kendall_score(np.array(samples)))
    expected = 2 * stats().norm.sf(z * (score - 1) / score) if score else 1.0
    assert mann_kendall(np.array(samples)) == pytest.approx(min(1.0, expected), rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_mann_and_kendall_beside_the_exact_probability(seed: int) -> None:
    """With the correction for continuity the approximation is within 0.015 even for 10 samples."""
    samples = noise(seed, 10)
    exact = stats().kendalltau(range(10), samples, method="exact").pvalue
    assert mann_kendall(np.array(samples)) == pytest.approx(exact, abs=0.015)


@given(SAMPLES.filter(lambda samples: len(samples) > 1))
def test_the_slope_of_all_pairs(samples: list[float]) -> None:
    expected = stats().theilslopes(samples, range(len(samples))).slope
    assert theil_slope(np.array(samples)) == pytest.approx(expected, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("count", [ALL_PAIRS, ALL_PAIRS + 1, ALL_PAIRS + 2])
def test_the_slope_of_many_lies_where_that_of_all_pairs_does(count: int) -> None:
    samples = [value + index / 10 for index, value in enumerate(noise(3, count))]
    all_pairs = stats().theilslopes(samples, range(count), 0.99)
    assert all_pairs.low_slope < theil_slope(np.array(samples)) < all_pairs.high_slope
    assert theil_slope(np.arange(0.0, 2.0 * count, 2.0)) == 2.0


@given(SAMPLES, SAMPLES)
def test_mann_and_whitney(base: list[float], head: list[float]) -> None:
    exact = len(set(base) | set(head)) == len(base) + len(head) <= 40
    if len(set(base) | set(head)) == 1:
        assert mann_whitney(base, head) == 1.0
        return
    scipy = stats().mannwhitneyu(base, head, method="exact" if exact else "asymptotic")
    assert mann_whitney(base, head) == pytest.approx(scipy.pvalue, rel=1e-6)


@given(SAMPLES, SAMPLES)
def test_the_shift_is_the_median_of_all_differences(base: list[float], head: list[float]) -> None:
    assert shift(base, head) == statistics.median(other - row for row in base for other in head)


@pytest.mark.parametrize("step", [0.0, 0.1, 1.0, 100.0])
@pytest.mark.parametrize(("base", "head"), [(2000, 3000), (2001, 2999), (1, 5000)])
def test_the_shift_where_differences_are_too_many_to_be_made(base: int, head: int, step: float) -> None:
    item, other = noise(1, base, step), noise(2, head, step)
    expected = float(np.median(np.subtract.outer(other, item)))
    assert shift(item, other) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_welchs_t_of_each_column() -> None:
    numbers = np.random.default_rng(1)
    a, b = numbers.normal(0, 1, (40, 5)), numbers.normal(1, 3, (60, 5))
    assert welch_t(a, b) == pytest.approx(stats().ttest_ind(a, b, equal_var=False).statistic)


def test_the_least_probability() -> None:
    for base, head in [(3, 3), (5, 2), (20, 20), (20, 21), (100, 30)]:
        assert least_p(base, head) == pytest.approx(2 / math.comb(base + head, base), rel=1e-9)
    assert least_p(1_000_000, 1_000_000) == 0.0


@pytest.mark.slow
def test_a_million_samples() -> None:
    """A quadratic algorithm would take terabytes."""
    rng, count = random.Random(5), 1_000_000
    base = [rng.expovariate(1) for _ in range(count)]
    head = [value + 0.25 for value in base]
    summary = summarize(head)
    assert summary.median == pytest.approx(math.log(2) + 0.25, abs=0.01)
    assert summary.drift is not None
    assert not summary.drift.significant
    assert shift(base, head) == pytest.approx(0.25, abs=0.015)
    assert mann_whitney(base, head) < 1e-9


def test_the_deviation_of_normal_samples_comes_out_of_their_median_one() -> None:
    """Half of all normal samples are nearer to the median than this part of a standard deviation."""
    assert pytest.approx(1 / stats().norm.ppf(0.75), abs=5e-5) == MAD_TO_STD


def test_half_of_an_interval() -> None:
    assert Interval(1.0, 2.5, 0.95).half_width == 0.75


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


def test_samples_that_agree_are_known_no_better_than_the_clock() -> None:
    assert summarize([100.0] * 10, resolution=2.0).precision == 0.02


def test_samples_needed_grow_with_the_square() -> None:
    summary = summarize([float(value) for value in range(100, 120)])
    assert samples_needed(summary, summary.precision / 2) == 80
    assert samples_needed(summary, summary.precision / 3) == pytest.approx(180, abs=1)
    assert samples_needed(summarize([1.0, 2.0]), 0.01) == least_samples()
    assert samples_needed(summarize([1.0] * 5), 0.01) == 10
    assert samples_needed(summarize([0.0] * 9 + [1.0]), 0.01) == least_samples()
    assert samples_needed(summarize([-1.0] * 5 + [0.0] + [1.0] * 5), 0.01) == 22


def test_the_least_probability_is_one_at_most() -> None:
    assert least_p(1, 1) == 1.0
    assert least_p(1, 0) == 1.0
    assert least_p(0, 100) == 1.0
