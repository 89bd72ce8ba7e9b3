# SPDX-License-Identifier: Apache-2.0
"""A treemap as SVG: areas are sizes, boxes of one group lie together (squarified, Bruls and others, 2000)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final, NamedTuple

from minrpc.reports.colors import any_hue

_WIDTH: Final = 1200.0
_HEIGHT: Final = 640.0
_TITLE: Final = 18.0
_LETTER: Final = 6.6
_LEAST: Final = 0.4


class Box(NamedTuple):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


def squarified(sizes: Sequence[float], box: Box) -> list[Box]:
    """Rectangles for `sizes` (above 0, the largest first) that together fill `box`."""
    total = sum(sizes)
    if not total:
        return []
    scale = box.width * box.height / total
    boxes: list[Box] = []
    rest = [size * scale for size in sizes]
    while rest:
        side = min(box.width, box.height)
        row = 1
        while row < len(rest) and _worst(rest[: row + 1], side) <= _worst(rest[:row], side):
            row += 1
        placed, box = _placed(rest[:row], box)
        boxes += placed
        rest = rest[row:]
    return boxes


def _worst(areas: Sequence[float], side: float) -> float:
    """The worst ratio of sides in a row of rectangles; 1 is a square."""
    total = sum(areas)
    if not total or not side:
        return float("inf")
    return max(side**2 * max(areas) / total**2, total**2 / (side**2 * max(min(areas), 1e-12)))


def _placed(areas: Sequence[float], box: Box) -> tuple[list[Box], Box]:
    """The rectangles of a row along the shorter side of `box`, and the rest of the box."""
    side = min(box.width, box.height)
    thick = sum(areas) / side if side else 0.0
    lengths = [area / thick if thick else 0.0 for area in areas]
    boxes, at = [], 0.0
    for length in lengths:
        if box.height <= box.width:
            boxes.append(Box(box.x, box.y + at, thick, length))
        else:
            boxes.append(Box(box.x + at, box.y, length, thick))
        at += length
    if box.height <= box.width:
        return boxes, Box(box.x + thick, box.y, max(0.0, box.width - thick), box.height)
    return boxes, Box(box.x, box.y + thick, box.width, max(0.0, box.height - thick))


def treemap(title: str, groups: Mapping[str, Mapping[str, int]]) -> str:
    """The picture. groups: sizes in bytes by name, by group. The tooltip of a box is its name."""
    sums = {name: sum(sizes.values()) for name, sizes in groups.items()}
    named = sorted((name for name in sums if sums[name] > 0), key=lambda name: -sums[name])
    total = sum(sums.values())
    text = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {_HEIGHT + _TITLE:g}" '
        'font-size="11" font-family="ui-monospace, monospace">',
        f"<title>{escape(title)}: {total:,} bytes</title>",
        f'<text x="4" y="13" fill="currentColor">{escape(title)}: {total:,} bytes</text>',
    ]
    outer = squarified([sums[name] for name in named], Box(0.0, _TITLE, _WIDTH, _HEIGHT))
    for name, box in zip(named, outer, strict=True):
        text += _group(name, groups[name], box, total)
    return "\n".join([*text, "</svg>"]) + "\n"


def _group(name: str, sizes: Mapping[str, int], box: Box, total: int) -> Iterator[str]:
    inner = sorted((size for size in sizes if sizes[size] > 0), key=lambda size: -sizes[size])
    for item, at in zip(inner, squarified([sizes[box] for box in inner], box), strict=True):
        if at.width < _LEAST or at.height < _LEAST:
            continue
        label = f"{item}, {name}: {sizes[item]:,} bytes ({sizes[item] / total:.1%})"
        letters = int((at.width - 4) / _LETTER) if at.height > 13 else 0
        shown = item if len(item) <= letters else item[: letters - 1] + "…" if letters > 3 else ""
        yield (
            f'<g><title>{escape(label)}</title><rect x="{at.x:.2f}" y="{at.y:.2f}" '
            f'width="{at.width:.2f}" height="{at.height:.2f}" fill="{any_hue(name)}" stroke="#fff" '
            f'stroke-width="0.6"/><text x="{at.x + 3:.2f}" y="{at.y + 12:.2f}">{escape(shown)}</text></g>'
        )
    yield (
        f'<rect x="{box.x:.2f}" y="{box.y:.2f}" width="{box.width:.2f}" height="{box.height:.2f}" '
        'fill="none" stroke="#333" stroke-width="1.4"/>'
    )
