# SPDX-License-Identifier: Apache-2.0
"""The variables of a program in memory: of file scope by their symbols, of functions by their frames."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from minrpc.counters.image import LoadedCode
from minrpc.program.debug_info import StackVariable, stack_variables
from minrpc.program.elf import OBJECT
from minrpc.replay.memory_judge import Extent


@dataclass
class Frame:
    """A function that is active: the stack pointer at its call, and the return address; None if unknown.

    at: an address in the code that it runs. areas: the memory that it has taken by alloca. settled: it has a
        pointer to its frame, so that it can move the stack pointer.
    """

    function: int
    top: int | None
    returns: int | None
    at: int = 0
    areas: list[Extent] = field(default_factory=list)
    settled: bool = False


class Variables:
    """The variables of the code that is loaded."""

    def __init__(self, loaded: Sequence[LoadedCode]) -> None:
        self._loaded = tuple(loaded)
        named = {
            symbol.value: Extent(symbol.value, symbol.value + symbol.size, symbol.name)
            for code in loaded
            for symbol in code.program.elf.symbols
            if symbol.kind == OBJECT and symbol.size and 0 <= symbol.value - code.base < code.size
        }
        self._globals = sorted(named.values())
        self._begins = [item.begin for item in self._globals]

    @cached_property
    def _by_function(self) -> Mapping[int, Sequence[StackVariable]]:
        by_function: dict[int, list[StackVariable]] = {}
        for code in self._loaded:
            for variable in stack_variables(code.program.elf):
                function = code.program.function_at(variable.begin)
                if function is not None:
                    by_function.setdefault(function.start, []).append(variable)
        return by_function

    def in_memory(self, address: int) -> Extent | None:
        """The variable of file scope at the address."""
        at = bisect_right(self._begins, address) - 1
        return self._globals[at] if at >= 0 and address < self._globals[at].end else None

    def in_frame(self, frame: Frame, address: int) -> Extent | None:
        """The variable of the innermost active block at the address; None if several share it."""
        if frame.top is None:
            return None
        offset = address - frame.top
        fitting = [
            item
            for item in self._by_function.get(frame.function, ())
            if item.offset <= offset < item.offset + item.size and item.begin <= frame.at < item.end
        ]
        variable = min(fitting, key=lambda item: item.end - item.begin, default=None)
        if variable is None:
            return next((area for area in frame.areas if area.begin <= address < area.end), None)
        begin = frame.top + variable.offset
        return Extent(begin, begin + variable.size, variable.name)
