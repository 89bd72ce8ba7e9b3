# SPDX-License-Identifier: Apache-2.0
"""Objects with a place on the device that stays: for C code that keeps pointers to its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Self

import numpy as np

from minrpc.client.array import RemoteArray
from minrpc.library.call_memory import CallMemory
from minrpc.library.frame import Block, CallFrame
from minrpc.library.namespaces import VariableOnDevice
from minrpc.library.placing import Placer
from minrpc.library.pointer_types import Callback
from minrpc.library.scalars import Address, describe
from minrpc.library.structs import StructValue, record_of
from minrpc.program.c_types import (
    ArrayType,
    CType,
    Kind,
    Pointer,
    RecordType,
    Scalar,
    Variable,
    declaration,
    flat_fields,
    strip,
)

_KINDS: Final[dict[str, Kind]] = {"i": "int", "u": "uint", "f": "float", "c": "complex", "b": "bool"}


class Placed:
    """An object on the device that stays until `free`, the end of its `with` block, or of its library.

    It is an argument for a pointer to its type, also in structs. A struct's members are attributes, which are
    read from the device and written to it; elements of a list of structs are structs by their index.
    """

    __slots__ = (
        "_minrpc_block",
        "_minrpc_callback",
        "_minrpc_forget",
        "_minrpc_frame",
        "_minrpc_image",
        "_minrpc_memory",
        "_minrpc_room",
        "pointee",
    )
    pointee: CType
    _minrpc_memory: CallMemory
    _minrpc_callback: Callback | None
    _minrpc_frame: CallFrame
    _minrpc_image: bytes
    _minrpc_block: Block
    _minrpc_room: RemoteArray
    _minrpc_forget: Callable[[Placed], None]

    def __init__(
        self,
        memory: CallMemory,
        value: object,
        pointer_size: int,
        allocate: Callable[[int, int], RemoteArray],
        callback: Callback | None,
        forget: Callable[[Placed], None],
    ) -> None:
        """memory: copies bytes of allocations. allocate: gives so many bytes of the device, at such a
        multiple. forget: called when the object is freed."""
        set_ = object.__setattr__
        ctype = type_of(value)
        element = ctype.element if isinstance(ctype, ArrayType) else ctype
        pointer = Pointer(element, pointer_size)
        frame = CallFrame(pointer_size)
        block = Placer(frame, "place", callback).pointer("place", "", pointer, pointer, value)
        assert isinstance(block, Block), "a value of the host has a block"
        for lent in frame.lent:
            lent.require("place", lent.owner)
        frame.lay_out("place")
        room = allocate(frame.size, frame.alignment)
        image = np.zeros(frame.size, np.uint8)
        for at, data in frame.image(room.address):
            image[at : at + len(data)] = np.frombuffer(data, np.uint8)
        room.copy_from(image)
        for name, item in {
            "pointee": ctype,
            "_minrpc_memory": memory,
            "_minrpc_callback": callback,
            "_minrpc_frame": frame,
            "_minrpc_image": image.tobytes(),
            "_minrpc_block": block,
            "_minrpc_room": room,
            "_minrpc_forget": forget,
        }.items():
            set_(self, name, item)

    @property
    def address(self) -> int:
        """Its address on the device. Raises ValueError when it was freed, or its session has ended."""
        return self._minrpc_room.address + self._minrpc_block.offset

    @property
    def structs(self) -> list[tuple[RecordType, int]]:
        """The structs that were placed, with those that they point to: each one's type and address."""
        return [
            (record_of(block.value), self._minrpc_room.address + block.offset)
            for block in self._minrpc_frame.all_blocks
            if isinstance(block.value, StructValue)
        ]

    @property
    def span(self) -> tuple[int, int]:
        """Address and size in bytes of all its memory, with the objects that it points to."""
        return self._minrpc_room.address, self._minrpc_frame.size

    def read(self) -> Any:  # noqa: ANN401 - numpy array, struct, list of structs
        """The present value: a numpy array, a struct or a list of structs whose members can be set."""
        return self._minrpc_variable.read()

    def write(self, value: object) -> None:
        """Overwrite the whole object. Raises TypeError, ValueError."""
        self._minrpc_variable.write(value)

    def refresh(self) -> None:
        """Copy the present values to the host's objects that were placed: the structs and arrays.

        Raises GuardError if something was written outside of them.
        """
        base, data = self._minrpc_room.address, self._minrpc_room.numpy()
        self._minrpc_frame.image(base)  # With the host's present values, of which the device's may differ.
        self._minrpc_frame.sent_constants(self._minrpc_image)
        self._minrpc_frame.take(memoryview(data.tobytes()), 0, base, "a function")

    def free(self) -> None:
        """Free its memory. A second call does nothing."""
        if not self._minrpc_room.freed:
            self._minrpc_forget(self)
            self._minrpc_room.free()

    @property
    def _minrpc_variable(self) -> VariableOnDevice:
        return VariableOnDevice(
            _Room(self._minrpc_memory, self._minrpc_room, self._minrpc_callback),
            Variable("placed", "", self.pointee),
            self.address,
        )

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a C member's value
        if name in Placed.__slots__:
            raise AttributeError(name)
        if not isinstance(strip(self.pointee), RecordType):
            raise AttributeError(f"{declaration(self.pointee)} has no members: read() gives its elements")
        return getattr(self.read(), name)

    def __setattr__(self, name: str, value: object) -> None:
        if hasattr(Placed, name):
            raise AttributeError(
                f"{name!r} is the placed object's own: read().{name} is the member, to set, too"
            )
        if not isinstance(strip(self.pointee), RecordType):
            raise AttributeError(f"{declaration(self.pointee)} has no members: write(value) sets it")
        setattr(self.read(), name, value)

    def __getitem__(self, index: int) -> Any:  # noqa: ANN401 - a number, or a struct
        """An element of an array."""
        return self.read()[index]

    def __dir__(self) -> list[str]:
        record = strip(self.pointee)
        members = [field.name for field in flat_fields(record)] if isinstance(record, RecordType) else []
        return [*members, "address", "free", "pointee", "read", "refresh", "span", "write"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def __str__(self) -> str:
        return "a placed object"

    def __repr__(self) -> str:
        place = (
            "freed"
            if self._minrpc_room.freed
            else f"at 0x{self._minrpc_room.pointer.value + self._minrpc_block.offset:x}"
        )
        return f"<placed {declaration(self.pointee)} {place}>"


class _Room:
    """The memory of a placed object, for the value of a variable in it."""

    def __init__(self, memory: CallMemory, room: RemoteArray, callback: Callback | None) -> None:
        self.name = "a placed object"
        self.callback = callback
        self._memory = memory
        self._room = room

    @property
    def symbols(self) -> None:
        """None: its variables have no symbols."""

    def require_there(self) -> None:
        """Raise ValueError if it was freed, or its session has ended."""
        _ = self._room.address

    def read(self, address: int, size: int) -> memoryview:
        """Bytes of the object."""
        base = self._room.address
        return self._memory.read(base, address - base, size)

    def write(self, address: int, data: bytes) -> None:
        """Overwrite bytes of the object."""
        base = self._room.address
        self._memory.write(base, address - base, data)


def type_of(value: object) -> CType:
    """The C type of a value that can be placed. Raises TypeError, with the types that can be."""
    if isinstance(value, StructValue):
        return record_of(value)
    if isinstance(value, np.ndarray) and value.size and value.dtype.kind in _KINDS:
        made = _KINDS[value.dtype.kind]
        signed = made not in ("uint", "bool")
        scalar = Scalar(f"{value.dtype.name}_t", value.dtype.itemsize, made, signed)
        return ArrayType(scalar, value.size)
    if isinstance(value, bytes | bytearray | str):
        size = len(value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value)
        return ArrayType(Scalar("char", 1, "char"), size + (not isinstance(value, bytearray)))
    if isinstance(value, list | tuple) and value and all(isinstance(item, StructValue) for item in value):
        return ArrayType(record_of(value[0]), len(value))
    kind = "an address" if isinstance(value, Address) else describe(value)
    raise TypeError(
        f"place: a struct of minrpc.types(lib), a numpy array, bytes, text or a list of structs, not {kind}"
    )
