# SPDX-License-Identifier: Apache-2.0
"""Finds pointers to a call's arguments that a library keeps when the call is over.

The memory of a call's arrays and structs is used again by the next call: a driver that keeps such a pointer
reads other data then, without an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Self

import numpy as np

from minrpc.errors import GuardError
from minrpc.library.frame import CallFrame
from minrpc.library.structs import path_at, pointer_offsets
from minrpc.program.c_types import CType, Variable

# Slots that are nearer to each other are read at once, in bytes.
_APART: Final = 4096

Reader = Callable[[int, int], Callable[[], bytes | memoryview | None] | None]


class _Slot(NamedTuple):
    """A pointer in memory that stays: its address, and its name in C."""

    address: int
    name: str


class _Span(NamedTuple):
    """Slots that are read at once. read: their bytes from the first one on. words: the index of each slot."""

    read: Callable[[], bytes | memoryview | None] | None
    slots: tuple[_Slot, ...]
    words: np.ndarray[Any, np.dtype[np.intp]]


class KeptPointers:
    """The pointers in a library's variables, and in objects that were placed for it."""

    def __init__(self, pointer_size: int, reader: Reader) -> None:
        """reader: by address and size, a function that reads these bytes of the device; they are None, or
        OSError is raised, if they can't be read."""
        self._size = pointer_size
        self._dtype = np.dtype(f"<u{pointer_size}")
        self._reader = reader
        self._slots: dict[int, tuple[_Slot, ...]] = {}
        self._spans: tuple[_Span, ...] = ()
        self._told: dict[int, int] = {}

    @classmethod
    def of(
        cls, pointer_size: int, reader: Reader, variables: Iterable[Variable], addresses: Mapping[str, int]
    ) -> Self:
        """The pointers in the variables that have an address."""
        made = cls(pointer_size, reader)
        for variable in variables:
            if variable.symbol in addresses:
                made.add(variable.name, variable.type, addresses[variable.symbol])
        return made

    def add(self, name: str, ctype: CType, address: int) -> None:
        """Look at the pointers in an object of this type, too."""
        slots = tuple(_Slot(address + at, f"{name}{path_at(ctype, at)}") for at, _ in pointer_offsets(ctype))
        if slots:
            self._slots[address] = slots
            self._spans = tuple(self._joined())

    def remove(self, address: int) -> None:
        """Forget the object at the address."""
        if self._slots.pop(address, None) is not None:
            self._spans = tuple(self._joined())

    def before_call(self) -> None:
        """Forget the told pointers that have another value now: a call that keeps them again is told."""
        for span in self._spans if self._told else ():
            try:
                data = span.read() if span.read is not None else None
            except OSError:  # The process has ended: the call tells that.
                return
            values = np.frombuffer(data, self._dtype)[span.words].tolist() if data else ()
            for slot, value in zip(span.slots, values, strict=False):
                if self._told.get(slot.address, value) != value:
                    del self._told[slot.address]

    def require(self, function: str, base: int, size: int, frame: Callable[[], CallFrame]) -> None:
        """Raise GuardError if one of the pointers points into the `size` bytes at `base`, the memory of a
        call that is over. A pointer that was told, and is unchanged, is not told again.

        frame: the call's arrays and structs, for the message.
        """
        for span in self._spans:
            try:
                data = span.read() if span.read is not None else None
            except OSError:  # The process has ended: the next call tells that.
                return
            if not data:
                continue
            # As unsigned numbers, addresses below `base` are large distances.
            distances = np.frombuffer(data, self._dtype)[span.words] - self._dtype.type(base)
            if distances.min() >= size:
                continue
            for index in np.flatnonzero(distances < size).tolist():
                self._tell(function, span.slots[index], int(distances[index]), base, frame)

    def _tell(
        self, function: str, slot: _Slot, offset: int, base: int, frame: Callable[[], CallFrame]
    ) -> None:
        if self._told.get(slot.address) == base + offset:
            return
        self._told[slot.address] = base + offset
        argument = next(
            (
                block.name
                for block in frame().blocks
                if block.offset <= offset < block.offset + max(block.size, 1)
            ),
            "its arguments",
        )
        raise GuardError(
            f"{function} kept a pointer to {argument} in {slot.name}: "
            "the next call uses that memory for other arguments",
            stage=f"call {function}",
            next_step="give an object that stays: minrpc.place(lib, value), device.array(...); "
            "or allow this by minrpc.allow_kept_pointers(lib)",
        )

    def _joined(self) -> Iterator[_Span]:
        slots = sorted(slot for several in self._slots.values() for slot in several)
        begin = 0
        for index, slot in enumerate(slots):
            apart = slot.address - slots[index - 1].address if index else 0
            if apart > _APART or apart % self._size:  # A member of a packed struct may lie anywhere.
                yield self._span(slots[begin:index])
                begin = index
        if slots:
            yield self._span(slots[begin:])

    def _span(self, slots: list[_Slot]) -> _Span:
        first = slots[0].address
        words = np.array([(slot.address - first) // self._size for slot in slots])
        read = self._reader(first, slots[-1].address - first + self._size)
        return _Span(read, tuple(slots), words)
