# SPDX-License-Identifier: Apache-2.0
"""Results of a benchmark: rows, each a number with its baseline and its goal, and their text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any, Literal

from minrpc.reports.markdown import table

from minrpc_bench.paired import Paired

Group = Literal["round trip", "copy", "start", "size", "instructions", "counters", "load", "wall", "serve"]
Verdict = Literal["met", "missed", ""]


@dataclass(frozen=True, slots=True)
class Goal:
    """A limit, `at most` or `at least`, of the row's ratio, or of its value."""

    kind: Literal["at most", "at least"]
    limit: float
    subject: Literal["ratio", "value"] = "ratio"

    def met_by(self, number: float) -> bool:
        """True if `number` is within the limit."""
        return number <= self.limit if self.kind == "at most" else number >= self.limit


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    unit: of `value` and `baseline`.
    ratio: value to baseline.
    spread: median absolute deviation of the ratio over the rounds.
    """

    group: Group
    name: str
    platform: str
    unit: str
    value: float
    baseline: float | None = None
    ratio: float | None = None
    spread: float | None = None
    goal: Goal | None = None
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """The word "met" or "missed"; "" without a goal."""
        number = self.value if self.goal and self.goal.subject == "value" else self.ratio
        if self.goal is None or number is None:
            return ""
        return "met" if self.goal.met_by(number) else "missed"


@dataclass(frozen=True, slots=True)
class SourceSize:
    """Size of a compiled source file of the firmware's runtime, in bytes.

    text: code and constants; data: set at the start; bss: zero at the start.
    stack: the largest frame, of the function `deepest`.
    """

    file: str
    text: int
    data: int
    bss: int
    stack: int
    deepest: str


@dataclass(frozen=True, slots=True)
class Report:
    """One run of `minrpc bench`.

    about: versions and the machine, which the numbers depend on.
    failures: the reason, by the part that could not be measured.
    """

    about: Mapping[str, str]
    rows: Sequence[Row]
    sizes: Sequence[SourceSize] = ()
    failures: Mapping[str, str] = field(default_factory=dict)

    def content(self) -> dict[str, Any]:
        """The keys of the command's JSON document."""
        return asdict(self)


def time_row(
    group: Group, name: str, platform: str, result: Paired, goal: Goal | None = None, note: str = ""
) -> Row:
    """A row of times, in microseconds."""
    value, baseline = result.value * 1e6, result.baseline * 1e6
    return Row(group, name, platform, "us", value, baseline, result.ratio, result.spread, goal, note)


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
