# SPDX-License-Identifier: Apache-2.0
"""Rows, goals and the file that they are kept in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from minrpc import ConfigurationError
from minrpc_bench.paired import pair
from minrpc_bench.rows import Goal, Report, Row, SourceSize, from_json, load, time_row

SIZES = SourceSize("arena.c", 504, 0, 4, 40, "minrpc_arena_alloc", {"minrpc_arena_alloc": 40, "grow": 8})


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


def test_a_report_survives_its_file(tmp_path: Path) -> None:
    report = Report({"machine": "any"}, [row(), row(2.0, 1.5, Goal("at most", 2.0))], [SIZES], {"x": "why"})
    file = tmp_path / "bench.json"
    file.write_text(report.to_json())
    assert load(file) == report


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"schema": 2}',
        '{"schema": 1}',
        '{"schema": 1, "about": {}, "rows": [{"goal": null}], "sizes": []}',
        '{"schema": 1, "about": {}, "rows": [], "sizes": [{"file": 1}]}',
        '{"schema": 1, "about": {}, "rows": [], "sizes": []}',
    ],
)
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"minrpc bench|Expecting"):
        from_json(text)


def test_a_file_that_is_none_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="can't be read") as caught:
        load(tmp_path / "missing.json")
    assert "--json" in caught.value.next_step


def test_json_is_for_other_programs_too() -> None:
    kept = json.loads(Report({}, [row(ratio=2.0)], [SIZES]).to_json())
    assert kept["rows"][0]["ratio"] == 2.0
    assert kept["sizes"][0]["functions"] == {"minrpc_arena_alloc": 40, "grow": 8}
