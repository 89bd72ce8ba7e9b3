# SPDX-License-Identifier: Apache-2.0
"""Judges each access of a recorded call: is it inside an object that the call may use?

Nothing here talks to a device. An access to a device's register is not judged, since registers have their
own checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from minrpc.replay.code_map import CodeMap, Part
from minrpc.replay.heap import NEVER, Heap, HeapBlock
from minrpc.replay.trace import ADDRESS, BLOCK, IO, SIZE_AT, STORE, Steps

_SIZE_MASK: Final = np.uint64(15)


class Extent(NamedTuple):
    """Memory that a call may use, from `begin` up to `end`. name: for messages, "y (int16[64])"."""

    begin: int
    end: int
    name: str
    writable: bool = True


class Fault(NamedTuple):
    """An access that is not allowed: its step, the instruction's address, the accessed address and size.

    why: "outside" of all objects; "constant", a write to one; "freed", an access to a freed block;
        "free", of a pointer that malloc did not give, or that was freed; "unwritten", a use of a value that
        was never written.
    near: the object that it touches, or the nearest one.
    """

    step: int
    where: int
    address: int
    size: int
    store: bool
    why: Literal["outside", "constant", "freed", "free", "unwritten"]
    near: Extent | HeapBlock | None


@dataclass(frozen=True)
class Verdict:
    """faults: the first at each instruction, in the order of time. checked: number of accesses.

    given: the blocks that malloc gave, by their step.
    """

    faults: Sequence[Fault]
    checked: int
    given: Mapping[int, HeapBlock]


def judge(steps: Steps, code: CodeMap, extents: Sequence[Extent], heap: Heap) -> Verdict:
    """The faults of the library's accesses in the record.

    extents: memory that may be used in the whole call. heap: the blocks before the record; after it, on
        return.
    """
    owners = code.owners(steps)
    what = steps["what"]
    judged = np.flatnonzero((owners == Part.LIBRARY) & ((what & (BLOCK | IO)) == 0))
    own = sorted(_disjoint(extents))
    faults: list[Fault] = []
    given: dict[int, HeapBlock] = {}
    begun, blocks = 0, list(heap.blocks.values())
    for event in heap.follow(steps, owners):
        if event.given and event.block is not None:
            given[event.step] = event.block
        if event.replaced:
            piece = judged[np.searchsorted(judged, begun) : np.searchsorted(judged, event.step)]
            faults += _faults(steps, piece, own, blocks)
            begun, blocks = event.step, list(heap.blocks.values())
        elif event.block is not None and event.given:
            blocks.append(event.block)
        elif event.block is None:
            faults.append(_freed_again(steps, event.step, event.address, heap))
    faults += _faults(steps, judged[np.searchsorted(judged, begun) :], own, blocks)
    return Verdict(first_of_each(faults), len(judged), given)


def _freed_again(steps: Steps, step: int, address: int, heap: Heap) -> Fault:
    return Fault(step, int(steps["where"][step]), address, 0, False, "free", heap.blocks.get(address))


def first_of_each(faults: Sequence[Fault]) -> list[Fault]:
    """The first fault at each instruction, in the order of time."""
    firsts: dict[int, Fault] = {}
    for fault in sorted(faults, key=lambda fault: fault.step):
        firsts.setdefault(fault.where, fault)
    return list(firsts.values())


def _disjoint(extents: Sequence[Extent]) -> Iterator[Extent]:
    """The extents without those inside another, such as a view of an array."""
    end = 0
    for extent in sorted(extents, key=lambda item: (item.begin, -item.end)):
        if extent.end > end:
            yield extent
            end = extent.end


def _faults(
    steps: Steps, places: npt.NDArray[np.intp], extents: Sequence[Extent], blocks: Sequence[HeapBlock]
) -> list[Fault]:
    """The faults among the accesses at these steps, in which no block's memory is given again."""
    if not len(places):
        return []
    objects: list[Extent | HeapBlock] = sorted([*extents, *blocks], key=lambda item: item.begin)
    table = np.array(
        [
            (item.begin, item.end, item.writable, -1, NEVER)
            if isinstance(item, Extent)
            else (item.begin, item.end, True, item.born, item.died)
            for item in objects
        ],
        np.int64,
    ).reshape(-1, 5)
    what = steps["what"][places]
    address = (what & ADDRESS).astype(np.int64)
    size = np.left_shift(1, ((what >> SIZE_AT) & _SIZE_MASK).astype(np.int64))
    rows = np.searchsorted(table[:, 0], address, "right") - 1
    begin, end, writable, born, died = table[rows].T if len(table) else np.zeros((5, len(places)), np.int64)
    inside = (rows >= 0) & (address >= begin) & (address + size <= end)
    allowed = inside & ((writable != 0) | ((what & STORE) == 0)) & (born <= places) & (places < died)
    denied = np.flatnonzero(~allowed)
    _, firsts = np.unique(steps["where"][places[denied]], return_index=True)
    made = []
    for at in denied[firsts].tolist():
        spot = _Access(int(places[at]), int(address[at]), int(size[at]), bool(what[at] & STORE))
        near = objects[int(rows[at])] if inside[at] else _nearest(objects, spot)
        made.append(spot.fault(int(steps["where"][spot.step]), near, inside=bool(inside[at])))
    return made


class _Access(NamedTuple):
    step: int
    address: int
    size: int
    store: bool

    def fault(self, where: int, near: Extent | HeapBlock | None, *, inside: bool) -> Fault:
        why: Literal["outside", "constant", "freed"] = "outside"
        if inside:
            why = "constant" if isinstance(near, Extent) else "freed"
        return Fault(self.step, where, self.address, self.size, self.store, why, near)


def _nearest(objects: Sequence[Extent | HeapBlock], access: _Access) -> Extent | HeapBlock | None:
    """The object with the fewest bytes between it and the access; the one before it if there are two."""

    def gap(item: Extent | HeapBlock) -> int:
        if access.address >= item.begin:
            return access.address - item.end
        return item.begin - access.address - access.size

    return min(objects, key=lambda item: (abs(gap(item)), item.begin > access.address), default=None)
