# SPDX-License-Identifier: Apache-2.0
"""Places blocks with lifetimes into one piece of memory, so that only blocks that live at the same time have
separate addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple


class Block(NamedTuple):
    """size: in bytes, aligned. first, last: numbers of the first and of the last step at which it lives."""

    size: int
    first: int
    last: int


_ORDERS: Final[Sequence[Callable[[Block], tuple[int, ...]]]] = (
    lambda block: (-block.size, block.first),
    lambda block: (block.first - block.last, -block.size),
    lambda block: (block.size * (block.first - block.last - 1), block.first),
    lambda block: (block.first, -block.size),
    lambda block: (-block.last, -block.size),
)
"""Each order is the best for some models, and none for all models."""


def placed(blocks: Sequence[Block]) -> list[int]:
    """The offset of each block. Several orders of placing are tried; the order with the smallest end is
    taken."""
    placements = [_in_order(blocks, order) for order in _ORDERS]
    return min(placements, key=lambda offsets: size_of(blocks, offsets))


def size_of(blocks: Sequence[Block], offsets: Sequence[int]) -> int:
    """Bytes of the memory that holds all blocks."""
    return max((offset + block.size for block, offset in zip(blocks, offsets, strict=True)), default=0)


def most_alive(blocks: Sequence[Block]) -> int:
    """The most bytes that live at one step: no placement takes less."""
    steps = {block.first for block in blocks}
    alive = [sum(block.size for block in blocks if block.first <= step <= block.last) for step in steps]
    return max(alive, default=0)


def _in_order(blocks: Sequence[Block], order: Callable[[Block], tuple[int, ...]]) -> list[int]:
    """Each block in the smallest gap that takes it, between the placed blocks that live at the same time."""
    offsets: dict[int, int] = {}
    for number in sorted(range(len(blocks)), key=lambda number: order(blocks[number])):
        block = blocks[number]
        taken = sorted(
            (offset, offset + blocks[other].size)
            for other, offset in offsets.items()
            if blocks[other].first <= block.last and block.first <= blocks[other].last
        )
        offsets[number] = _gap(taken, block.size)
    return [offsets[number] for number in range(len(blocks))]


def _gap(taken: Sequence[tuple[int, int]], size: int) -> int:
    """The begin of the smallest gap of `size` bytes at least; the end of all if there is none."""
    gaps = []
    end = 0
    for begin, until in taken:
        if begin - end >= size:
            gaps.append((begin - end, end))
        end = max(end, until)
    return min(gaps)[1] if gaps else end
