# SPDX-License-Identifier: Apache-2.0
"""Rows, their goals and their document."""

from __future__ import annotations

import json

import pytest
from minrpc.reports.document import to_text
from minrpc_bench.paired import pair
from minrpc_bench.rows import Goal, Report, Row, SourceSize, time_row

SIZES = SourceSize("arena.c", 504, 0, 4, 40, "minrpc_arena_alloc")


def row(value: float = 1.0, ratio: float | None = None, goal: Goal | None = None) -> Row:
    return Row("copy", "up", "posix", "MiB/s", value, ratio=ratio, goal=goal)


@pytest.mark.parametrize(
    ("goal", "ratio", "value", "verdict"),
    [
        (Goal("at most", 2.0), 2.0, 99.0, "met"),
        (Goal("at most", 2.0), 2.01, 0.0, "missed"),
        (Goal("at least", 0.25), 0.25, 0.0, "met"),
        (Goal("at least", 0.25), 0.24, 9.0, "missed"),
        (Goal("at most", 8191, "value"), None, 8191, "met"),
        (Goal("at most", 8191, "value"), 1.0, 8192, "missed"),
        (Goal("at most", 2.0), None, 1.0, ""),
        (None, 1.0, 1.0, ""),
    ],
)
def test_verdicts(goal: Goal | None, ratio: float | None, value: float, verdict: str) -> None:
    assert row(value, ratio, goal).verdict == verdict


def test_times_are_rows_in_microseconds() -> None:
    made = time_row("round trip", "inc", "posix", pair([40e-6], [20e-6]), Goal("at most", 2.0))
    assert made.unit == "us"
    assert (made.value, made.baseline) == pytest.approx((40.0, 20.0))
    assert made.ratio == pytest.approx(2.0)


def test_json_is_for_other_programs() -> None:
    kept = json.loads(to_text(Report({}, [row(ratio=2.0)], [SIZES]).content()))
    assert kept["rows"][0]["ratio"] == 2.0
    assert kept["sizes"][0]["deepest"] == "minrpc_arena_alloc"
