# SPDX-License-Identifier: Apache-2.0
"""Rows of times on the host's clock, by measurements with a known truth."""

from __future__ import annotations

import random

from minrpc import DeviceClock, Measurement, Sample
from minrpc.timing import Overhead, Timebase
from minrpc_bench.wall_clock import alarms, covered, rows

CLOCK: DeviceClock = Timebase(mode="wall", source="CLOCK_MONOTONIC").clock(1_000_000_000)


def measured(random_source: random.Random, center: float) -> Measurement:
    """Ten starts around `center`, each with ten repeats that are alike: as on a busy host."""
    samples = [
        Sample(round(start + random_source.gauss(0, 10)), 1, process=process)
        for process, start in enumerate(random_source.gauss(center, 1000) for _ in range(10))
        for _ in range(10)
    ]
    return Measurement(name="add", clock=CLOCK, samples=tuple(samples), overhead=Overhead(0.0, 0.0))


def test_intervals_of_starts_hold_and_those_of_one_start_do_not() -> None:
    source = random.Random(0)
    same = [measured(source, 100_000) for _ in range(400)]
    holds, differs = rows("posix", [same])
    assert 96 < holds.value < 99.5
    assert differs.value < 1
    assert holds.baseline is not None
    assert differs.baseline is not None
    assert holds.baseline < 20
    assert differs.baseline > 20
    assert (holds.verdict, differs.verdict) == ("met", "met")


def test_a_drifting_host_misses_the_goals() -> None:
    source = random.Random(0)
    drifting = [measured(source, 100_000 + 5000 * place) for place in range(40)]
    assert alarms([drifting]) > 50
    assert covered([drifting]) < 20
