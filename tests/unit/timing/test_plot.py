# SPDX-License-Identifier: Apache-2.0
"""Plots of measurements, checked in the figure, before it becomes a file."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from minrpc import Sample
from minrpc.reports.figures import new_figure
from minrpc.timing import plot
from minrpc.timing.compare import compare

from tests.unit.timing.samples import WALL, recorded

pytestmark = pytest.mark.extra("plot")


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every figure that is made."""
    made: list[Any] = []

    def kept(width: float, height: float) -> Any:  # noqa: ANN401 - matplotlib has no types
        made.append(new_figure(width, height))
        return made[-1]

    monkeypatch.setattr(plot, "new_figure", kept)
    return made


def points(axes: Any) -> list[tuple[list[float], list[float]]]:  # noqa: ANN401
    return [([*line.get_xdata()], [*line.get_ydata()]) for line in axes.get_lines()]


def test_repeats_stand_in_their_order_with_outliers_and_the_median(
    figures: list[Any], tmp_path: Path
) -> None:
    cycles = [1000, 1010, 1020, 1000, 1010, 1020, 9000]
    plot.draw_samples(recorded(cycles), tmp_path / "one.svg")
    (figure,) = figures
    order, spread = figure.axes
    assert order.get_ylabel() == "ticks per call"
    repeats, outlier, median = points(order)
    assert repeats == ([1, 2, 3, 4, 5, 6, 7], [100, 101, 102, 100, 101, 102, 900])
    assert outlier == ([7], [900])
    assert median[1] == [101, 101]
    assert [text.get_text() for text in order.get_legend().get_texts()] == [
        "repeat",
        "outlier",
        "median",
        "95 % interval",
    ]
    assert sum(bar.get_width() for bar in spread.patches) == len(cycles)
    assert (tmp_path / "one.svg").stat().st_size > 0


def test_repeats_of_several_processes_stand_at_their_process(figures: list[Any], tmp_path: Path) -> None:
    ticks = (1000, 1010, 1020, 1000, 1010, 9000, 1020)
    samples = tuple(Sample(each + more, 1, process=i) for i, each in enumerate(ticks) for more in (0, 2))
    record = recorded([1], clock=WALL)
    measurement = dataclasses.replace(record.measurement, samples=samples)
    plot.draw_samples(dataclasses.replace(record, measurement=measurement), tmp_path / "one.svg")
    order, _ = figures[0].axes
    repeats, outlier, _ = points(order)
    assert repeats == ([sample.process + 1 for sample in samples], [sample.ticks for sample in samples])
    assert outlier == ([6], [9001])
    assert order.get_xlabel() == "process"


def test_each_call_that_both_have_is_a_panel_with_both_rows(figures: list[Any], tmp_path: Path) -> None:
    base = [dataclasses.replace(recorded([1000] * 6), platform=name) for name in ("a", "b", "gone")]
    head = [dataclasses.replace(recorded([1100] * 6), platform=name) for name in ("a", "b")]
    plot.draw_comparison(compare(base, head), tmp_path / "two.svg")
    (figure,) = figures
    assert len(figure.axes) == 2
    assert {axes.get_title(loc="left") for axes in figure.axes} == {
        f"{base[0].call} on {name}: slower" for name in ("a", "b")
    }
    for axes in figure.axes:
        before, before_median, after, after_median = points(axes)
        assert before == ([100] * 6, [1] * 6)
        assert before_median == ([100, 100], [0.65, 1.35])
        assert after == ([110] * 6, [0] * 6)
        assert after_median == ([110, 110], [-0.35, 0.35])
        assert [label.get_text() for label in axes.get_yticklabels()] == ["head", "base"]
