# SPDX-License-Identifier: Apache-2.0
"""From Python's arguments to those of a C function, and from what it did back to Python.

Nothing here talks to a device: a `Plan` says what to copy where and what to call with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from minrpc.client.array import RemoteArray
from minrpc.library.c_types import (
    Array,
    CType,
    Enumeration,
    Function,
    FunctionType,
    Parameter,
    Pointer,
    Record,
    Scalar,
    Void,
    alignment_of,
    declaration,
    is_const,
    numpy_dtype,
    size_of,
    strip,
)
from minrpc.library.frame import Block, Frame
from minrpc.library.values import (
    Address,
    Out,
    StructValue,
    Within,
    as_struct,
    bytes_of,
    describe,
    int_value,
    is_float,
    is_number,
    number_bytes,
    number_from,
    pointer_offsets,
    record_of,
    storage_of,
    to_float,
    to_int,
    wrong,
)
from minrpc.wire.dtypes import to_numpy
from minrpc.wire.values import Argument, Handle


@runtime_checkable
class InMemory(Protocol):
    """What has an address on the device: a function, or a variable, of a library."""

    @property
    def address(self) -> int:
        """The address; of a function as a C pointer has it."""
        ...

    @property
    def pointee(self) -> CType:
        """The type of what is there."""
        ...


Sent = int | float | Block | Handle
# Where a pointer in a struct points to: a byte of a block, or an address.
_Place = tuple[Block, int] | int


@dataclass
class Plan:
    """A call that is ready to be sent.

    frame: what goes along, laid out. sent: the thunk's arguments; a block stands for its address.
    finish: from what the thunk returned to what the caller gets, after the frame has been taken back.
    """

    function: Function
    frame: Frame
    sent: list[Sent]
    finish: Callable[[object], object]

    def arguments(self, base: int) -> list[Argument]:
        """As they travel, when the frame lies at `base`."""
        return [Handle(base + one.offset) if isinstance(one, Block) else one for one in self.sent]


def is_by_memory(ctype: CType) -> bool:
    """Whether a value goes through memory to its thunk: whatever is no number and no pointer."""
    return not is_number(ctype) and not isinstance(strip(ctype), Pointer)


def plan_call(function: Function, given: Sequence[object], pointer_size: int, *, guards: bool = True) -> Plan:
    """The call of `function` with Python's arguments.

    Raises TypeError and ValueError, which name the function, the parameter, what it expects and what came.
    """
    if function.unsupported:
        raise TypeError(f"{function.name} can't be called: {function.unsupported}")
    parameters = function.type.parameters
    if len(given) != len(parameters):
        raise TypeError(
            f"{function.name}: expected {len(parameters)} argument{'s' * (len(parameters) != 1)}, "
            f"got {len(given)}: {function.prototype}"
        )
    frame = Frame(pointer_size, guards=guards)
    placer = _Placer(frame, function.name)
    sent = [
        placer.argument(f"{function.name}: {one.name or f'argument {index}'}", one, value)
        for index, (one, value) in enumerate(zip(parameters, given, strict=True))
    ]
    result, returned = _result(placer, function, pointer_size)
    if returned is not None:
        sent.append(returned)
    frame.lay_out()
    outs = [one for one in given if isinstance(one, Out)]

    def finish(value: object) -> object:
        got = result(value)
        if not outs:
            return got
        arrays = tuple(one.array for one in outs)
        if isinstance(strip(function.type.result), Void):
            return arrays[0] if len(arrays) == 1 else arrays
        return (got, *arrays)

    return Plan(function, frame, sent, finish)


def _result(
    placer: _Placer, function: Function, pointer_size: int
) -> tuple[Callable[[object], object], Block | None]:
    """How to read what the thunk returned, and where it puts what goes through memory."""
    ctype = function.type.result
    stripped = strip(ctype)
    if isinstance(stripped, Void):
        return lambda _: None, None
    if isinstance(stripped, Pointer):
        mask = (1 << 8 * pointer_size) - 1
        return lambda value: Address(value & mask, ctype) if value else None, None
    if is_float(ctype):
        return lambda value: value, None
    if is_number(ctype):
        return lambda value: int_value(ctype, _wrapped(ctype, value)), None
    if isinstance(stripped, Record):
        made = StructValue(stripped, typename=declaration(ctype))
        block = placer.struct("the result", made, ctype, read=False, written=True)
        return lambda _: made, block
    box: list[object] = []
    block = placer.value_out("the result", ctype, lambda data: box.append(number_from(ctype, bytes(data))))
    return lambda _: box[0], block


def _wrapped(ctype: CType, value: object) -> int:
    """64 bits travel with a sign, whatever they mean."""
    assert isinstance(value, int), f"a thunk returned {value!r}"
    stripped = strip(ctype)
    if isinstance(stripped, Scalar) and stripped.kind == "uint" and value < 0:
        return value + (1 << 64)
    return int(value)


class _Placer:
    """Puts what arguments point to into a frame; what is pointed to twice, once."""

    def __init__(self, frame: Frame, function: str) -> None:
        self._frame = frame
        self._function = function
        self._structs: dict[tuple[int, int], Block] = {}
        self._arrays: dict[tuple[int, int], Block] = {}
        self._spans: list[tuple[int, int, Block]] = []
        # Whatever a block was made of lives until the call is over, so that ids stay unique.
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
        if isinstance(stripped, Record):
            if not stripped.complete:
                raise TypeError(f"{where}: {declaration(ctype)} is incomplete: its members are not known")
            value = as_struct(stripped, where, value)
            if not isinstance(value, StructValue) or not _same_record(record_of(value), stripped):
                raise wrong(where, ctype, value, "make one with .types, or give a dict or a tuple")
            return self.struct(name, value, ctype, read=True, written=False)
        data = number_bytes(where, ctype, value)
        return self._frame.add(
            Block(name, len(data), alignment_of(ctype), True, False, lambda: data, _nothing, lambda _: None)
        )

    def pointer(
        self, where: str, name: str, ctype: CType, pointer: Pointer, value: object, *, own: bool = False
    ) -> Sent:
        """An address, or the block that a value is put into.

        own: the device itself has made the pointer point there: the type is then its own affair.
        """
        if own:
            pointer = Pointer(Void(), pointer.size)
        if value is None:
            return Handle(0)
        if isinstance(value, RemoteArray):
            return Handle(array_address(where, ctype, pointer, value))
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
        if isinstance(value, InMemory):
            _check_pointee(where, ctype, pointer, value)
            return Handle(value.address)
        if isinstance(value, Address):
            _check_address(where, ctype, pointer, value)
            return Handle(int(value))
        if type(value) is int and isinstance(strip(pointer.target), Void):
            return Handle(value)
        raise wrong(where, ctype, value, _HINT if isinstance(value, int | float | np.generic) else "")

    def _array(
        self, where: str, name: str, ctype: CType, pointer: Pointer, value: np.ndarray[Any, Any]
    ) -> Block:
        _check_dtype(where, ctype, pointer, value)
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

        def receive(data: memoryview, _frame: Frame, _base: int) -> None:
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
            isinstance(target, Record) and _same_record(record_of(value), target)
        ):
            raise wrong(where, ctype, value)
        written = not is_const(pointer.target)
        block = self.struct(name, value, record_of(value), read=True, written=written)
        block.constant = not written
        return block

    def struct(self, name: str, value: StructValue, ctype: CType, *, read: bool, written: bool) -> Block:
        """The block of a struct, and those of what its pointers point to."""
        storage, base = storage_of(value)
        key = id(storage), base
        known = self._structs.get(key)
        if known is not None and known.size == size_of(ctype):
            known.written |= written
            return known
        size = size_of(ctype)
        sent: dict[int, _Place] = {}

        def receive(data: memoryview, frame: Frame, at: int) -> None:
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
            dtype = numpy_dtype(pointer.target)
        except TypeError as error:
            raise wrong(where, ctype, value, str(error)) from None
        made = np.zeros(value.shape, dtype)

        def receive(data: memoryview, _frame: Frame, _base: int) -> None:
            value.array = np.frombuffer(bytearray(data), dtype).reshape(made.shape)

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
        """Room for a value that comes back through memory."""
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
        mutable = isinstance(value, bytearray) and not is_const(pointer.target)
        held = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        # A text has its end, as in C.
        data = bytes(held) + (b"" if isinstance(value, bytearray) else b"\0")

        def receive(back: memoryview, _frame: Frame, _base: int) -> None:
            if isinstance(value, bytearray):
                value[:] = back

        return self._frame.add(
            Block(
                f"{name or 'text'} ({type(value).__name__} of {len(held)})",
                len(data),
                8,
                True,
                mutable,
                lambda: data,
                receive,
                lambda offset: Within(value, offset) if offset else value,
                constant=is_const(pointer.target),
            )
        )

    def _sequence(
        self, where: str, name: str, ctype: CType, pointer: Pointer, value: Sequence[object]
    ) -> Block:
        """Structs side by side, or pointers to what the elements are."""
        target = strip(pointer.target)
        if isinstance(target, Pointer):
            return self._pointers(where, name, pointer.target, target, value)
        if isinstance(target, Record) and all(isinstance(one, StructValue) for one in value):
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
        for index, one in enumerate(value):
            place = self.pointer(f"{where}[{index}]", f"{name}[{index}]", ctype, pointer, one)
            if isinstance(place, Block):
                block.pointers.append((index * size, place, 0))
            elif isinstance(place, Handle):
                content[index * size : (index + 1) * size] = place.value.to_bytes(size, "little")
        return block

    def _structs_in_row(
        self, where: str, name: str, ctype: CType, pointer: Pointer, value: Sequence[Any]
    ) -> Block:
        target = strip(pointer.target)
        assert isinstance(target, Record)
        for one in value:
            if not _same_record(record_of(one), target):
                raise wrong(where, ctype, one)
            if any(
                storage_of(one)[1] + at in storage_of(one)[0].references for at, _ in pointer_offsets(target)
            ):
                raise wrong(where, ctype, one, "in an array of structs pointers are addresses or None")
        size = target.size

        def receive(data: memoryview, frame: Frame, base: int) -> None:
            for index, one in enumerate(value):
                _update(one, data[index * size : (index + 1) * size], {}, frame, base)

        return self._frame.add(
            Block(
                f"{name or 'structs'} ({declaration(target)}[{len(value)}])",
                size * len(value),
                max(alignment_of(target), 8),
                True,
                not is_const(pointer.target),
                lambda: b"".join(bytes_of(one) for one in value),
                receive,
                lambda offset: (
                    Within(value[offset // size], offset % size) if offset % size else value[offset // size]
                ),
                constant=is_const(pointer.target),
            )
        )


_HINT = "pass a numpy array or an array of the device"


def _nothing(_data: memoryview, _frame: Frame, _base: int) -> None:
    """Nothing comes back."""


def _member(value: StructValue, offset: int) -> str:
    for one in record_of(value).fields:
        if one.bits is None and one.offset <= offset < one.offset + max(size_of(one.type), 1):
            return one.name
    return f"byte {offset}"


def _same_record(one: Record, other: Record) -> bool:
    """The same type, or the same one in another unit of compilation."""
    if one is other:
        return True
    if (one.kind, one.size, len(one.fields)) != (other.kind, other.size, len(other.fields)):
        return False
    return [(f.name, f.offset, f.bits) for f in one.fields] == [
        (f.name, f.offset, f.bits) for f in other.fields
    ]


def _with_addresses(data: bytes, sent: dict[int, _Place], size: int) -> bytes:
    """With the addresses of what is on the device already; blocks' own come when the frame has a place."""
    known = {at: value for at, value in sent.items() if isinstance(value, int)}
    if not known:
        return data
    patched = bytearray(data)
    for at, address in known.items():
        patched[at : at + size] = address.to_bytes(size, "little")
    return bytes(patched)


