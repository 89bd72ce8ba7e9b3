# SPDX-License-Identifier: Apache-2.0
"""Places the arrays, structs and text that arguments point to: each is a block of the call's frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index as whole
from typing import Any

import numpy as np

from minrpc.client.array import is_masked
from minrpc.errors import GuardError
from minrpc.library.frame import Block, CallFrame, HostAt
from minrpc.library.pointer_types import Callback, check_dtype, device_address, require_bools, require_fits
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
    address_of,
    as_struct,
    has_unknown_tail,
    is_of,
    memory_of,
    passed_address,
    path_at,
    pointer_offsets,
    record_of,
    require_struct,
    shown_target,
    storage_of,
    take_back,
)
from minrpc.names import kind_of
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
    size_of,
    strip,
)
from minrpc.wire.values import Handle

Sent = int | float | Block | Handle


class Out(Shown):
    """An array that a function only writes: made by `out`, and filled in by the call.

    array: the written elements; None before the call. For pointers, an `Address` or a list of them, with None
        for a null pointer.
    """

    def __init__(self, shape: int | tuple[int, ...]) -> None:
        self.shape = tuple(map(whole, (shape,) if np.isscalar(shape) else shape))  # type: ignore[arg-type]
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
    """Makes a block for each object that arguments lead to. The frame finds those that share memory."""

    def __init__(self, frame: CallFrame, function: str, callback: Callback | None = None) -> None:
        """function: the called function's name. callback: None if Python functions can't be called."""
        self._frame = frame
        self._function = function
        self._callback = callback
        # Blocks of structs, lists and `out`, which may occur again, also in a ring.
        self._known: dict[tuple[object, ...], Block] = {}
        self._described: dict[tuple[int, int], StructValue] = {}

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
            if not is_of(value, stripped):
                raise wrong(where, ctype, value, _STRUCT_HINT)
            if record_of(value).size != stripped.size:
                raise wrong(where, ctype, value, "C passes no elements of a flexible array by value")
            return self.struct(name, value, ctype)
        data = number_bytes(where, ctype, value)
        return self._frame.add(Block(name, len(data), alignment_of(ctype), lambda: data))

    def pointer(
        self, where: str, name: str, ctype: CType, pointer: Pointer, value: object, *, own: bool = False
    ) -> Sent:
        """An address, or the block that holds the value.

        own: True if the device itself set the pointer: its type is then not checked.
        """
        if own:
            pointer = Pointer(Void(), pointer.size)
        sent = self._pointer(where, name, ctype, pointer, value)
        if isinstance(sent, Block):  # The pointer may ask for more than the object's own type does.
            sent.alignment = max(sent.alignment, alignment_of(pointer.target), 8)
        return sent

    def _pointer(self, where: str, name: str, ctype: CType, pointer: Pointer, value: object) -> Sent:
        if isinstance(value, memoryview):
            value = np.asarray(value)
        if isinstance(value, np.ndarray):
            return self._array(where, name, ctype, pointer, value)
        target = strip(pointer.target)
        written = not is_const(pointer.target)
        if isinstance(value, dict) or (isinstance(value, tuple) and not _is_row(value, target)):
            return self._literal(where, name, ctype, target, value, written)
        if isinstance(value, StructValue):
            require_struct(where, ctype, pointer, value)
            if (address := passed_address(value)) is not None:
                self._frame.passed.append(storage_of(value)[0])
                return Handle(address)
            return self.struct(name, value, record_of(value), written=written, constant=not written)
        if isinstance(value, Out):
            return self._out(where, name, ctype, pointer, value)
        if isinstance(value, bytes | bytearray | str):
            return self._text(where, name, ctype, pointer, value)
        if isinstance(value, list | tuple):
            if isinstance(target, Pointer):
                return self._pointers(name, pointer.target, target, value)
            if isinstance(target, RecordType):
                return self._structs_in_row(where, name, ctype, target, value, written)
            raise wrong(where, ctype, value, _HINT)
        if type(value) is int and isinstance(target, Void):
            require_fits(where, pointer.size, value)
            return Handle(value)
        address = device_address(where, ctype, pointer, value, self._callback)
        if address is not None:
            if isinstance(value, Address) and value.lent is not None:
                self._frame.lent.append(value.lent)
            return Handle(address)
        hint = _FUNCTION_HINT if isinstance(target, FunctionType) else _HINT
        raise wrong(where, ctype, value, hint if isinstance(value, int | float | np.generic) else "")

    def _array(
        self, where: str, name: str, ctype: CType, pointer: Pointer, value: np.ndarray[Any, Any]
    ) -> Block:
        if is_masked(value):
            raise wrong(where, ctype, value, "C knows no mask: pass .filled(...) or .data of the array")
        check_dtype(where, ctype, pointer, value)
        written = not is_const(pointer.target)
        if not value.flags.c_contiguous:
            raise wrong(where, ctype, value, "it is not C-contiguous; pass np.ascontiguousarray(...)")
        if written and not value.flags.writeable:
            raise wrong(where, ctype, value, "the function may write to it, and it is read-only: pass a copy")
        alignment = min(value.dtype.alignment, 16)
        return self._shared(f"{name or 'an array'} ({describe(value)})", value, alignment, written)

    def _shared(self, name: str, value: object, alignment: int, written: bool) -> Block:
        """The block of an object whose bytes C may change."""
        memory = memory_of(value)
        return self._frame.add(
            Block(
                name,
                memory.size,
                alignment,
                lambda: memory_of(value).data,
                lambda data, sent, _: take_back(value, data, sent),
                written,
                not written,
                value,
                address_of(memory),
            )
        )

    def struct(
        self, name: str, value: StructValue, ctype: CType, *, written: bool = False, constant: bool = False
    ) -> Block:
        """The block of a struct; adds blocks for the objects that its pointers point to."""
        if has_unknown_tail(value):
            raise wrong(f"{self._function}: {name}", ctype, value, _TAIL_HINT)
        key = "struct", address_of(memory_of(value)), id(record_of(value))
        if (block := self._known.get(key)) is not None:
            block.written |= written
            block.constant |= constant
            return block
        title, alignment = f"{name or 'a struct'} ({declaration(ctype)})", max(alignment_of(ctype), 8)
        block = self._known[key] = self._shared(title, value, alignment, written)
        block.constant = constant
        block.receive = lambda data, sent, host_at: _take_struct(value, data, sent, host_at)
        storage, base = storage_of(value)
        for offset, pointer in dict(pointer_offsets(record_of(value))).items():
            if base + offset in storage.references:
                pointer = storage.given.get(base + offset, pointer)
                member = f"{name}->{path_at(record_of(value), offset)[1:]}"
                own = base + offset in storage.came_back
                self._point(
                    block, offset, member, pointer, pointer, storage.references[base + offset], own=own
                )
        return block

    def _point(
        self,
        block: Block,
        at: int,
        name: str,
        ctype: CType,
        pointer: Pointer,
        target: object,
        *,
        own: bool = False,
    ) -> None:
        """Let the pointer at this offset of the block point to the target."""
        target, inside = target if isinstance(target, Within) else (target, 0)
        place = self.pointer(f"{self._function}: {name}", name, ctype, pointer, target, own=own)
        assert isinstance(place, Block | Handle)
        block.pointers.append((at, place if isinstance(place, Block) else place.value, inside))

    def _out(self, where: str, name: str, ctype: CType, pointer: Pointer, value: Out) -> Block:
        if is_const(pointer.target):
            raise wrong(where, ctype, value, "it is only read")
        if isinstance(strip(pointer.target), Void):
            raise wrong(where, ctype, value, _VOID_HINT)
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
        if (known := self._known.get(("out", id(value)))) is not None:
            if known.size != made.nbytes:
                raise wrong(where, ctype, value, f"it is {known.name}, too")
            return known

        def receive(data: memoryview, _sent: bytearray, _host_at: HostAt) -> None:
            if isinstance(strip(pointer.target), Pointer):
                addresses = [
                    Address(item, pointer.target) if item else None
                    for item in np.frombuffer(data, dtype).tolist()
                ]
                value.array = addresses[0] if value.shape == (1,) else addresses
                return
            value.array = np.frombuffer(bytearray(data), made.dtype).reshape(made.shape)

        title = f"{name or 'an array'} ({describe(made)})"
        block = Block(title, made.nbytes, 8, None, receive, written=True)
        self._known["out", id(value)] = block
        return self._frame.add(block)

    def value_out(self, name: str, ctype: CType, receive: Callable[[memoryview], None]) -> Block:
        """A block for a value that is returned through memory."""
        size, alignment = size_of(ctype), alignment_of(ctype)
        return self._frame.add(
            Block(name, size, alignment, None, lambda data, _, __: receive(data), written=True)
        )

    def _text(
        self, where: str, name: str, ctype: CType, pointer: Pointer, value: bytes | bytearray | str
    ) -> Block:
        target = strip(pointer.target)
        if not isinstance(target, Void) and not (isinstance(target, Scalar) and target.size == 1):
            raise wrong(where, ctype, value)
        held = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        if isinstance(value, str) and "\0" in value:
            raise ValueError(f"{where}: {value!r} has a NUL character, where a text of C ends: give bytes")
        if isinstance(target, Scalar) and target.kind == "bool":
            require_bools(where, ctype, np.frombuffer(held, np.bool_))
        title = f"{name or 'text'} ({type(value).__name__} of {len(held)})"
        block = self._shared(title, held, 8, not is_const(pointer.target))
        if isinstance(held, bytearray):
            return block

        block.size += 1  # Text ends with a zero byte, as in C.
        block.content, block.value = lambda: held + b"\0", value
        self._refuse_changes(
            block, name or "text", type(value).__name__, "give a bytearray, which can be written"
        )
        return block

    def _refuse_changes(self, block: Block, name: str, kind: str, step: str) -> None:
        def receive(back: memoryview, sent: bytearray, _host_at: HostAt) -> None:
            if back != sent:
                raise GuardError(
                    f"{self._function} wrote to {name}: {kind} can't change",
                    stage=f"call {self._function}",
                    next_step=step,
                )

        block.receive = receive

    def _literal(
        self, where: str, name: str, ctype: CType, target: CType, value: object, written: bool
    ) -> Block:
        """The block of a struct that a dict or a tuple describes."""
        if not isinstance(target, RecordType):
            raise wrong(where, ctype, value, _HINT)
        made = self._described.get((id(value), id(target))) or as_struct(target, where, value)
        assert isinstance(made, StructValue)
        # The same dict again, also within itself, is the same struct.
        self._described[id(value), id(target)] = made
        block = self.struct(name, made, target, written=written, constant=not written)
        self._refuse_changes(block, name or "a struct", kind_of(value), _STRUCT_STEP)
        return block

    def _pointers(self, name: str, ctype: CType, pointer: Pointer, value: Sequence[object]) -> Block:
        """The block of a list of pointers. A list gets the objects or addresses that C wrote there."""
        if (known := self._known.get(("pointers", id(value), id(pointer)))) is not None:
            return known
        size, title = pointer.size, f"{name or 'pointers'} ({len(value)} pointers)"

        def receive(data: memoryview, sent: bytearray, host_at: HostAt) -> None:
            assert isinstance(value, list)
            for index, at in enumerate(range(0, len(data), size)):
                if data[at : at + size] != sent[at : at + size]:
                    address = int.from_bytes(data[at : at + size], "little")
                    target = host_at(address) if address else None
                    if target is None and address:
                        target = Address(address, ctype)
                    value[index] = shown_target(target, pointer)

        written = not is_const(ctype)
        block = Block(
            title,
            size * len(value),
            8,
            lambda: bytes(size * len(value)),
            receive,
            written,
            not written,
            value,
        )
        self._known["pointers", id(value), id(pointer)] = self._frame.add(block)
        if not isinstance(value, list):
            self._refuse_changes(
                block, name or "pointers", kind_of(value), "give a list: it gets what C wrote"
            )
        for index, element in enumerate(value):
            self._point(block, index * size, f"{name}[{index}]", ctype, pointer, element)
        return block

    def _structs_in_row(
        self, where: str, name: str, ctype: CType, target: RecordType, value: Sequence[Any], written: bool
    ) -> Block:
        size, given = target.size, value
        value = [as_struct(target, f"{where}[{index}]", item) for index, item in enumerate(given)]
        for index, item in enumerate(value):
            if not is_of(item, target) or memory_of(item).size != size:
                raise wrong(f"{where}[{index}]", target, item, _STRUCT_HINT)
        hosts = [address_of(memory_of(item)) for item in value]
        if (row := self._known.get(("row", *hosts))) is None:
            row = self._known["row", *hosts] = self._frame.add(
                Block(
                    f"{name or 'structs'} ({declaration(target)}[{len(value)}])",
                    size * len(value),
                    max(alignment_of(target), 8),
                    lambda: b"".join(memory_of(item).data for item in value),
                )
            )
            if hosts and hosts == [hosts[0] + size * index for index in range(len(hosts))]:
                row.host = hosts[0]  # An array that is a member of a struct.
        row.written |= written
        row.constant |= not written
        for index, item in enumerate(value):
            block = self.struct(f"{name}[{index}]", item, target, written=written, constant=not written)
            if item is not given[index]:
                self._refuse_changes(block, f"{name}[{index}]", kind_of(given[index]), _STRUCT_STEP)
            if not row.host:
                if block.place not in (None, (row, index * size)):
                    raise ValueError(f"{where}[{index}] lies twice in a list of structs; give a copy")
                block.place = row, index * size
        return row


_VOID_HINT = "void has no size: give the array itself, such as np.zeros(3, np.int16), or a bytearray"
_HINT = "pass a numpy array or an array of the device"
_TAIL_HINT = "the number of elements of its flexible array is not known: pass its address"
_STRUCT_HINT = "make one with minrpc.types(lib), or give a dict or a tuple"
_STRUCT_STEP = "make the struct with minrpc.types(lib): it can be written"
_FUNCTION_HINT = "pass a function of the library, or of Python"


def _is_row(value: tuple[object, ...], target: CType) -> bool:
    """True for a tuple of pointers or of structs; False for one that has the members of a struct."""
    structs = (is_of(item, target) for item in value)
    return not isinstance(target, RecordType) or all(structs)


def _take_struct(value: StructValue, data: memoryview, sent: bytearray, host_at: HostAt) -> None:
    """Write the bytes that C changed into the struct. A pointer that C left keeps its object."""
    take_back(value, data, sent)
    storage, base = storage_of(value)
    for offset, pointer in pointer_offsets(record_of(value)):
        at, raw = base + offset, data[offset : offset + pointer.size]
        if raw == sent[offset : offset + pointer.size]:
            continue
        storage.references.pop(at, None)
        storage.came_back.discard(at)
        storage.data[at : at + pointer.size] = raw
        address = int.from_bytes(raw, "little")
        there = host_at(address) if address else None
        if there is not None:
            storage.references[at] = there
            storage.given.setdefault(at, pointer)
            storage.came_back.add(at)


def _sized(target: CType) -> CType:
    """The element type of an array whose size only the call determines; other types unchanged."""
    while isinstance(stripped := strip(target), ArrayType) and _unsized(stripped):
        target = stripped.element
    return target


def _unsized(array: ArrayType) -> bool:
    inner = strip(array.element)
    return array.count is None or (isinstance(inner, ArrayType) and _unsized(inner))
