# SPDX-License-Identifier: Apache-2.0
"""Texts of faults: the access, the object beside it, the line, and the callers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from minrpc.counters.image import Image
from minrpc.replay.code_map import CodeMap, Part
from minrpc.replay.heap import HeapBlock
from minrpc.replay.memory_judge import Extent, Fault
from minrpc.replay.trace import ADDRESS, BLOCK, Steps

# Blocks of code in which callers are looked for, before the fault.
_BACK: Final = 200_000
_CALLERS: Final = 8
# Bytes of the longest instruction that calls.
_LONGEST_CALL: Final = 7
# An object that is further away has nothing to do with the access.
_NEAR: Final = 4096


def described(fault: Fault) -> str:
    """The access and its place beside the nearest object: "read 2 bytes at 0x20000, 4 bytes behind x"."""
    if fault.why == "free":
        again = isinstance(fault.near, HeapBlock)
        return f"freed 0x{fault.address:x}, which {'was freed before' if again else 'malloc did not give'}"
    if fault.why == "unwritten":
        where = f" of {_name(fault.near)}" if fault.near is not None else ""
        return f"used {_bytes(fault.size)}{where} at 0x{fault.address:x}, which were never written"
    did = f"{'wrote' if fault.store else 'read'} {_bytes(fault.size)} at 0x{fault.address:x}"
    if fault.near is None:
        return f"{did}, which is no memory of its own"
    name = _name(fault.near)
    if fault.why == "constant":
        return f"{did}, {_bytes(fault.address - fault.near.begin)} into {name}, which is constant"
    if fault.why == "freed":
        return f"{did}, {_bytes(fault.address - fault.near.begin)} into {name}, which was freed"
    return f"{did}, {_beside(fault, fault.near.begin, fault.near.end, name)}"


def _beside(fault: Fault, begin: int, end: int, name: str) -> str:
    behind, before = fault.address - end, begin - fault.address - fault.size
    if max(behind, before) > _NEAR:
        return "far from all memory of the call"
    if fault.address >= begin:
        over = fault.address + fault.size - end
        return f"{_bytes(behind)} behind {name}" if behind > 0 else f"{_bytes(over)} past the end of {name}"
    return f"{_bytes(begin - fault.address)} before {name}"


def _name(near: Extent | HeapBlock) -> str:
    return (
        near.name if isinstance(near, Extent) else f"a block of {_bytes(near.end - near.begin)} from malloc"
    )


def places(fault: Fault, steps: Steps, code: CodeMap, image: Image) -> list[str]:
    """Lines about the place of the fault: its line, its callers, and where the block came from."""
    path = _path(steps, fault.step, code, image)
    lines = [f"in {image.place_of(fault.where)}"] if fault.why != "free" else []
    lines += [f"called by {image.place_of(at)}" for at in path[:_CALLERS]]
    if isinstance(fault.near, HeapBlock):
        block = fault.near
        if block.given_by is not None:
            lines.append(f"the block was allocated in {image.place_of(block.given_by)}")
        if block.freed_by is not None and fault.why != "outside":
            lines.append(f"and freed in {image.place_of(block.freed_by)}")
    return lines


def _path(steps: Steps, until: int, code: CodeMap, image: Image) -> Sequence[int]:
    """Addresses of the calls that led to the step, the innermost first; without the runtime's."""
    recorded = steps[: until + 1]
    own = code.owners(recorded) == Part.LIBRARY
    blocks = recorded[own & ((recorded["what"] & BLOCK) != 0)][-_BACK:]
    calls: list[int] = []
    last: int | None = None
    for start, what in blocks.tolist():
        if last is not None:
            back = next(
                (at for at in reversed(range(len(calls))) if 0 < start - calls[at] <= _LONGEST_CALL), None
            )
            function = image.function_at(start)
            if back is not None:
                del calls[back:]
            elif function is not None and function.start == start:
                calls.append(last)
        last = start + (what & int(ADDRESS))
    in_library = code.parts(np.array(calls, np.uint64)) == Part.LIBRARY
    return [at for at, is_own in zip(calls, in_library.tolist(), strict=True) if is_own][::-1]


def _bytes(count: int) -> str:
    return f"{count} byte{'s' * (count != 1)}"
