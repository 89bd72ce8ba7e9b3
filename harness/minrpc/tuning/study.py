# SPDX-License-Identifier: Apache-2.0
"""A study: a kernel measured for all combinations of sizes, macros, flags and platforms, as a table."""

from __future__ import annotations

import csv
import inspect
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from minrpc.cycles import core_or_reason
from minrpc.errors import ConfigurationError, HarnessError
from minrpc.firmware import Firmware, build
from minrpc.reports.figures import check_target, new_figure, save_figure
from minrpc.reports.markdown import table
from minrpc.targets import Target
from minrpc.tuning.candidates import CandidateResult, Space
from minrpc.tuning.judging import candidate_limit_s
from minrpc.tuning.kernel import Kernel
from minrpc.tuning.tune import tune

Values = Mapping[str, Sequence[object]]


@dataclass(frozen=True)
class Study:
    """The results of a study.

    varied: names of the varied parameters, "platform" first. rows: a value for each column by name: the
        varied parameters, outcome, ticks of the device's clock and seconds of a call, code_bytes,
        frame_bytes, counters. A failed measurement has its reason as outcome, and no numbers.
    estimates: the source of core cycles and their error, a line, by platform; empty without cycles.
    """

    varied: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    estimates: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def numpy(self) -> npt.NDArray[np.void]:
        """A structured array; a number that a row lacks is NaN."""
        lacking = {name: np.nan if name not in self.varied else "" for name in self.columns}
        columns = {
            name: np.array([row.get(name, lacking[name]) for row in self.rows]) for name in self.columns
        }
        array = np.empty(len(self.rows), [(name, values.dtype) for name, values in columns.items()])
        for name, values in columns.items():
            array[name] = values
        return array

    def csv(self) -> str:
        """The table as CSV with a line of names."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()

    def markdown(self) -> str:
        """The table in Markdown, and below it the source of core cycles."""
        names = self.columns
        numbers = {at for at, name in enumerate(names) if name not in (*self.varied, "outcome")}
        lines = [[_shown(row.get(name, "")) for name in names] for row in self.rows]
        notes = (f"{platform}: cycles are an {about}." for platform, about in self.estimates.items())
        return "\n\n".join([table(names, lines, numbers), *notes])

    def plot(self, target: str | Path, x: str = "", y: str = "ticks") -> None:
        """Draws `y` over the parameter `x`, by default the first varied parameter beside the platform; a line
        for each combination of the other parameters. target: a PNG, SVG or PDF.

        Raises ConfigurationError without matplotlib, for an unknown column, and for another kind of file.
        """
        check_target(Path(target))
        x = x or next((name for name in self.varied if name != "platform"), "platform")
        for name in (x, y):
            if name not in self.columns:
                raise ConfigurationError(
                    f"the study has no column {name}", next_step=f"take one of {', '.join(self.columns)}"
                )
        figure = new_figure(7.0, 4.5)
        axes = figure.subplots()
        for label, points in self._lines(x, y).items():
            axes.plot([at for at, _ in points], [value for _, value in points], "o-", label=label)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        if any(axes.get_legend_handles_labels()):
            axes.legend(fontsize=8)
        save_figure(figure, Path(target))

    def _lines(self, x: str, y: str) -> dict[str, list[tuple[Any, float]]]:
        lines: dict[str, list[tuple[Any, float]]] = {}
        for row in self.rows:
            if y in row:
                label = " ".join(f"{name}={row[name]}" for name in self.varied if name != x)
                lines.setdefault(label, []).append((_number(row[x]), row[y]))
        return lines


# Columns besides the columns of parameters and counters.
_COLUMNS: Final = frozenset({"platform", "outcome", "ticks", "seconds", "code_bytes", "frame_bytes"})


def study(
    kernel: Kernel | Callable[..., Kernel],
    over: Values,
    platforms: Iterable[str | Target],
    jobs: int = 1,
    names: Sequence[str] | None = None,
    *,
    call_timeout_s: float | None = None,
) -> Study:
    """Measure a kernel for all combinations, on `jobs` devices of a platform side by side.

    kernel: the kernel; or a function that makes it from its parameters, such as sizes of arrays.
    over: the values of each name. "flags" are sets of compiler flags, "-O3 -funroll-loops"; the function's
        parameters are passed to it; all other names are macros.
    names: the function's parameters; by default those of its signature.
    call_timeout_s: time limit of a call, in seconds of the device's time; by default the target's, at most
        10.

    A candidate that fails has a row with the reason, and so has each combination on a platform that can't be
    built, started or counted. If all platforms fail, raises the first one's error.
    """
    if names is None:
        names = [] if isinstance(kernel, Kernel) else list(inspect.signature(kernel).parameters)
    made = list(names)
    if lacking := [name for name in made if name not in over]:
        raise ConfigurationError(f"the study has no values for {', '.join(lacking)}", next_step="give some")
    _require_free(over, _COLUMNS)
    macros = {name: [str(value) for value in over[name]] for name in over if name not in (*made, "flags")}
    flags = [tuple(str(given).split()) for given in over.get("flags", [""])]
    varied = (*made, *(name for name in over if name not in made))
    kernels = _kernels(kernel, made, over)
    rows: list[dict[str, Any]] = []
    estimates: dict[str, str] = {}
    failures: list[HarnessError] = []
    targets = [named if isinstance(named, Target) else Target.named(named) for named in platforms]
    for target in targets:
        try:
            limit_s = candidate_limit_s(target, call_timeout_s)
            target_rows = _measured(kernels, Space(macros, flags), over, build(target), jobs, limit_s)
        except HarnessError as error:
            failures.append(error)
            target_rows = _failed(varied, made, over, error)
        rows += [{"platform": target.name, **row} for row in target_rows]
        core, _ = core_or_reason(target.platform)
        if core and any("cycles" in row for row in target_rows):
            estimates[target.name] = core.about
    if len(failures) == len(targets) > 0:
        raise failures[0]
    return Study(("platform", *varied), tuple(rows), estimates)


def _kernels(
    kernel: Kernel | Callable[..., Kernel], names: Sequence[str], over: Values
) -> list[tuple[dict[str, object], Kernel]]:
    """The kernels of all values of `names`, with these values."""
    given = [dict(zip(names, values, strict=True)) for values in product(*(over[name] for name in names))]
    return [(values, kernel if isinstance(kernel, Kernel) else kernel(**values)) for values in given]


def _measured(
    kernels: Sequence[tuple[dict[str, object], Kernel]],
    space: Space,
    over: Values,
    firmware: Firmware,
    jobs: int,
    call_timeout_s: float,
) -> list[dict[str, Any]]:
    """The rows of a platform without its name."""
    return [
        {**given, **_row(result, over)}
        for given, kernel in kernels
        for result in sorted(
            tune(kernel, space, firmware, jobs=jobs, call_timeout_s=call_timeout_s), key=_candidate_number
        )
    ]


def _failed(
    varied: Sequence[str], made: Sequence[str], over: Values, error: HarnessError
) -> list[dict[str, Any]]:
    """The rows of a platform that failed as a whole."""
    columns = [over[name] if name in made else map(str, over[name]) for name in varied]
    return [
        {**dict(zip(varied, values, strict=True)), "outcome": f"failed: {error.message}"}
        for values in product(*columns)
    ]


def _require_free(over: Values, columns: Iterable[str]) -> None:
    """Raise ConfigurationError for a parameter with the name of another column."""
    if taken := [name for name in columns if name in over]:
        raise ConfigurationError(
            f"a study has a column {taken[0]} of its own: no parameter can have this name",
            next_step="rename the parameter",
        )


def _row(result: CandidateResult, over: Values) -> dict[str, Any]:
    given = dict(result.candidate.defines)
    if "flags" in over:
        given["flags"] = " ".join(result.candidate.flags)
    if not result.valid:
        return {**given, "outcome": f"{result.outcome}: {result.reason}"}
    _require_free(over, result.counters)
    return {
        **given,
        "outcome": result.outcome,
        "ticks": result.ticks,
        "seconds": result.seconds,
        "code_bytes": result.code_bytes,
        "frame_bytes": result.frame_bytes,
        **result.counters,
    }


def _candidate_number(result: CandidateResult) -> int:
    return result.candidate.number


def _shown(value: object) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def _number(value: object) -> object:
    """The number in a text, so that an axis has the order of numbers; another text unchanged."""
    try:
        return float(str(value))
    except ValueError:
        return str(value)
