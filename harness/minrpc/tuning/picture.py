# SPDX-License-Identifier: Apache-2.0
"""Draws a tuning run: the search for the best result, and the results that no other result beats in all
figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from minrpc.reports.figures import new_figure, save_figure
from minrpc.tuning.candidates import CandidateResult, pareto

_ONE: Final = "#868e96"
_BEST: Final = "#1c7ed6"
_INVALID: Final = "#c92a2a"


def draw_results(title: str, results: Sequence[CandidateResult], target: Path) -> None:
    """Draws each result's cost in order of trial, with the best so far; and the cost against code size."""
    figure = new_figure(9.0, 4.0)
    order, plane = figure.subplots(1, 2)
    figure.suptitle(title, fontsize=9)
    valid = [(place, result) for place, result in enumerate(results, 1) if result.valid]
    order.plot(
        [place for place, _ in valid], [result.cost for _, result in valid], ".", color=_ONE, label="right"
    )
    least: list[float] = []
    for _, result in valid:
        least.append(min([result.cost, *least[-1:]]))
    order.step([place for place, _ in valid], least, where="post", color=_BEST, label="best so far")
    wrong = [place for place, result in enumerate(results, 1) if not result.valid]
    if wrong:
        bottom = min(least, default=0.0)
        order.plot(wrong, [bottom] * len(wrong), "x", color=_INVALID, label="invalid", markersize=4)
    order.set_xlabel("candidate")
    order.set_ylabel("ticks a call, or cycles of the core")
    front = pareto(results)
    plane.plot(
        [result.code_bytes for _, result in valid], [result.cost for _, result in valid], ".", color=_ONE
    )
    label = "not beaten in cost, code and stack"
    plane.plot(
        [result.code_bytes for result in front],
        [result.cost for result in front],
        "o",
        color=_BEST,
        label=label,
    )
    plane.set_xlabel("bytes of code")
    for axes in (order, plane):
        axes.ticklabel_format(useOffset=False)
        axes.legend(fontsize=8)
    save_figure(figure, target)
