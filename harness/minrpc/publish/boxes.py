# SPDX-License-Identifier: Apache-2.0
"""Profiles and sizes as HTML boxes: positions are shares of the page's width, so text keeps its size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Final

from minrpc.counters.call_tree import CallTree
from minrpc.counters.profile_files import flame_boxes
from minrpc.reports.colors import any_hue, warm
from minrpc.reports.treemap import Box, squarified

_ROW: Final = 22
_LEAST: Final = 0.15
"""Smallest visible width of a box, in per cent of the whole."""
_WIDE: Final = 900.0


def flame(label: str, tree: CallTree, unit: str) -> str:
    """A flame graph: a box's width is the count of a function and its callees, in `unit`; callers above."""
    total = tree.total
    boxes = [
        (name, level, 100 * left / total, 100 * size / total, size)
        for name, level, left, size in flame_boxes(tree)
    ]
    depth = 1 + max((level for _, level, *_ in boxes), default=0)
    drawn = [
        _box(
            name,
            f"{name}: {size:,} {unit} ({size / total:.1%})",
            f"left:{left:.2f}%;width:{width:.2f}%;top:{level * _ROW}px;height:{_ROW - 1}px",
            warm(name),
        )
        for name, level, left, width, size in boxes
        if width >= _LEAST
    ]
    return _figure(label, drawn, depth * _ROW)


def areas(label: str, groups: Mapping[str, Mapping[str, int]], height: int) -> str:
    """A treemap of `height` pixels: areas are sizes in bytes, boxes of a group are adjacent."""
    area = Box(0.0, 0.0, _WIDE, height)
    sums = {name: sum(sizes.values()) for name, sizes in groups.items()}
    named = sorted((name for name in sums if sums[name] > 0), key=lambda name: -sums[name])
    total = sum(sums.values())
    outer = squarified([sums[name] for name in named], area)
    drawn = [
        item
        for name, box in zip(named, outer, strict=True)
        for item in _group(name, groups[name], box, area, total)
    ]
    return _figure(label, drawn, height)


def _group(name: str, sizes: Mapping[str, int], box: Box, area: Box, total: int) -> Iterator[str]:
    inner = sorted((size for size in sizes if sizes[size] > 0), key=lambda size: -sizes[size])
    for item, at in zip(inner, squarified([sizes[box] for box in inner], box), strict=True):
        place = (
            f"left:{100 * at.x / area.width:.2f}%;width:{100 * at.width / area.width:.2f}%;"
            f"top:{100 * at.y / area.height:.2f}%;height:{100 * at.height / area.height:.2f}%"
        )
        yield _box(
            item, f"{item}, {name}: {sizes[item]:,} bytes ({sizes[item] / total:.1%})", place, any_hue(name)
        )


def _box(name: str, told: str, place: str, color: str) -> str:
    return f'<div class="box" title="{escape(told)}" style="{place};background:{color}">{escape(name)}</div>'


def _figure(label: str, drawn: list[str], height: int) -> str:
    boxes = "".join(drawn)
    shown = escape(label)
    return (
        f'<figure><div class="boxes" role="img" aria-label="{shown}" style="height:{height}px">{boxes}</div>'
        f"<figcaption>{shown}</figcaption></figure>"
    )
