# SPDX-License-Identifier: Apache-2.0
"""Ratios as a picture: a bar a row, from 1 to its ratio, and its goal as a mark. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from minrpc.errors import ConfigurationError
from minrpc.reports.figures import new_figure

from minrpc_bench.rows import Report, Row

_COLOURS: Final = {"met": "#2b8a3e", "missed": "#c92a2a", "": "#868e96"}


def draw(report: Report, target: Path) -> None:
    """Draw every row that has a ratio into the file, in the form that its suffix says."""
    rows = [row for row in report.rows if row.ratio is not None]
    if not rows:
        raise ConfigurationError(
            "no row of this run has a ratio to draw", next_step="measure more than sizes"
        )
    figure = new_figure(9.0, 1.2 + 0.32 * len(rows))
    axes = figure.subplots()
    _bars(axes, rows)
    _goals(axes, rows)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda ratio, _: f"{ratio:g}")
    axes.set_xlabel("ratio to the baseline of the same run; mark: goal")
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(target)


def _bars(axes: Any, rows: Sequence[Row]) -> None:  # noqa: ANN401
    labels = [f"{row.platform} {row.group}: {row.name}" for row in rows]
    places = range(len(rows))
    axes.barh(
        places,
        [(row.ratio or 0.0) - 1 for row in rows],
        left=1.0,
        xerr=[row.spread or 0.0 for row in rows],
        color=[_COLOURS[row.verdict] for row in rows],
        ecolor="#343a40",
    )
    axes.set_yticks(places, labels)
    axes.invert_yaxis()


def _goals(axes: Any, rows: Sequence[Row]) -> None:  # noqa: ANN401
    for place, row in enumerate(rows):
        if row.goal is not None:
            axes.plot([row.goal.limit] * 2, [place - 0.4, place + 0.4], color="black", linewidth=2)