def _update(value: StructValue, data: memoryview, sent: dict[int, _Place], frame: Frame, base: int) -> None:
    """Take the struct's bytes back. A pointer that still points to what it did stays that object."""
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


def _check_dtype(where: str, ctype: CType, pointer: Pointer, value: np.ndarray[Any, Any]) -> None:
    target = strip(pointer.target)
    if isinstance(target, Void):
        return
    shape: tuple[int, ...] = ()
    while isinstance(target, Array):
        shape += (target.count or 0,)
        target = strip(target.element)
    if isinstance(target, Record) and not target.complete:
        raise TypeError(f"{where}: {declaration(ctype)} is a pointer to an incomplete struct")
    if isinstance(target, Scalar) and target.kind == "char" and value.dtype in (np.int8, np.uint8):
        return
    try:
        expected = numpy_dtype(target)
    except TypeError as error:
        raise wrong(where, ctype, value, str(error)) from None
    fits = value.dtype == expected or (
        isinstance(target, Pointer | Enumeration)
        and value.dtype.kind in "iu"
        and value.itemsize == expected.itemsize
    )
    if not fits or (shape and value.shape[-len(shape) :] != shape):
        shown = expected.name + (f"[..,{','.join(map(str, shape))}]" if shape else "")
        if isinstance(target, Record):
            shown = f"numpy_dtype({declaration(target)})"
        raise TypeError(f"{where}: expected {shown} ({declaration(ctype)}), got {describe(value)}")


