# SPDX-License-Identifier: Apache-2.0
"""What a call sends along by value: arrays and structs, side by side in one piece of the device's memory.

Between them lie guard words. What is only read comes first, what goes in and comes back next, what is only
written last, so that one upload and one download serve a call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from minrpc.errors import GuardError

GUARD: Final = 8
"""Bytes of a guard word, at least: what fills up to the next block's alignment is guard, too."""

_PATTERN: Final = bytes.fromhex("a65b93c74e1d68f2")
# A hole of so many bytes in an upload costs more than a message of its own.
_HOLE: Final = 512
# So many bytes more cost less than a message of their own.
_ALONG: Final = 256


@dataclass(eq=False)
class Block:
    """One array or struct of a call.

    name: for messages, "y (int16[64])".
    size, alignment: in bytes. read: whether the function gets its content; written: whether it comes back.
    constant: whether the function may not write to it, by its prototype.
    content: its bytes, asked when the call is sent.
    receive: takes the bytes that came back.
    host_at: the host's object at an offset, for pointers that come back.
    pointers: offsets of pointers in it, and which byte of which block they point to.
    offset: in the frame, once that is laid out.
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
    """The blocks of one call. `pointer_size`: bytes of a pointer on the target."""

    def __init__(self, pointer_size: int, *, guards: bool = True) -> None:
        self.blocks: list[Block] = []
        self.pointer_size = pointer_size
        self._guard = GUARD if guards else 0
        self.size = 0
        self._back = 0

    def add(self, block: Block) -> Block:
        """Take a block in."""
        self.blocks.append(block)
        return block

    def lay_out(self) -> None:
        """Give each block its offset; `size` is then what the frame needs."""
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
        """What to copy to the device, as offsets and bytes, when the frame lies at `base` there."""
        pieces: list[tuple[int, bytes]] = []
        for block, begin, end in self._spans():
            pieces.append((begin, _pattern(begin, end)))
            if block is not None and block.read:
                pieces.append((block.offset, self._bytes(block, base)))
        return _joined(pieces)

    def comes_back(self, *, cheap: bool) -> tuple[int, int]:
        """Offset and size of the bytes to copy back: 0 bytes when nothing is written.

        cheap: whether more bytes cost next to nothing. The blocks that are only read, and their guards, then
            come back, too, as they do where they are short.
        """
        guarded = self._guard and self.size and (cheap or self._back <= _ALONG)
        return (0, self.size) if guarded else (self._back, self.size - self._back)

    def unread(self, base: int, begin: int) -> bytes:
        """The bytes in front of offset `begin` as they were sent: what a call must not have changed.

        Empty where nothing is guarded.
        """
        return self.image(base)[0][1][:begin] if self._guard and begin else b""

    def take(self, data: memoryview, begin: int, base: int, function: str) -> None:
        """Hand what came back from offset `begin` on to its owners.

        Raises GuardError when the function wrote where it should not; then nothing is handed over.
        """
        if self._guard:
            self._check(data, begin, function)
            self._check_constants(data, begin, base, function)
        for block in self.blocks:
            if block.written:
                at = block.offset - begin
                block.receive(data[at : at + block.size], self, base)

    def host_at(self, base: int, address: int) -> object | None:
        """The host's object that has been at `address`; None when that is not in the frame.

        What points to the end of an array is of that, as in C, unless something else begins there.
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
        count, place, block = last + 1, "behind", before
    else:
        assert behind is not None
        count, place, block = len(found) - first, "before", behind
    least = "at least " if count == len(found) else ""
    return GuardError(
        f"{function} wrote {least}{_bytes_text(count)} {place} {block.name}",
        stage=f"call {function}",
    )


def _bytes_text(count: int) -> str:
    return f"{count} byte{'s' * (count > 1)}"


def _pattern(begin: int, end: int) -> bytes:
    """The guard's bytes: each place has its own, so that a copy of one guard over another shows."""
    first = begin % len(_PATTERN)
    repeated = _PATTERN * ((end - begin) // len(_PATTERN) + 2)
    return repeated[first : first + end - begin]


def _joined(pieces: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Neighbours as one; small holes, which nobody reads, are filled."""
    joined: list[tuple[int, bytearray]] = []
    for at, data in pieces:
        if joined and at - (joined[-1][0] + len(joined[-1][1])) < _HOLE:
            begin, held = joined[-1]
            held.extend(bytes(at - begin - len(held)))
            held += data
        else:
            joined.append((at, bytearray(data)))
    return [(at, bytes(data)) for at, data in joined if data]
