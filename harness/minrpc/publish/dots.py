# SPDX-License-Identifier: Apache-2.0
"""Draws each repeat of a measurement as a dot: an HTML strip for each call on a platform."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from minrpc.publish.tables import called
from minrpc.reports.colors import any_hue
from minrpc.timing.measurement import Measurement
from minrpc.timing.record import TimingRecord
from minrpc.timing.units import count, quantity

_MOST: Final = 400
_NARROWEST: Final = 0.01
"""Smallest range of a strip, as a share of the time: dots that differ less lie together."""


def dots(records: Sequence[TimingRecord]) -> str:
    """The strips, with the times of their ends. Every n-th of many repeats is shown."""
    return f"<figure>{''.join(map(_strip, records))}<figcaption></figcaption></figure>"


def _strip(record: TimingRecord) -> str:
    item = record.measurement
    low, high = min(item.ticks_per_call), max(item.ticks_per_call)
    label = f"<span><b>{escape(called(record))}</b> on {escape(record.platform)}</span>"
    if low == high:
        same = f"{len(item.samples)} repeats, all the same: {_time(item, low)}"
        return f'<div class="strip"><p>{label}<span>{same}</span></p></div>'
    spread = f"± {(high - low) / (high + low) * 100:.3g} %"
    middle, half = (low + high) / 2, max((high - low) / 2, _NARROWEST / 2 * (low + high) / 2)
    begin = middle - half
    drawn = "".join(_drawn(record, begin, 2 * half))
    return (
        f'<div class="strip"><p>{label}<span>{len(item.samples)} repeats, {spread}</span></p>'
        f'<div class="line">{drawn}</div>'
        f"<p><span>{_time(item, begin)}</span><span>{_time(item, begin + 2 * half)}</span></p></div>"
    )


def _drawn(record: TimingRecord, begin: float, width: float) -> Iterator[str]:
    item = record.measurement
    ticks = item.ticks_per_call
    for number, value in list(enumerate(ticks, 1))[:: -(-len(ticks) // _MOST)]:
        told = f"repeat {number} of {called(record)} on {record.platform}: {count(value)} ticks"
        yield (
            f'<i title="{escape(f"{told} ({_time(item, value)})")}" '
            f'style="left:{(value - begin) / width:.2%};'
            f'background:{any_hue(record.platform)}"></i>'
        )


def _time(measurement: Measurement, ticks: float) -> str:
    return quantity(measurement.clock.seconds(ticks), "s")
