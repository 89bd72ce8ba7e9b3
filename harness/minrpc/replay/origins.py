# SPDX-License-Identifier: Apache-2.0
"""Replays a record, and follows each pointer from the object that it was made from: an access by it must stay
in that object, also if another object lies right behind.

Values are known only in part: numbers in the code, addresses of variables, blocks of malloc. A pointer that
is known as an address is one into the variable there; it is judged once a number that is not known has been
added, or while it steps along. Code may make a pointer to a few bytes before a variable, so such a pointer
may go into the next variable, unless it points to the begin of its own. Bytes of the stack, and of blocks,
that were never written are followed in the same way, up to a branch or an address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from minrpc.counters.image import Image
from minrpc.cycles.instructions import InstructionSet
from minrpc.program import CodeRange
from minrpc.replay.code_map import Part
from minrpc.replay.heap import HeapBlock
from minrpc.replay.memory_judge import Extent, Fault
from minrpc.replay.operations import SP, Kind, Operation, operations
from minrpc.replay.trace import ADDRESS, BLOCK, IO, LEFT, SIZE_AT, STORE, Steps
from minrpc.replay.variables import Frame, Variables

_ADDRESS, _BLOCK, _LEFT = int(ADDRESS), int(BLOCK), int(LEFT)
_STORE, _IO, _SIZE_AT = int(STORE), int(IO), int(SIZE_AT)
_WORD: Final = 4
_MASK: Final = 0xFFFFFFFF
# The largest distance of a pointer that code makes before or behind a variable, in bytes.
_BIAS: Final = 8
_LONGEST: Final = 4
_SETS: Final[Mapping[str, InstructionSet]] = {"EM_ARM": "thumb", "EM_RISCV": "riscv32"}
# Registers that a call may change, with the result first.
_CHANGED: Final[Mapping[str, Sequence[str]]] = {
    "EM_ARM": ("r0", "r1", "r2", "r3", "r12", "ip", "lr"),
    "EM_RISCV": (*(f"a{i}" for i in range(8)), *(f"t{i}" for i in range(7)), "ra"),
}
# Registers through which code reaches its frame.
_OF_FRAME: Final = frozenset({SP, "r7", "r11", "fp", "s0"})
# A number that is changed in its place more often is a counter, and not made of several parts.
_COUNTS: Final = 3
# Registers of arguments.
_GIVEN: Final = ("r0", "r1", "r2", "r3", *(f"a{i}" for i in range(8)))
_THUNK: Final = "minrpc_t"
_MALLOC: Final = "__wrap_malloc"


class Known(NamedTuple):
    """A number that is known, also an address. steps: how often it was changed in its place; -1 for the upper
    bits of an address."""

    number: int
    steps: int = 0


class Offset(NamedTuple):
    """An unknown number, plus this one. steps: as in `Known`."""

    number: int
    steps: int = 0


class Within(NamedTuple):
    """A pointer that was made from the address `origin`."""

    origin: int


class Of(NamedTuple):
    """A pointer into a block of malloc, or an area of alloca whose place is not known."""

    block: HeapBlock


class Unwritten(NamedTuple):
    """A value of bytes that were never written."""

    address: int
    size: int


Value = Known | Offset | Within | Of | Unwritten | None
Object = Extent | HeapBlock


def can_replay(image: Image) -> bool:
    """True if the instructions of the image's processor are known."""
    return image.machine in _SETS and not image.wide


