# SPDX-License-Identifier: Apache-2.0
"""Sizes by symbol of two programs, in the format of Linux's bloat-o-meter, which reviewers know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class SymbolGrowth(NamedTuple):
    """Bytes of a symbol before and after; None if the symbol is missing."""

    symbol: str
    base: int | None
    head: int | None

    @property
    def grown(self) -> int:
        """Growth in bytes."""
        return (self.head or 0) - (self.base or 0)


def growth(base: Mapping[str, int], head: Mapping[str, int]) -> list[SymbolGrowth]:
    """The symbols that differ, the largest change first."""
    names = dict.fromkeys([*base, *head])
    both = [SymbolGrowth(name, base.get(name), head.get(name)) for name in names]
    return sorted(
        (symbol for symbol in both if symbol.grown), key=lambda item: (-abs(item.grown), item.symbol)
    )


def growth_text(base: Mapping[str, int], head: Mapping[str, int]) -> str:
    """The text that `scripts/bloat-o-meter OLD NEW` prints."""
    return "\n".join(_lines(growth(base, head), sum(base.values()), sum(head.values())))


def _lines(changes: list[SymbolGrowth], before: int, after: int) -> Iterator[str]:
    added = sum(change.base is None for change in changes)
    removed = sum(change.head is None for change in changes)
    grown = sum(change.grown > 0 for change in changes) - added
    shrunk = sum(change.grown < 0 for change in changes) - removed
    up = sum(change.grown for change in changes if change.grown > 0)
    down = sum(change.grown for change in changes if change.grown < 0)
    yield (f"add/remove: {added}/{removed} grow/shrink: {grown}/{shrunk} up/down: {up}/{down} ({up + down})")
    yield f"{'Symbol':<40} {'old':>7} {'new':>7} {'delta':>7}"
    for change in changes:
        old, new = ("-" if size is None else str(size) for size in (change.base, change.head))
        yield f"{change.symbol:<40} {old:>7} {new:>7} {change.grown:>+7}"
    share = f", chg {(after - before) / before:+.2%}" if before else ""
    yield f"Total: Before={before}, After={after}{share}"
