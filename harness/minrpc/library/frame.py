# SPDX-License-Identifier: Apache-2.0
"""The arrays and structs of a call, side by side in one block of the device's memory.

Guard words separate them. Inputs come first, blocks that are read and written next, outputs last, so that
one upload and one download serve a call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from minrpc.errors import GuardError
from minrpc.library.lent_pointers import Lent
from minrpc.library.structs import Storage, Within

GUARD: Final = 8
"""Smallest size of a guard, in bytes: padding before the next block is guard, too."""

WIDE_GUARD: Final = 64
"""Size of a guard if the device shares its memory, so that more bytes cost almost nothing."""

ALIGNMENT: Final = 64
"""Alignment of a frame on the device at least, in bytes: the device's own, of any memory."""

_PATTERN: Final = bytes.fromhex("a65b93c74e1d68f2")
# A hole of this many bytes in an upload costs more than a second message.
_HOLE: Final = 512
# This many more bytes cost less than a second message.
_ALONG: Final = 256


HostAt: TypeAlias = Callable[[int], object | None]
"""Gives the host's object at an address of the device; None outside the frame."""


@dataclass(eq=False)
class Block:
    """One array or struct of a call.

    name: for messages, "y (int16[64])".
    size, alignment: in bytes.
    content: gives its bytes; called when the call is sent. None if it is only written.
    receive: takes the bytes after the call, and as they were sent. written: True if they are copied back.
    constant: True if the prototype forbids the function to write to it.
    value: the host's object, for pointers that are copied back.
    host: the address of its bytes in this process; 0 if it shares them with no other block.
    pointers: offsets of pointers in the block, each with an address, or the block and byte that it points to.
    place: of an element of a list, the list's block and its offset there.
    inside: the blocks that lie in it, set by `CallFrame.lay_out`; returned: one of them, or it, is written.
    offset: in the frame, set by `CallFrame.lay_out`.
    """

    name: str
    size: int
    alignment: int
    content: Callable[[], bytes | memoryview] | None
    receive: Callable[[memoryview, bytearray, HostAt], None] | None = None
    written: bool = False
    constant: bool = False
    value: object = None
    host: int = 0
    pointers: list[tuple[int, Block | int, int]] = field(default_factory=list)
    place: tuple[Block, int] | None = None
    inside: list[Block] = field(default_factory=list)
    returned: bool = False
    offset: int = 0