class Replay:
    """One replay of one record."""

    def __init__(
        self,
        image: Image,
        variables: Variables,
        stack: Extent,
        given: Mapping[int, HeapBlock],
        cache: dict[tuple[int, int], list[Operation]],
    ) -> None:
        """stack: addresses of the call's stack. given: blocks of malloc by the step that tells their end.

        cache: operations of blocks of code, by their address and the distance of their last instruction.
        """
        self._image, self._variables, self._given, self._cache = image, variables, given, cache
        self._stack = stack
        self._set, self._changed = _SETS[image.machine], _CHANGED[image.machine]
        self._registers: dict[str, Value] = {"zero": Known(0)}
        self._memory: dict[int, Value] = {}
        self._frames: list[Frame] = [Frame(0, None, None)]
        self._calls: int | None = None  # the return address, if the last block ended by a call
        self._flags: Value = None
        self._pending: HeapBlock | None = None
        self._wrapper = ""
        self._written = bytearray(b"\1") * (stack.end - stack.begin)
        self._blocks: dict[int, tuple[HeapBlock, bytearray]] = {}
        self._functions: dict[int, CodeRange | None] = {}
        self._judged = False
        self._doubtful = False  # A value that was never written has been read.
        self.faults: list[Fault] = []

    def run(self, steps: Steps, owners: npt.NDArray[np.uint8]) -> list[Fault]:
        """Replay the record from its first step on; the faults."""
        rows: list[tuple[int, int]] = steps.tolist()
        parts: list[int] = owners.tolist()
        at, count = 0, len(rows)
        while at < count:
            where, what = rows[at]
            if not what & _BLOCK:
                at += 1
            elif parts[at] == Part.TRAP:
                self._interrupt()
                at += 1
            elif what == _LEFT:
                self._leave(parts[at - 1] if at else Part.RUNTIME)
                at += 1
            else:
                self._judged = parts[at] == Part.LIBRARY
                at = self._block(where, what & _ADDRESS, rows, at, parts[at])
        return self.faults

    def _leave(self, part: int) -> None:
        """Other code runs: it may change registers, and all memory."""
        if self._calls is None:
            self._interrupt()
        for name in self._changed:
            self._registers.pop(name, None)
        if part != Part.RUNTIME:
            self._memory.clear()
            self._written = bytearray(b"\1") * len(self._written)
            self._blocks.clear()

    def _interrupt(self) -> None:
        """Registers are not known after an interrupt, whose handler may be loaded code, nor after an unknown
        instruction."""
        self._registers = {"zero": Known(0)}
        self._flags = None

    def _block(self, where: int, last: int, rows: Sequence[tuple[int, int]], at: int, part: int) -> int:
        """Replay a block of code; returns the next step's number."""
        self._enter(where, part)
        first, at, count = at, at + 1, len(rows)
        known = self._operations(where, last)
        for operation in known:
            begin = at
            while at < count and rows[at][0] == operation.at and not rows[at][1] & _BLOCK:
                at += 1
            self._frames[-1].at = operation.at
            if operation.kind in (Kind.LOAD, Kind.STORE):
                self._access(operation, rows, begin, at)
            else:
                if begin < at:
                    self._store_unknown(rows, begin, at)
                self._compute(operation, begin)
        if not known or known[-1].at != where + last:
            at = self._skip(where + last, rows, at)
        if part == Part.GIVEN:
            self._pending = next(
                (self._given[step] for step in range(first, at) if step in self._given), self._pending
            )
        return at

    def _skip(self, last: int, rows: Sequence[tuple[int, int]], at: int) -> int:
        """Replay the rest of a block from an unknown instruction on: its stores are of unknown values.

        last: address of the block's last instruction. Returns the next step's number.
        """
        self._interrupt()
        begin = at
        while at < len(rows) and not rows[at][1] & _BLOCK:
            at += 1
        self._store_unknown(rows, begin, at)
        self._calls = next((item.end for item in self._operations(last, 0) if item.calls), None)
        return at

    def _store_unknown(self, rows: Sequence[tuple[int, int]], begin: int, end: int) -> None:
        for step in range(begin, end):
            where, what = rows[step]
            if what & _STORE:
                self._store(what & _ADDRESS, 1 << (what >> _SIZE_AT & 15), None, where, step)

    def _operations(self, where: int, last: int) -> list[Operation]:
        decoded = self._cache.get((where, last))
        if decoded is None:
            code = self._image.bytes_at(where, last + _LONGEST)
            decoded = [item for item in operations(code, where, self._set) if item.at <= where + last]
            self._cache[where, last] = decoded
        return decoded

    def _enter(self, where: int, part: int) -> None:
        """Notes calls and returns."""
        function = self._function(where)
        start = function.start if function is not None else 0
        frame = self._frames[-1]
        if self._calls is not None and self._calls != where:
            stack = self._registers.get(SP)
            frame.at = self._calls - 1
            top = stack.number if isinstance(stack, Known) else None
            self._frames.append(Frame(start, top, self._calls, where))
            if function is not None and function.name.startswith("__wrap_"):
                self._wrapper = function.name
        elif frame.returns != where and any(item.returns == where for item in self._frames):
            while self._frames[-1].returns != where:
                self._frames.pop()
            self._return()
        elif frame.returns == where:
            self._return()
        elif frame.function != start:
            frame.function = start
        self._calls = None

    def _return(self) -> None:
        frame = self._frames.pop()
        if frame.top is not None:
            self._registers[SP] = Known(frame.top)
        if not self._frames:
            self._frames.append(Frame(0, None, None))
        if self._pending is not None and self._judged:
            block, self._pending = self._pending, None
            self._registers[self._changed[0]] = Of(block)
            fresh = self._wrapper == _MALLOC
            self._blocks[block.begin] = (
                block,
                bytearray(b"\0" if fresh else b"\1") * (block.end - block.begin),
            )

    def _function(self, where: int) -> CodeRange | None:
        if where not in self._functions:
            self._functions[where] = self._image.function_at(where)
        return self._functions[where]

    # ------------------------------------------------------------------ values

    def _compute(self, operation: Operation, step: int) -> None:
        if operation.kind == Kind.BRANCH:
            if self._doubtful:
                self._branch(operation, step)
            if operation.calls:
                self._calls = operation.end
                self._give()
            return
        value = self._value(operation)
        if self._doubtful:
            self._set_flags(operation, step)
        for name in operation.to:
            if not operation.conditional or self._registers.get(name) == value:
                self._set_register(name, value)
            else:
                self._registers[name] = None

    def _branch(self, operation: Operation, step: int) -> None:
        tested = [self._registers.get(name) for name in operation.sources]
        tested += [self._flags] if operation.by_flags else []
        for value in tested:
            if isinstance(value, Unwritten) and not operation.calls:
                self._unwritten(value, operation.at, step)

    def _set_flags(self, operation: Operation, step: int) -> None:
        if operation.by_flags and isinstance(self._flags, Unwritten):
            self._unwritten(self._flags, operation.at, step)
        if operation.flags:
            tested = map(self._registers.get, operation.sources)
            self._flags = next((item for item in tested if isinstance(item, Unwritten)), None)

    def _give(self) -> None:
        """A call is given pointers to the begin of variables: the called function knows no others."""
        for name in _GIVEN:
            value = self._registers.get(name)
            if isinstance(value, Known) and self._begins(value.number):
                self._registers[name] = Within(value.number)

    def _set_register(self, name: str, value: Value) -> None:
        if name in ("zero", "pc"):
            return
        if name == SP:
            self._move_stack(value)
        elif name in _OF_FRAME and value is not None and value == self._registers.get(SP):
            self._frames[-1].settled = True
        self._registers[name] = value

    def _move_stack(self, value: Value) -> None:
        """Bytes between the old and the new stack pointer are a new frame's, or an area of alloca."""
        before = self._registers.get(SP)
        if not isinstance(value, Known) or not isinstance(before, Known) or value.number >= before.number:
            return
        begin, end = value.number - self._stack.begin, before.number - self._stack.begin
        if 0 <= begin < end <= len(self._written):
            self._written[begin:end] = bytes(end - begin)
            if self._frames[-1].settled:
                self._frames[-1].areas.append(Extent(value.number, before.number, "memory of alloca"))

    def _value(self, operation: Operation) -> Value:
        kind, registers, sources = operation.kind, self._registers, operation.sources
        if kind == Kind.NUMBER:
            return Known(operation.amount & _MASK)
        if kind == Kind.UPPER:
            return Known(operation.amount & _MASK, -1)
        if self._doubtful:
            values = [registers.get(name) for name in sources]
            unwritten = [value for value in values if isinstance(value, Unwritten)]
            if unwritten and kind != Kind.BITS:
                return unwritten[0]
            # Code that sets some bits of a word reads the others, which need not be written.
            if unwritten and len(unwritten) == len(values) > 1:
                return unwritten[0]
        if kind == Kind.SUM:
            return self._stepped(operation, registers.get(sources[0]))
        if kind == Kind.ADD:
            return self._sum(registers.get(sources[0]), _shifted(registers.get(sources[1]), operation.amount))
        if kind == Kind.SUBTRACT:
            return self._difference(registers.get(sources[0]), registers.get(sources[1]))
        return _shifted(registers.get(sources[0]), operation.amount) if kind == Kind.SHIFT else None

    def _stepped(self, operation: Operation, value: Value) -> Value:
        in_place = operation.to == operation.sources
        match value:
            case Known(number, steps):
                if in_place and operation.to[0] not in _OF_FRAME:
                    steps += 1
                    if steps and self._begins_array(number):
                        return Within(number)
                    if steps > _COUNTS and not self._is_place(number):
                        return None
                return Known(number + operation.amount & _MASK, max(steps, 0))
            case Offset(number, steps):
                steps += in_place
                return Offset(number + operation.amount, steps) if steps <= _COUNTS else None
            case None:
                return Offset(operation.amount, int(in_place)) if operation.amount else None
        return value

    def _sum(self, one: Value, other: Value) -> Value:
        if isinstance(other, Known | Within | Of) and not isinstance(one, Known | Within | Of):
            one, other = other, one
        match one, other:
            case Known(first, _), Known(second, _):
                return Known(first + second & _MASK)
            case Known(first, _), Offset(second, _):
                return self._pointer(first + second)
            case Known(first, _), None:
                return self._pointer(first)
            case Offset(first, _), Offset(second, _):
                return Offset(first + second)
            case ((Within() | Of()), (None | Known() | Offset())):
                return one
            case None, (Within() | Of()):
                return other
        return None

    def _difference(self, one: Value, other: Value) -> Value:
        match one, other:
            case Known(first, _), Known(second, _):
                return Known(first - second & _MASK)
            case Known(first, _), (None | Offset()):
                return self._pointer(first)
            case ((Within() | Of()), (None | Offset() | Known())):
                return one
        return None

    def _pointer(self, origin: int) -> Value:
        """A pointer from a known address and an unknown number; an unknown number if there is no variable."""
        return Within(origin) if self._is_place(origin) else Offset(origin)

    def _is_place(self, address: int) -> bool:
        """True for an address in the stack, or in a variable of file scope."""
        in_stack = self._stack.begin <= address < self._stack.end
        return in_stack or self._variables.in_memory(address) is not None

    def _begins(self, address: int) -> bool:
        extent = self._object(address)
        return extent is not None and extent.begin == address

    def _begins_array(self, address: int) -> bool:
        """True if a variable begins there that has more than one element.

        The pointer to a function's further arguments is made from the last named one's.
        """
        extent = self._object(address)
        return extent is not None and extent.begin == address and extent.end - extent.begin > _BIAS

    def _object(self, address: int) -> Extent | None:
        if not self._stack.begin <= address < self._stack.end:
            return self._variables.in_memory(address)
        for frame in reversed(self._frames):
            if frame.top is None or address < frame.top:
                return self._variables.in_frame(frame, address)
        return None

    # ------------------------------------------------------------------ memory

    def _access(self, operation: Operation, rows: Sequence[tuple[int, int]], begin: int, end: int) -> None:
        bases = [self._registers.get(name) for name in operation.sources]
        if begin == end:  # It was skipped, or the block was left before it.
            if not operation.conditional:
                self._forget(operation)
            return
        address = rows[begin][1] & _ADDRESS
        self._learn_stack(operation, address)
        if self._judged:
            self._judge(operation, bases, rows, begin, end)
        base = operation.sources[0]
        loads = operation.kind == Kind.LOAD
        values = [self._registers.get(name) for name in operation.to]
        whole = end - begin == len(operation.to)
        if operation.writes_back:
            self._write_back(base, operation.writes_back)
        for index in range(begin, end):
            at, size = rows[index][1] & _ADDRESS, 1 << (rows[index][1] >> _SIZE_AT & 15)
            if loads:
                value = self._loaded(at, size, operation) if whole else None
                if whole and operation.to[index - begin] != SP:
                    self._set_register(operation.to[index - begin], value)
            else:
                self._store(at, size, values[index - begin] if whole else None, operation.at, index)
        if not whole and loads:
            self._forget(operation)

    def _forget(self, operation: Operation) -> None:
        for name in operation.to if operation.kind == Kind.LOAD else ():
            self._registers[name] = None

    def _learn_stack(self, operation: Operation, address: int) -> None:
        """An access by the stack pointer shows it."""
        if operation.sources != (SP,):
            return
        pointer = address - operation.amount
        before = self._registers.get(SP)
        if not isinstance(before, Known) or before.number != pointer:
            self._registers[SP] = Known(pointer)
        if self._frames[-1].top is None and operation.writes_back < 0:
            self._frames[-1].top = pointer

    def _write_back(self, base: str, amount: int) -> None:
        value = self._registers.get(base)
        if base == SP:
            if isinstance(value, Known):
                self._set_register(SP, Known(value.number + amount & _MASK))
        elif isinstance(value, Known):
            number = value.number
            known = Known(number + amount & _MASK)
            self._registers[base] = Within(number) if self._begins_array(number) else known

    def _loaded(self, address: int, size: int, operation: Operation) -> Value:
        if operation.literal and size == _WORD:
            data = self._image.bytes_at(operation.literal, _WORD)
            return Known(int.from_bytes(data, "little")) if len(data) == _WORD else None
        room, at = self._room(address, size)
        if room is not None and not any(room[at : at + size]):
            self._doubtful = True
            kept = self._memory.get(address)
            return kept if isinstance(kept, Unwritten) else Unwritten(address, size)
        value = self._memory.get(address) if size == _WORD else None
        # A variable's number is not one of the code's.
        is_number = isinstance(value, Known) and not self._is_place(value.number)
        return None if is_number or isinstance(value, Offset) else value

    def _store(self, address: int, size: int, value: Value, where: int, step: int) -> None:
        room, at = self._room(address, size)
        if room is not None:
            room[at : at + size] = (b"\0" if isinstance(value, Unwritten) else b"\1") * size
        if isinstance(value, Unwritten):
            function = self._function(where)
            if not self._judged and function is not None and function.name.startswith(_THUNK):
                self._unwritten(value, where, step)
        word = address & ~(_WORD - 1)
        if size == _WORD and value is not None and word == address:
            self._memory[address] = value
        else:
            for near in range(word, address + size, _WORD):
                self._memory.pop(near, None)

    def _room(self, address: int, size: int) -> tuple[bytearray | None, int]:
        """The record of written bytes that has this place, and the place in it."""
        if self._stack.begin <= address and address + size <= self._stack.end:
            return self._written, address - self._stack.begin
        for begin, (block, room) in self._blocks.items():
            if begin <= address and address + size <= block.end:
                return room, address - begin
        return None, 0

    # ------------------------------------------------------------------ verdicts

    def _judge(
        self,
        operation: Operation,
        bases: Sequence[Value],
        rows: Sequence[tuple[int, int]],
        begin: int,
        end: int,
    ) -> None:
        if rows[begin][1] & _IO:
            return
        for value in bases:
            if isinstance(value, Unwritten):
                self._unwritten(value, operation.at, begin)
        pointer = bases[0]
        if len(bases) > 1:
            pointer = self._sum(bases[0], _shifted(bases[1], operation.shift))
        for index in range(begin, end):
            address, size = rows[index][1] & _ADDRESS, 1 << (rows[index][1] >> _SIZE_AT & 15)
            allowed: Object | None = None
            if isinstance(pointer, Of):
                allowed = pointer.block
                if allowed.begin <= address and address + size <= allowed.end:
                    continue
            elif isinstance(pointer, Within):
                allowed = self._limit(pointer.origin, operation.amount, address, size)
            if allowed is not None:
                self._tell("outside", operation.at, index, rows, allowed)
                return

    def _limit(self, origin: int, distance: int, address: int, size: int) -> Extent | None:
        """The object in which an access by a pointer should have stayed; None if it has."""
        made_from = self._object(origin)
        if made_from is None or made_from.begin != origin:
            made_from = self._object(origin + distance) or made_from
        if made_from is None or (made_from.begin <= address and address + size <= made_from.end):
            return None
        begins = made_from.begin in (origin, origin + distance)
        if begins and made_from.end - made_from.begin > _BIAS:
            return made_from
        other = self._object(address)
        if other is None or address + size > other.end:
            return made_from
        gap = min(abs(origin + distance - other.begin), abs(origin + distance - other.end))
        return None if gap <= _BIAS else made_from

    def _tell(
        self,
        why: Literal["outside"],
        where: int,
        step: int,
        rows: Sequence[tuple[int, int]],
        near: Object,
    ) -> None:
        what = rows[step][1]
        size = 1 << (what >> _SIZE_AT & 15)
        self.faults.append(Fault(step, where, what & _ADDRESS, size, bool(what & _STORE), why, near))

    def _unwritten(self, value: Unwritten, where: int, step: int) -> None:
        near: Object | None = self._object(value.address)
        if near is None:
            near = next(
                (block for block, _ in self._blocks.values() if block.begin <= value.address < block.end),
                None,
            )
        self.faults.append(Fault(step, where, value.address, value.size, False, "unwritten", near))


def _shifted(value: Value, amount: int) -> Value:
    """The value shifted left, or right if `amount` is negative."""
    if isinstance(value, Known):
        number = value.number << amount if amount >= 0 else value.number >> -amount
        return Known(number & _MASK)
    if isinstance(value, Offset) and amount >= 0:
        return Offset(value.number << amount)
    # A pointer is shifted to align it.
    return value if amount == 0 or isinstance(value, Within | Of) else None
