# SPDX-License-Identifier: Apache-2.0
"""Results as text, and what changed between two."""

from __future__ import annotations

from dataclasses import replace

import pytest
from minrpc.reports.markdown import table
from minrpc_bench.compare import comparison
from minrpc_bench.rows import Goal, Report, Row, SourceSize
from minrpc_bench.table import notes, number, report_text, rows_table, sizes_table

TRIP = Row("round trip", "inc", "posix", "us", 40.0, 20.0, 2.0, 0.1, Goal("at most", 2.5), "raw: an echo")
TEXT = Row("size", "text", "Cortex-M3", "bytes", 8000.0, goal=Goal("at most", 8191, "value"))
ARENA = SourceSize("arena.c", 500, 0, 4, 40, "alloc", {"alloc": 40})
COPY = SourceSize("copy.c", 1000, 8, 0, 80, "locate", {"locate": 80})


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


def test_ratios_are_compared_where_there_are_any_else_values() -> None:
    base = Report({}, [TRIP, TEXT])
    head = Report({}, [replace(TRIP, value=400.0, ratio=1.0), replace(TEXT, value=8080.0)])
    lines = comparison(base, head).splitlines()
    assert cells(lines[2]) == ["round trip: inc", "posix", "ratio to baseline", "2", "1", "-50.0%"]
    assert cells(lines[3]) == ["size: text", "Cortex-M3", "bytes", "8000", "8080", "+1.0%"]


def test_rows_of_one_run_only_are_named() -> None:
    lines = comparison(Report({}, [TRIP]), Report({}, [TEXT])).splitlines()
    assert cells(lines[2])[-3:] == ["", "8000", "new"]
    assert cells(lines[3])[-3:] == ["2", "not measured", ""]


def test_growth_is_shown_by_file_and_in_sum() -> None:
    grown = replace(COPY, text=1100, stack=96)
    text = comparison(Report({}, [], [ARENA, COPY]), Report({}, [], [ARENA, grown]))
    lines = [cells(line) for line in text.splitlines() if "copy.c" in line or "all" in line]
    assert lines == [
        ["copy.c", "text", "1000", "1100", "+100"],
        ["copy.c", "stack", "80", "96", "+16"],
        ["all", "text", "1500", "1600", "+100"],
    ]
    assert "arena.c" not in text


def test_new_and_removed_files_count_from_and_to_nothing() -> None:
    text = comparison(Report({}, [], [ARENA]), Report({}, [], [COPY]))
    assert ["copy.c", "text", "0", "1000", "+1000"] in [cells(line) for line in text.splitlines()]
    assert ["arena.c", "text", "500", "0", "-500"] in [cells(line) for line in text.splitlines()]
