# SPDX-License-Identifier: Apache-2.0
"""Runs of one call over time: a row of a table, and a line from run to run, each with its commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final, NamedTuple

from minrpc.publish.tables import Table, called
from minrpc.reports.colors import any_hue
from minrpc.timing.record import TimingRecord
from minrpc.timing.units import count, percent, quantity

_FEWEST: Final = 2
_WIDTH: Final = 600
_HEIGHT: Final = 60
_MARGIN: Final = 6


class History(NamedTuple):
    """The runs of one call on one platform, the oldest first.

    unit: "inclusive instructions" if all runs counted them, else "s": the time of a call.
    values: of each run, in the unit.
    """

    records: Sequence[TimingRecord]
    unit: str
    values: Sequence[float]

    def text(self, value: float) -> str:
        """The value with its unit."""
        return quantity(value, "s") if self.unit == "s" else f"{count(value, 1)} {self.unit}"

    def told(self, place: int) -> str:
        """One run: its value, its commit and its time."""
        record = self.records[place]
        named = f"{called(record)} on {record.platform}: {self.text(self.values[place])}"
        return ", ".join(filter(None, [named, record.commit, record.when]))


def histories(records: Sequence[TimingRecord]) -> list[History]:
    """The calls that have several runs."""
    runs: dict[tuple[str, str], list[TimingRecord]] = {}
    for record in records:
        runs.setdefault(record.key, []).append(record)
    return [_history(sorted(each, key=_when)) for each in runs.values() if len(each) >= _FEWEST]


def _when(record: TimingRecord) -> str:
    return record.when


def _history(records: Sequence[TimingRecord]) -> History:
    measured = [record.measurement for record in records]
    if all("instructions" in item.inclusive for item in measured):
        return History(
            records, "inclusive instructions", [item.inclusive["instructions"] for item in measured]
        )
    return History(records, "s", [item.clock.seconds(item.typical_ticks) for item in measured])


def history_table(histories: Sequence[History]) -> Table:
    """A row for each call: its number of runs, the first and the last with their commits, and the change."""
    rows = [
        [
            called(item.records[0]),
            item.records[0].platform,
            str(len(item.records)),
            *(f"{item.text(item.values[end])} {item.records[end].commit}".strip() for end in (0, -1)),
            percent(item.values[-1] / item.values[0] - 1) if item.values[0] else "",
        ]
        for item in histories
    ]
    return Table("History", ["call", "platform", "runs", "first", "last", "change"], rows, range(2, 6))


def history_lines(histories: Sequence[History]) -> str:
    """The lines, as SVG: from the smallest value at the bottom to the largest at the top."""
    return f"<figure>{''.join(map(_line, histories))}<figcaption></figcaption></figure>"


def _line(item: History) -> str:
    low, high = min(item.values), max(item.values)
    label = f"{called(item.records[0])} on {item.records[0].platform}"
    ends = f"{item.text(low)} to {item.text(high)}" if low != high else f"always {item.text(low)}"
    points = list(_points(item.values, low, high))
    hue = any_hue(item.records[0].platform)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{hue}" title="{escape(item.told(place))}">'
        f"<title>{escape(item.told(place))}</title></circle>"
        for place, (x, y) in enumerate(points)
    )
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f'<div class="strip"><p><span><b>{escape(label)}</b></span><span>{escape(ends)}</span></p>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}: {escape(ends)}">'
        f'<polyline points="{path}" fill="none" stroke="{hue}" stroke-width="2"/>{dots}</svg></div>'
    )


def _points(values: Sequence[float], low: float, high: float) -> Iterator[tuple[float, float]]:
    """For each value its place in the picture, in its units."""
    step = (_WIDTH - 2 * _MARGIN) / (len(values) - 1)
    for place, value in enumerate(values):
        share = (value - low) / (high - low) if high > low else 0.5
        yield _MARGIN + place * step, _HEIGHT - _MARGIN - share * (_HEIGHT - 2 * _MARGIN)
