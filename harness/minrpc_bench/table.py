# SPDX-License-Identifier: Apache-2.0
"""Results as text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from minrpc.reports.markdown import table

from minrpc_bench.rows import Report, Row, SourceSize


def number(value: float | None) -> str:
    """Three or four significant digits; whole numbers in full."""
    if value is None:
        return ""
    if value == int(value) or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.4g}" if abs(value) >= 1 else f"{value:.3g}"


def rows_table(rows: Sequence[Row]) -> str:
    """Every row with its baseline, ratio and goal."""
    head = ("row", "platform", "unit", "value", "baseline", "ratio", "+/-", "goal", "")
    return table(head, map(_cells, rows), right=frozenset({3, 4, 5, 6}))


def _cells(row: Row) -> tuple[str, ...]:
    ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
    spread = "" if row.spread is None else f"{row.spread:.3f}"
    numbers = (number(row.value), number(row.baseline), ratio, spread)
    goal = f"{row.goal.kind} {row.goal.limit:g}" if row.goal else ""
    return (f"{row.group}: {row.name}", row.platform, row.unit, *numbers, goal, row.verdict)


def sizes_table(sizes: Sequence[SourceSize]) -> str:
    """Every source with its size and its deepest frame, and the sums."""
    head = ("file", "text", "data", "bss", "largest frame", "of function")
    lines = [
        (size.file, str(size.text), str(size.data), str(size.bss), str(size.stack), size.deepest)
        for size in sizes
    ]
    sums = [str(sum(getattr(size, field) for size in sizes)) for field in ("text", "data", "bss")]
    return table(head, [*lines, ("all", *sums, "", "")], right=frozenset({1, 2, 3, 4}))


def notes(rows: Sequence[Row]) -> list[str]:
    """Notes on the rows' numbers, each once with the names of its rows."""
    noted = sorted((row for row in rows if row.note), key=lambda row: row.note)
    return [
        f"{', '.join(dict.fromkeys(row.name for row in same))}: {note}"
        for note, same in groupby(noted, key=lambda row: row.note)
    ]


def report_text(report: Report) -> str:
    """The text of a whole report."""
    parts = ["\n".join(f"{name}: {value}" for name, value in report.about.items())]
    if report.rows:
        parts += [rows_table(report.rows), "\n".join(notes(report.rows))]
    if report.sizes:
        parts.append(sizes_table(report.sizes))
    return "\n\n".join(parts)