class CallFrame:
    """The blocks of one call. `blocks`: those that lie in no other, when the frame is laid out.

    pointer_size: size of a pointer on the target, in bytes. guard: size of a guard, in bytes; 0 for none.
    lent: of pointers into other calls' memory that the call is given. passed: of structs that C has passed to
        the function in Python which makes the call.
    """

    def __init__(self, pointer_size: int, *, guard: int = GUARD) -> None:
        self.blocks: list[Block] = []
        self._all = self.blocks
        self._sent = bytearray()
        self.pointer_size = pointer_size
        self.guard = guard
        self.lent: list[Lent] = []
        self.passed: list[Storage] = []
        self.size = 0
        self.alignment = ALIGNMENT
        self._back = 0

    def add(self, block: Block) -> Block:
        """Append a block."""
        self.blocks.append(block)
        return block

    def lay_out(self, function: str) -> None:
        """Set each block's offset, and `size` and `alignment` to the frame's, in bytes.

        Blocks that share memory of the host share it on the device. Raises ValueError if they can't.
        """
        self.blocks = _outermost(self._all, function)
        self.blocks.sort(key=lambda block: (block.returned, block.content is None))
        at = self.guard
        self._back = -1
        end = 0
        for block in self.blocks:
            at = -(-at // block.alignment) * block.alignment
            if block.returned and self._back < 0:
                self._back = end
            block.offset = at
            for inner in block.inside:
                inner.offset += at
            end = at + block.size
            at = end + self.guard
        self.size = at if self.blocks else 0
        self.alignment = max([ALIGNMENT, *(block.alignment for block in self.blocks)])
        self._back = self.size if self._back < 0 else self._back

    def image(self, base: int) -> list[tuple[int, bytes]]:
        """The bytes to copy to the device, as (offset, bytes), for a frame at address `base`."""
        sent = self._sent = bytearray(self.size)
        runs: list[tuple[int, int]] = []
        for block, begin, end in self._spans():
            sent[begin:end] = _pattern(begin, end)
            if block is not None and block.content is not None:
                end = block.offset + block.size
                sent[block.offset : end] = block.content()
                for owner in (block, *block.inside):
                    for at, target, inside in owner.pointers:
                        address = inside + (target if isinstance(target, int) else base + target.offset)
                        first = owner.offset + at
                        sent[first : first + self.pointer_size] = address.to_bytes(
                            self.pointer_size, "little"
                        )
            if runs and begin - runs[-1][1] < _HOLE:
                begin, _ = runs.pop()
            runs.append((begin, end))
        return [(begin, bytes(sent[begin:end])) for begin, end in runs if begin < end]

    @property
    def all_blocks(self) -> list[Block]:
        """The blocks, also those that lie in others."""
        return self._all

    def sent_constants(self, image: bytes) -> None:
        """Take the constants of `image`, the frame as it lies on the device, for those that were sent."""
        for block in self.blocks:
            if block.constant and not block.written:
                part = slice(block.offset, block.offset + block.size)
                self._sent[part] = image[part]

    def comes_back(self, *, cheap: bool) -> tuple[int, int]:
        """Offset and size of the bytes to copy back: 0 bytes if the function writes none.

        cheap: True if more bytes cost next to nothing. Blocks that are only read, and their guards, are then
            copied back, too; short ones always are.
        """
        guarded = self.guard and self.size and (cheap or self._back <= _ALONG)
        return (0, self.size) if guarded else (self._back, self.size - self._back)

    def unread(self, begin: int) -> bytes:
        """The bytes before offset `begin` as they were sent, which a call must leave unchanged.

        Empty if the frame has no guards.
        """
        return bytes(self._sent[:begin]) if self.guard else b""

    def take(self, data: memoryview, begin: int, base: int, function: str) -> None:
        """Pass `data`, the frame's bytes from offset `begin`, to the blocks' owners.

        Raises GuardError if the function wrote outside its arguments; then no owner gets bytes.
        """
        if not self._sent:
            self.image(base)
        if self.guard:
            self._check(data, begin, function)
            self._check_constants(data, begin, function)
        for block in self._all:
            if block.written and block.receive is not None:
                at, end = block.offset, block.offset + block.size
                block.receive(
                    data[at - begin : end - begin], self._sent[at:end], lambda a: self._host_at(a - base)
                )

    def _host_at(self, at: int) -> object | None:
        """The host's object at an offset, or its byte there; None if there is none.

        The largest object that begins there, else the smallest one around it. The end of an array belongs to
        the array, as in C, unless another block begins there.
        """
        blocks = [block for block in self._all if block.offset <= at < block.offset + max(block.size, 1)]
        blocks = blocks or [block for block in self._all if at == block.offset + block.size]
        exact = [block for block in blocks if block.offset == at and block.value is not None]
        if exact:
            return max(exact, key=lambda block: block.size).value
        best = min(blocks, key=lambda block: (block.value is None, block.size), default=None)
        return None if best is None or best.value is None else Within(best.value, at - best.offset)

    def _spans(self) -> list[tuple[Block | None, int, int]]:
        """Each block with the guard before it, and the guard at the end."""
        spans: list[tuple[Block | None, int, int]] = []
        at = 0
        for block in self.blocks:
            spans.append((block, at, block.offset))
            at = block.offset + block.size
        return [*spans, (None, at, self.size)]

    def _check_constants(self, data: memoryview, first: int, function: str) -> None:
        for block in self.blocks:
            if not block.constant or block.written or block.offset < first:
                continue
            at = block.offset
            sent = self._sent[at : at + block.size]
            received = bytearray(data[at - first : at - first + block.size])
            for inner in block.inside:
                if inner.written:
                    part = slice(inner.offset - at, inner.offset - at + inner.size)
                    received[part] = sent[part]
            if changed := _changed(received, sent):
                raise GuardError(
                    f"{function} wrote {_bytes_text(len(changed))} of {block.name}, which it may only read; "
                    f"the first at offset {changed[0]}",
                    stage=f"call {function}",
                )

    def _check(self, data: memoryview, first: int, function: str) -> None:
        before: Block | None = None
        for block, begin, end in self._spans():
            if begin >= first:
                actual = bytes(data[begin - first : end - first])
                expected = _pattern(begin, end)
                if actual != expected:
                    raise _damage(function, before, block, actual, expected)
            before = block


def _outermost(blocks: Sequence[Block], function: str) -> list[Block]:
    """The blocks that lie in no other one; each holds those that lie in it. Raises ValueError for blocks of
    which each has bytes that the other lacks, unless both are only read."""
    for block in blocks:
        block.returned = block.written
    outermost = [block for block in blocks if not block.host]
    groups: list[list[Block]] = []  # Blocks that have bytes in common. An empty one may be at another's end.
    last = 0
    for block in sorted((block for block in blocks if block.host), key=lambda block: block.host):
        if groups and (block.host < last or (block.host == last and not block.size)):
            groups[-1].append(block)
        else:
            groups.append([block])
        last = max(last, block.host + block.size)
    for group in groups:
        outer = max(group, key=lambda block: (block.size, block.place is not None))
        begin, end = outer.host, outer.host + outer.size
        row, at = outer.place or (outer, 0)
        if row is outer:
            outermost.append(outer)
        for block in group:
            if block is not outer and (block.place or block.host < begin or block.host + block.size > end):
                if block.place or outer.place or any(other.written for other in group):
                    hint = "overlaps {}; pass arrays of the device, or one array for both"
                    if block.place:
                        hint = "lies elsewhere in {}; give a copy"
                    raise ValueError(f"{function}: {block.name} {hint.format(outer.name)}")
                outermost.append(block)
            elif block is not row:
                row.inside.append(block)
                row.alignment = max(row.alignment, block.alignment)
                row.returned |= block.written
                block.offset = at + block.host - begin
    return outermost


def _damage(
    function: str, before: Block | None, behind: Block | None, actual: bytes, expected: bytes
) -> GuardError:
    changed = _changed(actual, expected)
    first, last = changed[0], changed[-1]
    if before is not None and (behind is None or first <= len(actual) - 1 - last):
        count, gap, place, block = last + 1, first, "behind", before
    else:
        assert behind is not None
        count, gap, place, block = len(actual) - first, len(actual) - 1 - last, "before", behind
    least = "at least " if count == len(actual) else ""
    if gap >= GUARD:  # Nearer bytes may have been written with the guard's own values.
        count, place = count - gap, f"{_bytes_text(gap)} {place}"
    return GuardError(
        f"{function} wrote {least}{_bytes_text(count)} {place} {block.name}", stage=f"call {function}"
    )


def _changed(actual: bytes | bytearray, expected: bytes | bytearray) -> list[int]:
    """The offsets of the bytes that differ."""
    return [i for i, (one, other) in enumerate(zip(actual, expected, strict=True)) if one != other]


def _bytes_text(count: int) -> str:
    return f"{count} byte{'s' * (count > 1)}"


def _pattern(begin: int, end: int) -> bytes:
    """The guard's bytes: they depend on the offset, so that one guard copied over another is detected."""
    first = begin % len(_PATTERN)
    repeated = _PATTERN * ((end - begin) // len(_PATTERN) + 2)
    return repeated[first : first + end - begin]
