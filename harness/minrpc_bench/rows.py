# SPDX-License-Identifier: Apache-2.0
"""Results of a benchmark: rows, each a number with its baseline and its goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

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
