# SPDX-License-Identifier: Apache-2.0
"""Estimates the cycles of a run: the number of passages between blocks of code, times a core's cycles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from minrpc.cycles.core import Core, Span
from minrpc.cycles.instructions import Instruction, decode
from minrpc.errors import ConfigurationError

_DECIDED: Final = 64


class Passage(IntEnum):
    """The way of execution from one block of code to the next."""

    AS_WRITTEN = 0
    """The way to the next instruction, or to a target of the last instruction."""
    INTO_EXCEPTION = 1
    OUT_OF_EXCEPTION = 2
    AFTER_EXCEPTION = 3
    """A way as written that an exception interrupted: the instructions of the block that was left belong to
    the edge into the exception."""


class CodeBlock(NamedTuple):
    """Code that was executed from its first instruction on: `code` lies at address `start`."""

    start: int
    code: bytes


class Edge(NamedTuple):
    """Execution left the block number `left` behind its first `size` bytes, and entered `entered`, while the
    node number `node` of a tree of calls was active.

    skipped: a bit for each of the first 64 instructions behind an IT that its condition skipped.
    """

    left: int
    entered: int
    size: int
    passage: Passage
    node: int
    skipped: int = 0


class Timed(NamedTuple):
    """Straight code with the cycles of each of its instructions.

    counted: the part of these cycles that is not counted by the instruction's operands.
    """

    code: Sequence[Instruction]
    spans: Sequence[Span]
    counted: Sequence[Span]
    in_flash: bool

    def before(self, end: int) -> Timed:
        """The code before the address `end`."""
        size = sum(item.end <= end for item in self.code)
        return Timed(self.code[:size], self.spans[:size], self.counted[:size], self.in_flash)

    def behind(self, size: int) -> Timed:
        """The code behind the first `size` instructions."""
        return Timed(self.code[size:], self.spans[size:], self.counted[size:], self.in_flash)

    def cycles(self, end: int) -> list[int]:
        """The least cycles of each instruction, at `end` 0, or the most, at 1."""
        return [span[end] for span in self.spans]


class CycleModel:
    """Cycles that `core` takes for edges, which are numbered as they are learned.

    An edge has the cycles of the code that was left, and of the way to the code that was entered. All are
    whole numbers: sums over parts are equal to the whole, in any order.

    in_flash: True for the address of code that lies in flash, whose wait states the core's `flash` has.
    knows_operands: True if the cycles that operands decide are counted elsewhere: they are in no edge then.
    knows_conditions: True if edges have what conditions skipped; else a conditional instruction is a range.
    """

    def __init__(self, core: Core, in_flash: Callable[[int], bool] = lambda _: True) -> None:
        self.core = core
        self.knows_operands = self.knows_conditions = False
        self._in_flash = in_flash
        self._code: dict[tuple[int, int | None], Timed] = {}
        self._costs = np.zeros((0, 2), np.int64)
        # Each row is an edge's number, an address, and the least cycles there.
        self._places = np.zeros((0, 3), np.int64)
        self._nodes = np.zeros(0, np.int64)
        # An edge's cycles that are not its node's: an exception's entry is the handler's.
        self._entries = np.zeros(0, np.int64)
        # Reasons of edges without cycles, by number: they have 0 in all sums but `total`.
        self._refused: dict[int, ConfigurationError] = {}

    @property
    def edges(self) -> int:
        """Number of learned edges."""
        return len(self._costs)

    def learn(self, edges: Sequence[Edge], block: Callable[[int], CodeBlock]) -> None:
        """Learn more edges, also those whose code has no cycles. block: the block of a number."""
        if not edges:
            return
        costs, places = [], []
        for number, edge in enumerate(edges, self.edges):
            try:
                spans = self._spans(edge, block)
            except ConfigurationError as error:
                self._refused[number], spans = error.with_traceback(None), []
            costs.append((sum(span.least for _, span in spans), sum(span.most for _, span in spans)))
            places += [(number, address, span.least) for address, span in spans]
        self._costs = np.concatenate([self._costs, np.array(costs, np.int64)])
        self._places = np.concatenate([self._places, np.array(places, np.int64).reshape(-1, 3)])
        self._nodes = np.concatenate([self._nodes, np.array([edge.node for edge in edges], np.int64)])
        entries = [self.core.entry.least * (edge.passage is Passage.INTO_EXCEPTION) for edge in edges]
        self._entries = np.concatenate([self._entries, np.array(entries, np.int64)])

    def total(self, edges: npt.NDArray[np.int64], times: npt.NDArray[np.int64]) -> Span:
        """Cycles of edges, by their numbers, of which each was taken `times`.

        Raises ConfigurationError if one that was taken has no cycles.
        """
        for number, error in self._refused.items():
            if times[edges == number].any():
                raise copy(error)
        least, most = (times @ self._costs[edges]).tolist()
        return Span(least, most)

    def spread(self, times: npt.NDArray[np.int64]) -> int:
        """The largest excess in cycles over the least, if edge number i was taken `times[i]` times."""
        least, most = (times @ self._costs).tolist()
        return int(most - least)

    def by_address(self, times: npt.NDArray[np.int64]) -> dict[int, int]:
        """The least cycles by the instruction's address; the way to other code counts for the last
        instruction."""
        addresses, places = np.unique(self._places[:, 1], return_inverse=True)
        sums = np.zeros(len(addresses), np.int64)
        np.add.at(sums, places, self._places[:, 2] * times[self._places[:, 0]])
        nonzero = np.flatnonzero(sums)
        return dict(zip(addresses[nonzero].tolist(), sums[nonzero].tolist(), strict=True))

    def by_node(self, times: npt.NDArray[np.int64], nodes: int) -> list[int]:
        """The least cycles of each node of the tree of calls, without the entries of exceptions."""
        sums = np.zeros(nodes, np.int64)
        np.add.at(sums, self._nodes, (self._costs[:, 0] - self._entries) * times)
        return [int(cycles) for cycles in sums]

    def _spans(self, edge: Edge, block: Callable[[int], CodeBlock]) -> list[tuple[int, Span]]:
        """Addresses and cycles of the edge's instructions."""
        skipped = edge.skipped if self.knows_conditions else None
        left, entered = self._timed(edge.left, block, skipped), self._timed(edge.entered, block)
        executed = left.before(left.code[0].start + edge.size)
        last, first = executed.code[-1], entered.code[0]
        way = self._passage(edge, last, first)
        if edge.passage is Passage.AFTER_EXCEPTION:
            return [(last.start, way)]
        # An exception's entry is the handler's.
        place = (first if edge.passage is Passage.INTO_EXCEPTION else last).start
        spans = [*zip((item.start for item in executed.code), executed.counted, strict=True), (place, way)]
        return [*spans, *self._waits(executed, entered, way)] if self.core.flash.wait_states else spans

    def _passage(self, edge: Edge, last: Instruction, first: Instruction) -> Span:
        match edge.passage:
            case Passage.INTO_EXCEPTION:
                return self.core.entry
            case Passage.OUT_OF_EXCEPTION:
                return self.core.exit
        return self.core.passage(last, first)

    def _waits(self, executed: Timed, entered: Timed, way: Span) -> list[tuple[int, Span]]:
        """Addresses and cycles of an edge's waits for flash. way: cycles from one block to the other.

        The wait for the entered block's first two lines belongs to this edge, since the way into the block
        decides it; the waits for a block's other lines belong to the edges that leave it.
        """
        least, most = (self._waits_of(executed, entered, way[end], end) for end in (0, 1))
        waits = [(address, (some, more)) for (address, some), (_, more) in zip(least, most, strict=True)]
        # More cycles hide more waiting. The waiting for the actual cycles is between these two.
        return [
            (address, Span(min(ends), max(ends)) if self.knows_operands else Span(*ends))
            for address, ends in waits
        ]

    def _waits_of(self, executed: Timed, entered: Timed, way: int, end: int) -> list[tuple[int, int]]:
        flash, waits = self.core.flash, []
        if executed.in_flash:
            rest = executed.behind(flash.head(executed.code))
            starts = (item.start for item in rest.code)
            waits = list(zip(starts, flash.crossings(rest.code, rest.cycles(end)), strict=True))
        last = executed.code[-1]
        return [*waits, (last.start, self._arrival(executed, entered, way, end))]

    def _arrival(self, executed: Timed, entered: Timed, way: int, end: int) -> int:
        """Cycles of the waits for the first two lines of the entered block."""
        flash = self.core.flash
        if not entered.in_flash:
            return 0
        waited, spent = flash.wait_states, 0
        if executed.in_flash:
            since = flash.spent(executed.code, executed.cycles(end)) + way
            waited, spent = flash.arrival(executed.code[-1], since, entered.code[0])
        head = flash.head(entered.code)
        if head < len(entered.code):
            waited += flash.left(spent + sum(entered.cycles(end)[:head]))
        return waited

    def _timed(self, number: int, block: Callable[[int], CodeBlock], skipped: int | None = None) -> Timed:
        if (number, skipped) not in self._code:
            start, code = block(number)
            decoded = decode(code, start, self.core.instruction_set)
            if skipped is not None:
                decoded = _decided(decoded, skipped)
            spans = list(self.core.costs_of(decoded))
            counted = spans
            if self.knows_operands:
                counted = list(map(self.core.counted, decoded, spans))
            self._code[number, skipped] = Timed(decoded, spans, counted, self._in_flash(start))
        return self._code[number, skipped]


def _decided(code: Sequence[Instruction], skipped: int) -> list[Instruction]:
    """The code without conditions: a skipped instruction takes a cycle, as IT does."""
    decided: list[Instruction] = []
    shadow = number = 0
    for instruction in code:
        if shadow and number < _DECIDED:
            nothing: frozenset[str] = frozenset()
            instruction = instruction._replace(conditional=False)
            if skipped >> number & 1:
                instruction = instruction._replace(
                    kind="it", registers=0, reads=nothing, writes=nothing, address=nothing, updates=False
                )
        number += shadow > 0
        shadow = len(instruction.mnemonic) - 1 if _is_it(instruction) else max(0, shadow - 1)
        decided.append(instruction)
    return decided


def _is_it(instruction: Instruction) -> bool:
    return instruction.mnemonic.startswith("it")
