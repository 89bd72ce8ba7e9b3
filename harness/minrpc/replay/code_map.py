# SPDX-License-Identifier: Apache-2.0
"""The owner of each recorded instruction: the library's code, the runtime's beside it, or the firmware's."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from minrpc.counters.image import LoadedCode
from minrpc.replay.trace import BLOCK, LEFT, Steps

GIVEN: Final = "minrpc_given"
"""The function whose two loads tell the begin and the end of a block that malloc gave."""
TAKEN: Final = "minrpc_taken"
"""The function whose load tells the begin of a block before it is freed."""
_OURS: Final = ("minrpc_", "__wrap_")
# A function of the code that answers registers: hardware/trap_*.c.
_TRAP: Final = "trap_entry"
# Jumps that the linker has added: they belong to the code that called them.
_VENEER: Final = "_veneer"


class Part(IntEnum):
    """The part of the program that an instruction belongs to."""

    FIRMWARE = 0
    LIBRARY = 1
    RUNTIME = 2
    GIVEN = 3
    TAKEN = 4
    TRAP = 5  # answers registers in Python, and makes interrupts


class CodeMap:
    """The parts of the loaded code, by address."""

    def __init__(self, loaded: Sequence[LoadedCode]) -> None:
        """loaded: not overlapping."""
        spans = sorted(span for code in loaded for span in _parts(code))
        edges: list[tuple[int, Part]] = [(0, Part.FIRMWARE)]
        for begin, end, part in spans:
            edges += [(begin, part), (end, Part.FIRMWARE)]
        # The later of two edges at one address counts.
        self._starts = np.array([at for at, _ in edges], np.uint64)
        self._parts = np.array([part for _, part in edges], np.uint8)

    def parts(self, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
        """The `Part` of each address."""
        return self._parts[np.searchsorted(self._starts, addresses, "right") - 1]

    def owners(self, steps: Steps) -> npt.NDArray[np.uint8]:
        """The `Part` of each step.

        The firmware's functions, and veneers, belong to the loaded code that called them, and to the runtime
        if other functions have called them.
        """
        own = self.parts(steps["where"])
        own[steps["what"] == LEFT] = Part.RUNTIME
        is_block = (steps["what"] & BLOCK) != 0
        anchors = np.flatnonzero(is_block & (own != Part.FIRMWARE))
        last = np.searchsorted(anchors, np.arange(len(steps)), "right") - 1
        callers = np.where(last >= 0, own[anchors[last]] if len(anchors) else Part.RUNTIME, Part.RUNTIME)
        return np.where(own == Part.FIRMWARE, callers, own).astype(np.uint8)


def _parts(code: LoadedCode) -> list[tuple[int, int, Part]]:
    """The spans of the code, in order, without gaps."""
    if _TRAP in code.names:
        return [(code.base, code.base + code.size, Part.TRAP)]
    named = [
        (function.start, function.end, _part_of(function.name))
        for function in sorted(code.program.functions)
        if function.name.startswith(_OURS) or function.name.endswith(_VENEER)
    ]
    spans: list[tuple[int, int, Part]] = []
    at = code.base
    for begin, end, part in named:
        spans += [(at, begin, Part.LIBRARY)] if at < begin else []
        spans.append((begin, end, part))
        at = end
    return [*spans, (at, code.base + code.size, Part.LIBRARY)]


def _part_of(name: str) -> Part:
    if name.endswith(_VENEER):
        return Part.FIRMWARE
    return {GIVEN: Part.GIVEN, TAKEN: Part.TAKEN}.get(name, Part.RUNTIME)
