# SPDX-License-Identifier: Apache-2.0
"""Places the arrays, structs and text that arguments point to: each is a block of the call's frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minrpc.errors import GuardError
from minrpc.library.frame import Block, CallFrame
from minrpc.library.pointer_types import Callback, check_dtype, device_address, require_fits
from minrpc.library.scalars import (
    Address,
    Shown,
    describe,
    is_float,
    is_number,
    number_bytes,
    to_float,
    to_int,
    wrong,
)
from minrpc.library.structs import (
    StructValue,
    Within,
    as_struct,
    bytes_of,
    pointer_offsets,
    record_of,
    storage_of,
)
from minrpc.program.c_types import (
    ArrayType,
    CType,
    FunctionType,
    Parameter,
    Pointer,
    RecordType,
    Scalar,
    Void,
    alignment_of,
    declaration,
    flat_fields,
    is_const,
    numpy_dtype,
    same_record,
    size_of,
    strip,
)
from minrpc.wire.values import Handle

Sent = int | float | Block | Handle
# Target of a pointer in a struct: a byte of a block, or an address.
PointerTarget = tuple[Block, int] | int


class Out(Shown):
    """An array that a function only writes: made by `out`, and filled in by the call.

    array: the written elements; None before the call. For pointers, an `Address` or a list of them, with None
        for a null pointer.
    """

    def __init__(self, shape: int | tuple[int, ...]) -> None:
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if any(count < 0 for count in self.shape):
            raise ValueError(f"{self!r}: a number of elements is not negative")
        self.array: np.ndarray[Any, np.dtype[Any]] | list[Address | None] | Address | None = None

    def __repr__(self) -> str:
        return f"out({self.shape[0] if len(self.shape) == 1 else self.shape})"


def out(shape: int | tuple[int, ...] = 1) -> Out:
    """For a pointer argument that is only written: an array of `shape` elements of the pointee's type.

    For `int16_t a[3][3]`, out(3) (three rows) and out((3, 3)) both give an array of 3 by 3.

    For `x **handle` out() gives the written pointer as an `Address`, which other functions take.

    The call returns the array alone if the function has no result, else a tuple of the result and the array.
    """
    return Out(shape)


class Placer:
    """Puts the objects that arguments point to into a frame, each object once."""

    def __init__(self, frame: CallFrame, function: str, callback: Callback | None = None) -> None:
        """function: the called function's name. callback: None if Python functions can't be called."""
        self._frame = frame
        self._function = function
        self._callback = callback
        self._structs: dict[tuple[int, int], Block] = {}
        self._arrays: dict[tuple[int, int], Block] = {}
        self._spans: list[tuple[int, int, Block]] = []
        # A block's source object is kept until the call is over, so that its id stays unique.
        self._alive: list[object] = []

    def argument(self, where: str, parameter: Parameter, value: object) -> Sent:
        ctype = parameter.type
        stripped = strip(ctype)
        if isinstance(stripped, Pointer):
            return self.pointer(where, parameter.name, ctype, stripped, value)
        if is_float(ctype):
            return to_float(where, ctype, value)
        if is_number(ctype):
            number = to_int(where, ctype, value)
            return number - (1 << 64) if number >= 1 << 63 else number
        return self._by_value(where, parameter.name, ctype, value)

    def _by_value(self, where: str, name: str, ctype: CType, value: object) -> Block:
        stripped = strip(ctype)
        if isinstance(stripped, RecordType):
            if not stripped.complete:
                raise TypeError(f"{where}: {declaration(ctype)} is incomplete: its members are not known")
            value = as_struct(stripped, where, value)
            if not isinstance(value, StructValue) or not same_record(record_of(value), stripped):
                raise wrong(where, ctype, value, "make one with minrpc.types(lib), or give a dict or a tuple")
            return self.struct(name, value, ctype, read=True, written=False)
        data = number_bytes(where, ctype, value)
        return self._frame.add(
            Block(name, len(data), alignment_of(ctype), True, False, lambda: data, _nothing, lambda _: None)
        )

    def pointer(
        self, where: str, name: str, ctype: CType, pointer: Pointer, value: object, *, own: bool = False
    ) -> Sent:
        """An address, or the block that holds the value.

        own: True if the device itself set the pointer: its type is then not checked.
        """
        if own:
            pointer = Pointer(Void(), pointer.size)
        if isinstance(value, np.ndarray):
            return self._array(where, name, ctype, pointer, value)
        if isinstance(value, StructValue):
            return self._struct_argument(where, name, ctype, pointer, value)
        if isinstance(value, Out):
            return self._out(where, name, ctype, pointer, value)
        if isinstance(value, bytes | bytearray | str):
            return self._text(where, name, ctype, pointer, value)
        if isinstance(value, list | tuple):
            return self._sequence(where, name, ctype, pointer, value)
        if type(value) is int and isinstance(strip(pointer.target), Void):
            require_fits(where, pointer.size, value)
            return Handle(value)
        address = device_address(where, ctype, pointer, value, self._callback)
        if address is not None:
            return Handle(address)
        hint = _FUNCTION_HINT if isinstance(strip(pointer.target), FunctionType) else _HINT
        raise wrong(where, ctype, value, hint if isinstance(value, int | float | np.generic) else "")

    def _array(
        self, where: str, name: str, ctype: CType, pointer: Pointer, value: np.ndarray[Any, Any]
    ) -> Block:
        check_dtype(where, ctype, pointer, value)
        written = not is_const(pointer.target)
        if not value.flags.c_contiguous:
            raise wrong(where, ctype, value, "it is not C-contiguous; pass np.ascontiguousarray(...)")
        if written and not value.flags.writeable:
            raise wrong(where, ctype, value, "the function may write to it, and it is read-only")
        begin = value.__array_interface__["data"][0]
        known = self._arrays.get((begin, value.nbytes))
        if known is not None:
            known.written |= written
            return known
        for low, high, other in self._spans:
            if low < begin + value.nbytes and begin < high and (written or other.written):
                raise ValueError(
                    f"{where}: {describe(value)} overlaps {other.name}; "
                    "pass arrays of the device, or one array for both"
                )
        flat = value.reshape(-1)

        def receive(data: memoryview, _frame: CallFrame, _base: int) -> None:
            flat.view(np.uint8)[:] = np.frombuffer(data, np.uint8)

        def host_at(offset: int) -> object:
            return Within(value, offset) if offset else value

        block = Block(
            f"{name or 'an array'} ({describe(value)})",
            value.nbytes,
            max(alignment_of(pointer.target), min(value.dtype.alignment, 16), 8),
            True,
            written,
            lambda: flat.view(np.uint8).data,
            receive,
            host_at,
            constant=not written,
        )
        self._arrays[begin, value.nbytes] = block
        self._spans.append((begin, begin + value.nbytes, block))
        self._alive.append(value)
        return self._frame.add(block)

    def _struct_argument(
        self, where: str, name: str, ctype: CType, pointer: Pointer, value: StructValue
    ) -> Block:
        target = strip(pointer.target)
        if not isinstance(target, Void) and not (
            isinstance(target, RecordType) and same_record(record_of(value), target)
        ):
            raise wrong(where, ctype, value)
        written = not is_const(pointer.target)
        block = self.struct(name, value, record_of(value), read=True, written=written)
        block.constant = not written
        return block

    def struct(self, name: str, value: StructValue, ctype: CType, *, read: bool, written: bool) -> Block:
        """The block of a struct; adds blocks for the objects that its pointers point to."""
        storage, base = storage_of(value)
        key = id(storage), base
        known = self._structs.get(key)
        size = max(size_of(ctype), len(bytes_of(value)))
        if known is not None and known.size == size:
            known.written |= written
            return known
        sent: dict[int, PointerTarget] = {}

        def receive(data: memoryview, frame: CallFrame, at: int) -> None:
            _update(value, data, sent, frame, at)

        block = Block(
            f"{name or 'a struct'} ({declaration(ctype)})",
            size,
            max(alignment_of(ctype), 8),
            read,
            written,
            lambda: _with_addresses(bytes_of(value), sent, self._frame.pointer_size),
            receive,
            lambda offset: Within(value, offset) if offset else value,
        )
        self._structs[key] = block
        self._alive.append(storage)
        self._frame.add(block)
        for offset, pointer in pointer_offsets(record_of(value)):
            if base + offset in storage.references:
                target = storage.references[base + offset]
                target, inside = target if isinstance(target, Within) else (target, 0)
                member = f"{name}->{_member(value, offset)}"
                own = base + offset in storage.came_back
                place = self.pointer(f"{self._function}: {member}", member, pointer, pointer, target, own=own)
                if isinstance(place, Block):
                    block.pointers.append((offset, place, inside))
                    sent[offset] = place, inside
                elif isinstance(place, Handle):
                    sent[offset] = place.value
        return block

    def _out(self, where: str, name: str, ctype: CType, pointer: Pointer, value: Out) -> Block:
        if is_const(pointer.target):
            raise wrong(where, ctype, value, "it is only read")
        try:
            dtype = numpy_dtype(_sized(pointer.target))
        except TypeError as error:
            raise wrong(where, ctype, value, str(error)) from None
        if isinstance(element := strip(pointer.target), RecordType):
            bits = ", ".join(field.name for field in flat_fields(element) if field.bits)
            if bits:
                raise wrong(where, ctype, value, f"numpy has no bit fields ({bits}): give a list of structs")
        rows = dtype.shape
        if rows and len(value.shape) > len(rows) and value.shape[-len(rows) :] == rows:
            dtype = dtype.base  # The shape is the whole array's, as for a given array.
        made = np.zeros(value.shape, dtype)

        def receive(data: memoryview, _frame: CallFrame, _base: int) -> None:
            if isinstance(strip(pointer.target), Pointer):
                found = [
                    Address(item, pointer.target) if item else None
                    for item in np.frombuffer(data, dtype).tolist()
                ]
                value.array = found[0] if value.shape == (1,) else found
                return
            value.array = np.frombuffer(bytearray(data), made.dtype).reshape(made.shape)

        return self._frame.add(
            Block(
                f"{name or 'an array'} ({describe(made)})",
                made.nbytes,
                max(alignment_of(pointer.target), 8),
                False,
                True,
                bytes,
                receive,
                lambda _: None,
            )
        )

    def value_out(self, name: str, ctype: CType, receive: Callable[[memoryview], None]) -> Block:
        """A block for a value that is returned through memory."""
        return self._frame.add(
            Block(
                name,
                size_of(ctype),
                alignment_of(ctype),
                False,
                True,
                bytes,
                lambda data, _frame, _base: receive(data),
                lambda _: None,
            )
        )

    def _text(
        self, where: str, name: str, ctype: CType, pointer: Pointer, value: bytes | bytearray | str
    ) -> Block:
        target = strip(pointer.target)
        if not isinstance(target, Void) and not (isinstance(target, Scalar) and target.size == 1):
            raise wrong(where, ctype, value)
        written = not is_const(pointer.target)
        held = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        if isinstance(value, str) and "\0" in value:
            raise ValueError(f"{where}: {value!r} has a NUL character, where a text of C ends: give bytes")
        # Text ends with a zero byte, as in C.
        data = bytes(held) + (b"" if isinstance(value, bytearray) else b"\0")

        def receive(back: memoryview, _frame: CallFrame, _base: int) -> None:
            if isinstance(value, bytearray):
                value[:] = back
            elif back != data:
                raise GuardError(
                    f"{self._function} wrote to {name or 'text'}: {type(value).__name__} can't change",
                    stage=f"call {self._function}",
                    next_step="give a bytearray, which can be written",
                )

        return self._frame.add(
            Block(
                f"{name or 'text'} ({type(value).__name__} of {len(held)})",
                len(data),
                8,
                True,
                written,
                lambda: data,
                receive,
                lambda offset: Within(value, offset) if offset else value,
                constant=is_const(pointer.target),
            )
        )

    def _sequence(
        self, where: str, name: str, ctype: CType, pointer: Pointer, value: Sequence[object]
    ) -> Block:
        """The block of an array of structs, or of pointers to the elements."""
        target = strip(pointer.target)
        if isinstance(target, Pointer):
            return self._pointers(where, name, pointer.target, target, value)
        if isinstance(target, RecordType) and all(isinstance(item, StructValue) for item in value):
            return self._structs_in_row(where, name, ctype, pointer, value)
        raise wrong(where, ctype, value, _HINT)

    def _pointers(
        self, where: str, name: str, ctype: CType, pointer: Pointer, value: Sequence[object]
    ) -> Block:
        size = pointer.size
        content = bytearray(size * len(value))
        block = Block(
            f"{name or 'pointers'} ({len(value)} pointers)",
            len(content),
            8,
            True,
            False,
            lambda: bytes(content),
            _nothing,
            lambda _: None,
        )
        self._frame.add(block)
        for index, element in enumerate(value):
            place = self.pointer(f"{where}[{index}]", f"{name}[{index}]", ctype, pointer, element)
            if isinstance(place, Block):
                block.pointers.append((index * size, place, 0))
            elif isinstance(place, Handle):
                content[index * size : (index + 1) * size] = place.value.to_bytes(size, "little")
        return block

    def _structs_in_row(
        self, where: str, name: str, ctype: CType, pointer: Pointer, value: Sequence[Any]
    ) -> Block:
        target = strip(pointer.target)
        assert isinstance(target, RecordType)
        for item in value:
            if not same_record(record_of(item), target):
                raise wrong(where, ctype, item)
            if any(
                storage_of(item)[1] + at in storage_of(item)[0].references
                for at, _ in pointer_offsets(target)
            ):
                raise wrong(where, ctype, item, "in an array of structs pointers are addresses or None")
        size = target.size

        def receive(data: memoryview, frame: CallFrame, base: int) -> None:
            for index, element in enumerate(value):
                _update(element, data[index * size : (index + 1) * size], {}, frame, base)

        return self._frame.add(
            Block(
                f"{name or 'structs'} ({declaration(target)}[{len(value)}])",
                size * len(value),
                max(alignment_of(target), 8),
                True,
                not is_const(pointer.target),
                lambda: b"".join(bytes_of(item) for item in value),
                receive,
                lambda offset: (
                    Within(value[offset // size], offset % size) if offset % size else value[offset // size]
                ),
                constant=is_const(pointer.target),
            )
        )


_HINT = "pass a numpy array or an array of the device"
_FUNCTION_HINT = "pass a function of the library, or of Python"


def _nothing(_data: memoryview, _frame: CallFrame, _base: int) -> None:
    """No-op: the block is not copied back."""


def _member(value: StructValue, offset: int) -> str:
    for field in record_of(value).fields:
        if field.bits is None and field.offset <= offset < field.offset + max(size_of(field.type), 1):
            return field.name
    return f"byte {offset}"


def _with_addresses(data: bytes, sent: dict[int, PointerTarget], size: int) -> bytes:
    """The bytes with addresses of objects on the device; blocks get addresses when the frame has its
    address."""
    known = {at: value for at, value in sent.items() if isinstance(value, int)}
    if not known:
        return data
    patched = bytearray(data)
    for at, address in known.items():
        patched[at : at + size] = address.to_bytes(size, "little")
    return bytes(patched)


def _update(
    value: StructValue, data: memoryview, sent: dict[int, PointerTarget], frame: CallFrame, base: int
) -> None:
    """Take the struct's bytes back. A pointer with an unchanged target keeps its object."""
    storage, at = storage_of(value)
    for offset, pointer in pointer_offsets(record_of(value)):
        address = int.from_bytes(data[offset : offset + pointer.size], "little")
        before = sent.get(offset)
        if isinstance(before, tuple):
            before = base + before[0].offset + before[1]
        if before is not None and address == before:
            continue
        storage.references.pop(at + offset, None)
        storage.came_back.discard(at + offset)
        there = frame.host_at(base, address) if address else None
        if there is not None:
            storage.references[at + offset] = there
            storage.came_back.add(at + offset)
    storage.data[at : at + len(data)] = data


def _sized(target: CType) -> CType:
    """The element type of an array whose size only the call determines; other types unchanged."""
    while isinstance(stripped := strip(target), ArrayType) and _unsized(stripped):
        target = stripped.element
    return target


def _unsized(array: ArrayType) -> bool:
    inner = strip(array.element)
    return array.count is None or (isinstance(inner, ArrayType) and _unsized(inner))
