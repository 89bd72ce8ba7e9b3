# SPDX-License-Identifier: Apache-2.0
"""Each repeat of each measurement as a dot, as SVG: a strip for a call on a platform."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from minrpc.reports.colors import any_hue
from minrpc.timing.record import Record
from minrpc.timing.units import count, quantity

_WIDTH: Final = 1200.0
_LEFT: Final = 420.0
_RIGHT: Final = 140.0
_ROW: Final = 30.0
_MOST: Final = 400


def dots(records: Sequence[Record]) -> str:
    """The picture: from each strip's shortest to its longest. Many repeats are shown by every so many."""
    height = _ROW * len(records) + 8
    text = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {height:g}" font-size="12" '
        'font-family="ui-monospace, monospace">',
        "<title>Cycles of each repeat, per call</title>",
    ]
    for index, record in enumerate(records):
        text += _strip(record, index * _ROW + _ROW / 2)
    return "\n".join([*text, "</svg>"]) + "\n"


def _strip(record: Record, y: float) -> Iterator[str]:
    one = record.measurement
    cycles = one.cycles_per_call
    low, high = min(cycles), max(cycles)
    end = _WIDTH - _RIGHT
    label = f"{record.call} on {record.platform}"
    shown = label if len(label) < 56 else label[:55] + "…"
    yield f'<text x="4" y="{y + 4:g}" fill="currentColor">{escape(shown)}</text>'
    yield f'<line x1="{_LEFT:g}" y1="{y:g}" x2="{end:g}" y2="{y:g}" stroke="currentColor" opacity="0.3"/>'
    step = -(-len(cycles) // _MOST)
    for number, value in list(enumerate(cycles))[::step]:
        x = _LEFT + ((value - low) / (high - low) if high > low else 0.5) * (end - _LEFT)
        told = (
            f"{label}, repeat {number + 1}: {count(value)} cycles ({quantity(one.clock.seconds(value), 's')})"
        )
        yield (
            f'<g><title>{escape(told)}</title><circle cx="{x:.1f}" cy="{y:g}" r="5" '
            f'fill="{any_hue(record.platform)}" stroke="currentColor" stroke-width="0.6" opacity="0.8"/></g>'
        )
    spread = f"± {(high - low) / (high + low) * 100:.3g} %" if high > low else "all the same"
    yield f'<text x="{end + 12:g}" y="{y + 4:g}" fill="currentColor">{spread}</text>'
