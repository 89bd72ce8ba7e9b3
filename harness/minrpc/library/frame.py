# SPDX-License-Identifier: Apache-2.0
"""The arrays and structs of a call, side by side in one block of the device's memory.

Guard words separate them. Inputs come first, blocks that are read and written next, outputs last, so that
one upload and one download serve a call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from minrpc.errors import GuardError

GUARD: Final = 8
"""Smallest size of a guard, in bytes: padding before the next block is guard, too."""

WIDE_GUARD: Final = 64
"""Size of a guard if the device shares its memory, so that more bytes cost almost nothing."""

_PATTERN: Final = bytes.fromhex("a65b93c74e1d68f2")
# A hole of this many bytes in an upload costs more than a second message.
_HOLE: Final = 512
# This many more bytes cost less than a second message.
_ALONG: Final = 256


@dataclass(eq=False)
class Block:
    """One array or struct of a call.

    name: for messages, "y (int16[64])".
    size, alignment: in bytes. read: True if its content is sent. written: True if it is copied back.
    constant: True if the prototype forbids the function to write to it.
    content: gives its bytes; called when the call is sent.
    receive: takes the bytes that were copied back.
    host_at: gives the host's object at an offset, for pointers that are copied back.
    pointers: offsets of pointers in the block, each with the block and byte that it points to.
    offset: in the frame, set by `CallFrame.lay_out`.
    """

    name: str
    size: int
    alignment: int
    read: bool
    written: bool
    content: Callable[[], bytes | memoryview]
    receive: Callable[[memoryview, CallFrame, int], None]
    host_at: Callable[[int], object]
    constant: bool = False
    pointers: list[tuple[int, Block, int]] = field(default_factory=list)
    offset: int = 0


class CallFrame:
    """The blocks of one call.

    pointer_size: size of a pointer on the target, in bytes. guard: size of a guard, in bytes; 0 for none.
    """

    def __init__(self, pointer_size: int, *, guard: int = GUARD) -> None:
        self.blocks: list[Block] = []
        self.pointer_size = pointer_size
        self._guard = guard
        self.size = 0
        self._back = 0

    @property
    def guarded(self) -> bool:
        """True if its blocks lie between guards."""
        return self._guard > 0

    def add(self, block: Block) -> Block:
        """Append a block."""
        self.blocks.append(block)
        return block

    def lay_out(self) -> None:
        """Set each block's offset, and `size` to the frame's size in bytes."""
        self.blocks.sort(key=lambda block: (block.written, not block.read))
        at = self._guard
        self._back = -1
        end = 0
        for block in self.blocks:
            at = -(-at // block.alignment) * block.alignment
            if block.written and self._back < 0:
                self._back = end
            block.offset = at
            end = at + block.size
            at = end + self._guard
        self.size = at if self.blocks else 0
        self._back = self.size if self._back < 0 else self._back

    def image(self, base: int) -> list[tuple[int, bytes]]:
        """The bytes to copy to the device, as (offset, bytes), for a frame at address `base`."""
        pieces: list[tuple[int, bytes]] = []
        for block, begin, end in self._spans():
            pieces.append((begin, _pattern(begin, end)))
            if block is not None and block.read:
                pieces.append((block.offset, self._bytes(block, base)))
        return _joined(pieces)

    def comes_back(self, *, cheap: bool) -> tuple[int, int]:
        """Offset and size of the bytes to copy back: 0 bytes if the function writes none.

        cheap: True if more bytes cost next to nothing. Blocks that are only read, and their guards, are then
            copied back, too; short ones always are.
        """
        guarded = self._guard and self.size and (cheap or self._back <= _ALONG)
        return (0, self.size) if guarded else (self._back, self.size - self._back)

    def unread(self, base: int, begin: int) -> bytes:
        """The bytes before offset `begin` as they were sent, which a call must leave unchanged.

        Empty if the frame has no guards.
        """
        return self.image(base)[0][1][:begin] if self._guard and begin else b""

    def take(self, data: memoryview, begin: int, base: int, function: str) -> None:
        """Pass `data`, the frame's bytes from offset `begin`, to the blocks' owners.

        Raises GuardError if the function wrote outside its arguments; then no owner gets bytes.
        """
        if self._guard:
            self._check(data, begin, function)
            self._check_constants(data, begin, base, function)
        for block in self.blocks:
            if block.written:
                at = block.offset - begin
                block.receive(data[at : at + block.size], self, base)

    def host_at(self, base: int, address: int) -> object | None:
        """The host's object at `address`; None if that is outside the frame.

        An address at the end of an array belongs to the array, as in C, unless another block begins there.
        """
        at = address - base
        for block in self.blocks:
            if block.offset <= at < block.offset + max(block.size, 1):
                return block.host_at(at - block.offset)
        return next(
            (block.host_at(block.size) for block in self.blocks if at == block.offset + block.size), None
        )

    def _bytes(self, block: Block, base: int) -> bytes:
        content = block.content()
        if not block.pointers:
            return bytes(content)
        patched = bytearray(content)
        for at, target, inside in block.pointers:
            address = base + target.offset + inside
            patched[at : at + self.pointer_size] = address.to_bytes(self.pointer_size, "little")
        return bytes(patched)

    def _spans(self) -> list[tuple[Block | None, int, int]]:
        """Each block with the guard before it, and the guard at the end."""
        spans: list[tuple[Block | None, int, int]] = []
        at = 0
        for block in self.blocks:
            spans.append((block, at, block.offset))
            at = block.offset + block.size
        return [*spans, (None, at, self.size)]

    def _check_constants(self, data: memoryview, first: int, base: int, function: str) -> None:
        for block in self.blocks:
            if not block.constant or block.written or block.offset < first:
                continue
            at = block.offset - first
            sent, found = self._bytes(block, base), bytes(data[at : at + block.size])
            if sent != found:
                changed = [
                    i for i, (item, other) in enumerate(zip(sent, found, strict=True)) if item != other
                ]
                raise GuardError(
                    f"{function} wrote {_bytes_text(len(changed))} of {block.name}, which it may only read; "
                    f"the first at offset {changed[0]}",
                    stage=f"call {function}",
                )

    def _check(self, data: memoryview, first: int, function: str) -> None:
        before: Block | None = None
        for block, begin, end in self._spans():
            if begin >= first:
                found = bytes(data[begin - first : end - first])
                expected = _pattern(begin, end)
                if found != expected:
                    raise _damage(function, before, block, found, expected)
            before = block


def _damage(
    function: str, before: Block | None, behind: Block | None, found: bytes, expected: bytes
) -> GuardError:
    changed = [
        index for index, (item, other) in enumerate(zip(found, expected, strict=True)) if item != other
    ]
    first, last = changed[0], changed[-1]
    if before is not None and (behind is None or first <= len(found) - 1 - last):
        count, gap, place, block = last + 1, first, "behind", before
    else:
        assert behind is not None
        count, gap, place, block = len(found) - first, len(found) - 1 - last, "before", behind
    least = "at least " if count == len(found) else ""
    if gap >= GUARD:  # Nearer bytes may have been written with the guard's own values.
        count, place = count - gap, f"{_bytes_text(gap)} {place}"
    return GuardError(
        f"{function} wrote {least}{_bytes_text(count)} {place} {block.name}",
        stage=f"call {function}",
    )


def _bytes_text(count: int) -> str:
    return f"{count} byte{'s' * (count > 1)}"


def _pattern(begin: int, end: int) -> bytes:
    """The guard's bytes: they depend on the offset, so that one guard copied over another is detected."""
    first = begin % len(_PATTERN)
    repeated = _PATTERN * ((end - begin) // len(_PATTERN) + 2)
    return repeated[first : first + end - begin]


def _joined(pieces: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Joins adjacent pieces, and pieces with a small hole between them; the filled bytes are unused."""
    joined: list[tuple[int, bytearray]] = []
    for at, data in pieces:
        if joined and at - (joined[-1][0] + len(joined[-1][1])) < _HOLE:
            begin, held = joined[-1]
            held.extend(bytes(at - begin - len(held)))
            held += data
        else:
            joined.append((at, bytearray(data)))
    return [(at, bytes(data)) for at, data in joined if data]