def array_address(where: str, ctype: CType, pointer: Pointer, value: RemoteArray) -> int:
    """Where an array of the device is. Raises TypeError when the pointer is to something else."""
    target = strip(pointer.target)
    while isinstance(target, Array):
        target = strip(target.element)
    held = to_numpy(value.dtype)[0]
    fits = isinstance(target, Void) or held == numpy_dtype(target)
    if isinstance(target, Scalar) and target.kind == "char":
        fits = held in (np.int8, np.uint8)
    if isinstance(target, Record):  # Bytes on the device, which only the caller knows the meaning of.
        fits = held in (np.int8, np.uint8)
    if not fits:
        raise TypeError(f"{where}: expected {declaration(ctype)}, got {value!r}")
    return value.address


def _check_pointee(where: str, ctype: CType, pointer: Pointer, value: InMemory) -> None:
    target, given = strip(pointer.target), strip(value.pointee)
    if isinstance(target, Void):
        return
    if isinstance(target, FunctionType) != isinstance(given, FunctionType):
        raise wrong(where, ctype, value)
    if isinstance(target, FunctionType) and isinstance(given, FunctionType):
        if not _same_shape(target, given):
            raise TypeError(f"{where}: expected {declaration(ctype)}, got {declaration(given, str(value))}")
        return
    if isinstance(given, Array) and not isinstance(target, Array):
        given = strip(given.element)
    if _shape(given) != _shape(target):
        raise TypeError(
            f"{where}: expected {declaration(ctype)}, got {declaration(value.pointee, str(value))}"
        )


def _check_address(where: str, ctype: CType, pointer: Pointer, value: Address) -> None:
    given = strip(value.ctype)
    assert isinstance(given, Pointer)
    if Void() in (strip(pointer.target), strip(given.target)):
        return
    if _shape(strip(given.target)) != _shape(strip(pointer.target)):
        raise TypeError(f"{where}: expected {declaration(ctype)}, got {value!r}")


def _same_shape(one: FunctionType, other: FunctionType) -> bool:
    return len(one.parameters) == len(other.parameters) and all(
        _shape(a) == _shape(b)
        for a, b in zip(
            [one.result, *(p.type for p in one.parameters)],
            [other.result, *(p.type for p in other.parameters)],
            strict=True,
        )
    )


def _shape(ctype: CType) -> tuple[object, ...]:
    """What the ABI sees of a type."""
    stripped = strip(ctype)
    match stripped:
        case Scalar(_, size, kind, _):
            return "int" if kind in ("int", "uint", "char", "bool") else kind, size
        case Enumeration(_, size):
            return "int", size
        case Pointer():
            return ("pointer",)
        case Record() as record:
            return record.kind, record.tag, record.size
    return (type(stripped).__name__, size_of(stripped))
