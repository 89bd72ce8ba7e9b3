# SPDX-License-Identifier: Apache-2.0
"""Draws a model's run: the time of each operator, in a column for each platform."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from minrpc.extension import new_figure, quantity, save_figure

from minrpc_models.models import ModelRun

_BAR: Final = "#1c7ed6"
_LONGEST: Final = 40


def draw_runs(runs: Mapping[str, ModelRun], target: Path) -> None:
    """Draw the operators' times in seconds, in order from the top. runs: by platform."""
    first = next(iter(runs.values()))
    names = [
        f"{number} {name if len(name) <= _LONGEST else name[:_LONGEST] + '...'}"
        for number, name in enumerate(operator.function for operator in first.operators)
    ]
    figure = new_figure(3.5 + 4.0 * len(runs), 1.5 + 0.25 * len(names))
    figure.suptitle(first.name, fontsize=9)
    for column, (platform, run) in enumerate(runs.items()):
        axes = figure.add_subplot(1, len(runs), column + 1)
        seconds = [run.whole.clock.seconds(operator.ticks) for operator in run.operators]
        bars = axes.barh(range(len(names)), seconds, color=_BAR)
        axes.bar_label(
            bars, [f"{run.share(operator):.1%}" for operator in run.operators], padding=2, fontsize=7
        )
        axes.margins(x=0.15)
        axes.set_yticks(range(len(names)), names if not column else [""] * len(names), fontsize=7)
        axes.invert_yaxis()
        axes.set_xlabel("s")
        axes.set_title(f"{platform}: {quantity(run.whole.clock.seconds(run.ticks), 's')} a run", fontsize=9)
    save_figure(figure, target)
