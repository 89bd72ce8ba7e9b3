# SPDX-License-Identifier: Apache-2.0
"""What a benchmark gives: rows, each a number with its baseline and its goal. Kept as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from minrpc.errors import ConfigurationError
from minrpc.reports.document import document, parse, to_text

from minrpc_bench.paired import Paired

_COMMAND: Final = "bench"

Group = Literal[
    "round trip",
    "copy",
    "wire",
    "boot",
    "open",
    "cpu",
    "start-up",
    "resend",
    "suite",
    "size",
    "instructions",
    "counters",
    "load",
    "direct",
    "tune",
    "tvm",
]
Verdict = Literal["met", "missed", ""]


@dataclass(frozen=True, slots=True)
class Goal:
    """What is aimed at: `subject` (the ratio, or the value itself) at most, or at least, `limit`."""

    kind: Literal["at most", "at least"]
    limit: float
    subject: Literal["ratio", "value"] = "ratio"

    def met_by(self, number: float) -> bool:
        """Whether `number` is within it."""
        return number <= self.limit if self.kind == "at most" else number >= self.limit


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    unit: of `value` and `baseline`.
    ratio: value to baseline; for a throughput "at least" goals count, for times "at most".
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
    def key(self) -> tuple[str, str, str]:
        """What the same row of another run has in common with this one."""
        return self.group, self.platform, self.name

    @property
    def verdict(self) -> Verdict:
        """Whether the goal is met; "" where there is none."""
        number = self.value if self.goal and self.goal.subject == "value" else self.ratio
        if self.goal is None or number is None:
            return ""
        return "met" if self.goal.met_by(number) else "missed"


@dataclass(frozen=True, slots=True)
class SourceSize:
    """What one source file of the firmware's runtime compiles to, in bytes.

    text: code and constants; data: set at the start; bss: zero at the start.
    stack: the deepest single frame, of the function `deepest`.
    functions: every function's own frame.
    """

    file: str
    text: int
    data: int
    bss: int
    stack: int
    deepest: str
    functions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """One run of `minrpc bench`.

    about: versions and the machine: what a reader needs to judge the numbers.
    failures: what could not be measured, and why.
    """

    about: Mapping[str, str]
    rows: Sequence[Row]
    sizes: Sequence[SourceSize] = ()
    failures: Mapping[str, str] = field(default_factory=dict)

    def content(self) -> dict[str, Any]:
        """For a document of `minrpc bench`."""
        return asdict(self)

    def to_json(self) -> str:
        """As `from_json` reads it."""
        return to_text(document(_COMMAND, self.content(), passed=not self.failures))


def time_row(
    group: Group, name: str, platform: str, result: Paired, goal: Goal | None = None, note: str = ""
) -> Row:
    """A row of times, in microseconds."""
    return Row(
        group=group,
        name=name,
        platform=platform,
        unit="us",
        value=result.value * 1e6,
        baseline=result.baseline * 1e6,
        ratio=result.ratio,
        spread=result.spread,
        goal=goal,
        note=note,
    )


def from_json(text: str) -> Report:
    """Read what `Report.to_json` wrote. Raises ValueError for anything else."""
    found = parse(text, _COMMAND)
    try:
        rows = [_row(fields) for fields in found["rows"]]
        sizes = [SourceSize(**fields) for fields in found["sizes"]]
        return Report(found["about"], rows, sizes, found["failures"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"a result of minrpc bench with damaged fields: {error}") from error


def _row(fields: Mapping[str, Any]) -> Row:
    goal = fields["goal"]
    return Row(**{**fields, "goal": Goal(**goal) if goal else None})


def load(path: Path) -> Report:
    """The report in the file. Raises ConfigurationError when there is none."""
    try:
        return from_json(path.read_text())
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{path} can't be read as a benchmark's result: {error}",
            next_step="name a file that `minrpc bench --json FILE` wrote",
        ) from error
