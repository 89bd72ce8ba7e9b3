# SPDX-License-Identifier: Apache-2.0
"""Rows, their goals, their text and their document."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from minrpc.reports.document import to_text
from minrpc.reports.markdown import table
from minrpc_bench.paired import pair
from minrpc_bench.rows import (
    Goal,
    Report,
    Row,
    SourceSize,
    notes,
    number,
    report_text,
    rows_table,
    sizes_table,
    time_row,
)

TRIP = Row("round trip", "inc", "posix", "us", 40.0, 20.0, 2.0, 0.1, Goal("at most", 2.5), "raw: an echo")
TEXT = Row("size", "text", "Cortex-M3", "bytes", 8000.0, goal=Goal("at most", 8191, "value"))
ARENA = SourceSize("arena.c", 500, 0, 4, 40, "alloc")
COPY = SourceSize("copy.c", 1000, 8, 0, 80, "locate")


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
    kept = json.loads(to_text(Report({}, [row(ratio=2.0)], [ARENA]).content()))
    assert kept["rows"][0]["ratio"] == 2.0
    assert kept["sizes"][0]["deepest"] == "alloc"


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_table_is_aligned_markdown() -> None:
    text = table(("what", "n"), [("a", "1"), ("long", "1000")], right={1})
    assert text.splitlines() == ["| what |    n |", "| ---- | ---: |", "| a    |    1 |", "| long | 1000 |"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (8191.0, "8191"), (123456.7, "123457"), (56.789, "56.79"), (0.01234, "0.0123"), (0.0, "0")],
)
def test_numbers(value: float | None, text: str) -> None:
    assert number(value) == text


def test_a_row_says_ratio_goal_and_verdict() -> None:
    line = cells(rows_table([TRIP]).splitlines()[2])
    assert line == ["round trip: inc", "posix", "us", "40", "20", "2.000", "0.100", "at most 2.5", "met"]


def test_a_note_is_said_once() -> None:
    assert notes([TRIP, replace(TRIP, name="add"), TEXT]) == ["inc, add: raw: an echo"]


def test_sizes_have_sums() -> None:
    lines = sizes_table([ARENA, COPY]).splitlines()
    assert cells(lines[2]) == ["arena.c", "500", "0", "4", "40", "alloc"]
    assert cells(lines[-1]) == ["all", "1500", "8", "4", "", ""]


def test_all_of_a_report_is_shown() -> None:
    text = report_text(Report({"machine": "a PC"}, [TRIP], [ARENA]))
    for part in ("machine: a PC", "round trip: inc", "raw: an echo", "arena.c"):
        assert part in text
