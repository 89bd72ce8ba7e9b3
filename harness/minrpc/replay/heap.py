# SPDX-License-Identifier: Apache-2.0
"""The blocks of malloc, from the accesses of the two functions that tell them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from minrpc.replay.code_map import Part
from minrpc.replay.trace import ADDRESS, BLOCK, SIZE_AT, Steps

NEVER: Final = 1 << 62
"""Number of a step that never comes."""


@dataclass(eq=False)
class HeapBlock:
    """A block: its addresses from `begin` to `end`, and the steps between which it was live.

    given_by, freed_by: addresses of the calls; None if they are not known.
    """

    begin: int
    end: int
    born: int
    died: int = NEVER
    given_by: int | None = None
    freed_by: int | None = None


@dataclass
class Event:
    """A step at which a block is given, or freed.

    block: None for a pointer that is no live block's. replaced: freed blocks whose memory the block has.
    """

    step: int
    address: int
    given: bool
    block: HeapBlock | None
    replaced: Sequence[HeapBlock] = ()


@dataclass
class Heap:
    """The blocks that are live, or were freed and not given again, by their begin.

    known: False if the record lost steps, so that blocks may be missing.
    """

    blocks: dict[int, HeapBlock] = field(default_factory=dict)
    known: bool = True
    _begins: list[int] = field(default_factory=list)

    def clear(self) -> None:
        """Forget all: the device has started again."""
        self.blocks.clear()
        self._begins.clear()
        self.known = True

    def begin(self) -> None:
        """A new record starts: its steps count from 0."""
        for block in self.blocks.values():
            block.born = min(block.born, -1)
            block.died = -1 if block.died < NEVER else NEVER

    def follow(self, steps: Steps, owners: npt.NDArray[np.uint8]) -> Iterator[Event]:
        """The events of the record, in order; the blocks are those after the event when it is given."""
        is_block = (steps["what"] & BLOCK) != 0
        # Other accesses of these functions, to their arguments, are larger.
        of_byte = (steps["what"] >> SIZE_AT) & np.uint64(15) == 0
        told = np.flatnonzero(np.isin(owners, (Part.GIVEN, Part.TAKEN)) & ~is_block & of_byte)
        in_library = np.flatnonzero((owners == Part.LIBRARY) & is_block)
        first: int | None = None
        for step in told.tolist():
            address = int(steps["what"][step] & ADDRESS)
            at = int(np.searchsorted(in_library, step)) - 1
            call = steps[in_library[at]] if at >= 0 else None
            by = int(call["where"] + (call["what"] & ADDRESS)) if call is not None else None
            if owners[step] == Part.TAKEN:
                block = self.blocks.get(address)
                dead = block is None or block.died < NEVER
                if block is not None and not dead:
                    block.died, block.freed_by = step, by
                yield Event(step, address, given=False, block=None if dead else block)
            elif first is None:
                first = address
            else:
                yield self._give(HeapBlock(first, address, step, given_by=by))
                first = None

    def _give(self, block: HeapBlock) -> Event:
        at = bisect_left(self._begins, block.begin)
        at -= at > 0 and self.blocks[self._begins[at - 1]].end > block.begin
        behind = at
        while behind < len(self._begins) and self._begins[behind] < max(block.end, block.begin + 1):
            behind += 1
        replaced = [self.blocks.pop(begin) for begin in self._begins[at:behind]]
        del self._begins[at:behind]
        insort(self._begins, block.begin)
        self.blocks[block.begin] = block
        return Event(block.born, block.begin, given=True, block=block, replaced=replaced)
