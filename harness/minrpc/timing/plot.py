# SPDX-License-Identifier: Apache-2.0
"""Plots the samples of one measurement, or two measurements for comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from minrpc.reports.figures import new_figure, save_figure
from minrpc.timing.compare import Change, Comparison
from minrpc.timing.measurement import Measurement
from minrpc.timing.record import TimingRecord

_COLOURS: Final = {"base": "#868e96", "head": "#1c7ed6", "outlier": "#c92a2a", "median": "#212529"}


def draw_samples(record: TimingRecord, target: Path) -> None:
    """The repeats in their order, or by process, with the median and its interval, and their distribution."""
    item = record.measurement
    figure = new_figure(9.0, 4.0)
    order, spread = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1))
    figure.suptitle(f"{record.call} on {record.platform}\n{item.clock}", fontsize=9)
    _draw_order(order, item)
    spread.hist(item.ticks_per_call, bins="auto", orientation="horizontal", color=_COLOURS["head"])
    spread.set_xlabel("repeats")
    save_figure(figure, target)


def _draw_order(axes: Any, measurement: Measurement) -> None:  # noqa: ANN401
    ticks, summary = measurement.ticks_per_call, measurement.summary
    by_process = measurement.summarized_by == "process"
    places = [sample.process if by_process else i for i, sample in enumerate(measurement.samples)]
    axes.plot([place + 1 for place in places], ticks, ".", color=_COLOURS["head"], label="repeat")
    if summary.outliers:
        far = [measurement.summarized[index] for index in summary.outliers]
        places = [index + 1 for index in summary.outliers]
        axes.plot(places, far, "o", markerfacecolor="none", color=_COLOURS["outlier"], label="outlier")
    axes.axhline(summary.median, color=_COLOURS["median"], linewidth=1, label="median")
    if summary.interval is not None:
        span = (summary.interval.low, summary.interval.high)
        axes.axhspan(*span, color=_COLOURS["head"], alpha=0.2, label="95 % interval")
    axes.set_xlabel(measurement.summarized_by)
    axes.set_ylabel("ticks per call")
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.legend(fontsize=8)


def draw_comparison(comparison: Comparison, target: Path) -> None:
    """One panel for each call that both sets have: all samples of both, and their medians."""
    changes = [change for change in comparison.changes if change.base and change.head]
    figure = new_figure(9.0, 0.8 + 1.3 * max(1, len(changes)))
    panels = figure.subplots(max(1, len(changes)), 1, squeeze=False)[:, 0]
    for axes, change in zip(panels, changes, strict=False):
        _draw_change(axes, change)
    save_figure(figure, target)


def _draw_change(axes: Any, change: Change) -> None:  # noqa: ANN401
    assert change.base is not None
    assert change.head is not None
    _draw_row(axes, 1, "base", change.base.ticks_per_call, change.base.summary.median)
    _draw_row(axes, 0, "head", change.head.ticks_per_call, change.head.summary.median)
    axes.set_yticks([0, 1], ["head", "base"])
    axes.set_ylim(-0.6, 1.6)
    axes.set_title(f"{change.call} on {change.platform}: {change.verdict}", fontsize=9, loc="left")
    axes.set_xlabel("ticks per call", fontsize=8)
    axes.ticklabel_format(axis="x", useOffset=False)
    axes.grid(axis="x", alpha=0.3)


def _draw_row(axes: Any, y: int, side: str, ticks: Sequence[float], median: float) -> None:  # noqa: ANN401
    axes.plot(ticks, [y] * len(ticks), ".", color=_COLOURS[side], alpha=0.6)
    axes.plot([median, median], [y - 0.35, y + 0.35], color=_COLOURS["median"], linewidth=2)
