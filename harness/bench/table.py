# SPDX-License-Identifier: Apache-2.0
"""Results as text: Markdown tables, which read as well in a terminal as in a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from harness.bench.rows import Goal, Report, Row, SourceSize


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]], right: frozenset[int]) -> str:
    """A table with aligned columns; those in `right` are flush right."""
    cells = [list(head), *(list(line) for line in lines)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    rule = ["-" * (width - 1) + (":" if column in right else "-") for column, width in enumerate(widths)]
    return "\n".join(_line(line, widths, right) for line in (cells[0], rule, *cells[1:]))


def _line(line: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> str:
    padded = [
        cell.rjust(width) if column in right else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]
    return f"| {' | '.join(padded)} |"


def number(value: float | None) -> str:
    """Three or four digits that matter; whole numbers as they are."""
    if value is None:
        return ""
    if value == int(value) or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.4g}" if abs(value) >= 1 else f"{value:.3g}"


def goal_text(goal: Goal | None) -> str:
    """ "at most 2", "at least 0.25"."""
    return f"{goal.kind} {goal.limit:g}" if goal else ""


def rows_table(rows: Sequence[Row]) -> str:
    """Every row with its baseline, ratio and goal."""
    head = ("what", "platform", "unit", "value", "baseline", "ratio", "+/-", "goal", "")
    return markdown(head, map(_cells, rows), right=frozenset({3, 4, 5, 6}))


def _cells(row: Row) -> tuple[str, ...]:
    ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
    spread = "" if row.spread is None else f"{row.spread:.3f}"
    numbers = (number(row.value), number(row.baseline), ratio, spread)
    return (f"{row.group}: {row.name}", row.platform, row.unit, *numbers, goal_text(row.goal), row.verdict)


def sizes_table(sizes: Sequence[SourceSize]) -> str:
    """Every source with its size and its deepest frame, and the sums."""
    head = ("file", "text", "data", "bss", "largest frame", "of function")
    lines = [
        (one.file, str(one.text), str(one.data), str(one.bss), str(one.stack), one.deepest) for one in sizes
    ]
    sums = [str(sum(getattr(one, field) for one in sizes)) for field in ("text", "data", "bss")]
    return markdown(head, [*lines, ("all", *sums, "", "")], right=frozenset({1, 2, 3, 4}))


def notes(rows: Sequence[Row]) -> list[str]:
    """What the rows' numbers mean, each note once with its rows."""
    noted = sorted((row for row in rows if row.note), key=lambda row: row.note)
    return [
        f"{', '.join(dict.fromkeys(row.name for row in same))}: {note}"
        for note, same in groupby(noted, key=lambda row: row.note)
    ]


def report_text(report: Report) -> str:
    """All of a report."""
    parts = ["\n".join(f"{name}: {value}" for name, value in report.about.items())]
    if report.rows:
        parts += [rows_table(report.rows), "\n".join(notes(report.rows))]
    if report.sizes:
        parts.append(sizes_table(report.sizes))
    return "\n\n".join(parts)
