# SPDX-License-Identifier: Apache-2.0
"""Packed sequences: the arguments of a call and the values it returns.

    i32 count | i32 type code x count | the values back to back, not aligned          (little-endian)

A Python value stands for each type code: int, float, str, bytes and None for themselves, the classes below
for the rest. A bool is sent as an int: type code 15 is known to the newest devices only and stops older ones
for good. Text is UTF-8; bytes that are not UTF-8 are kept as surrogates, both ways.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from enum import Enum, IntEnum
from math import prod
from struct import Struct, pack, unpack_from
from typing import NamedTuple

from minrpc.wire.dtypes import DataType

Buffer = bytes | memoryview

_I32 = Struct("<i")
_U64 = Struct("<Q")
_I64 = Struct("<q")
_F64 = Struct("<d")
_DEVICE = Struct("<ii")
_DTYPE = Struct("<BBHi")
_OBJECT = Struct("<IQ")
_TENSOR = Struct("<QiiiBBH")


class TypeCode(IntEnum):
    """TVM's type codes as they travel."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    NULL = 4
    DATA_TYPE = 5
    DEVICE = 6
    TENSOR = 7
    OBJECT = 8
    MODULE = 9
    FUNCTION = 10
    STRING = 11
    BYTES = 12
    NDARRAY = 13
    BOOL = 15


class Dialect(Enum):
    """The two ways a DLTensor travels, by the name of the RPC protocol that has it."""

    V0_7_0 = "0.7.0"
    V0_8_0 = "0.8.0"


class MalformedError(ValueError):
    """Bytes that are not a well-formed message: too short, too long, or with an undefined code."""


class UInt(NamedTuple):
    """An unsigned integer of 64 bits (type code 1)."""

    value: int


class Bool(NamedTuple):
    """Type code 15, of TVM v0.18.0 only."""

    value: bool


class Handle(NamedTuple):
    """An opaque handle or an address on the device (type code 3). 0 is none."""

    value: int


class Module(NamedTuple):
    """A module's handle (type code 9)."""

    handle: int


class Function(NamedTuple):
    """A packed function's handle (type code 10)."""

    handle: int


class Object(NamedTuple):
    """An object's handle (type code 8)."""

    type_index: int
    handle: int


class DLDevice(NamedTuple):
    """The device of a piece of memory."""

    device_type: int = 1
    device_id: int = 0


CPU = DLDevice()


class DLTensor(NamedTuple):
    """A dense tensor in the device's memory: no strides are sent. data: its address or handle on the
    device."""

    data: int
    dtype: DataType
    shape: tuple[int, ...]
    byte_offset: int = 0
    device: DLDevice = CPU

    @property
    def nbytes(self) -> int:
        """Bytes that its elements take."""
        return prod(self.shape) * self.dtype.itemsize

    def pack(self, dialect: Dialect) -> bytes:
        """The tensor's bytes on the wire. Raises ValueError for an offset in the 0.7.0 dialect, which has no
        field for it."""
        head = _TENSOR.pack(self.data, *self.device, len(self.shape), *self.dtype)
        shape = pack(f"<{len(self.shape)}q", *self.shape)
        if dialect is Dialect.V0_8_0:
            return head + shape + _U64.pack(self.byte_offset)
        if self.byte_offset:
            raise ValueError("a tensor of the 0.7.0 dialect has no byte offset")
        return head + shape


class PackedTensor(NamedTuple):
    """A tensor argument that keeps its bytes in the dialect in use, so that packing it again costs
    nothing."""

    packed: bytes


Value = (
    int
    | float
    | str
    | bytes
    | None
    | UInt
    | Bool
    | Handle
    | Module
    | Function
    | Object
    | DLDevice
    | DataType
    | DLTensor
)
Argument = Value | PackedTensor

_Encoded = tuple[int, bytes]


def _sized(code: TypeCode, data: bytes) -> _Encoded:
    return code, _U64.pack(len(data)) + data


# Keyed by exact class, so that one look-up finds the packer of a call's argument.
_ENCODERS: dict[type, Callable[..., _Encoded]] = {
    int: lambda v, _: (TypeCode.INT, _I64.pack(v)),
    bool: lambda v, _: (TypeCode.INT, _I64.pack(v)),
    float: lambda v, _: (TypeCode.FLOAT, _F64.pack(v)),
    type(None): lambda _v, _: (TypeCode.NULL, b""),
    str: lambda v, _: _sized(TypeCode.STRING, v.encode("utf-8", "surrogateescape")),
    bytes: lambda v, _: _sized(TypeCode.BYTES, v),
    UInt: lambda v, _: (TypeCode.UINT, _U64.pack(v.value)),
    Bool: lambda v, _: (TypeCode.BOOL, _I64.pack(v.value)),
    Handle: lambda v, _: (TypeCode.HANDLE, _U64.pack(v.value)),
    Module: lambda v, _: (TypeCode.MODULE, _U64.pack(v.handle)),
    Function: lambda v, _: (TypeCode.FUNCTION, _U64.pack(v.handle)),
    Object: lambda v, _: (TypeCode.OBJECT, _OBJECT.pack(*v)),
    DLDevice: lambda v, _: (TypeCode.DEVICE, _DEVICE.pack(*v)),
    DataType: lambda v, _: (TypeCode.DATA_TYPE, _DTYPE.pack(*v, 0)),
    DLTensor: lambda v, dialect: (TypeCode.TENSOR, v.pack(dialect)),
}


def encode_sequence(values: Sequence[Argument], dialect: Dialect) -> bytes:
    """The packed sequence. Raises TypeError for a class without a type code, ValueError for bad values."""
    codes = [len(values)]
    parts = [b""]
    try:
        for value in values:
            if value.__class__ is PackedTensor:
                codes.append(TypeCode.TENSOR)
                parts.append(value.packed)
                continue
            code, data = _ENCODERS[value.__class__](value, dialect)
            codes.append(code)
            parts.append(data)
    except KeyError:
        raise TypeError(f"a {type(value).__name__} has no type code") from None
    except (struct.error, ValueError) as error:
        raise ValueError(f"{value!r} does not fit its type on the wire: {error}") from error
    parts[0] = pack(f"<{len(codes)}i", *codes)
    return b"".join(parts)


def _fixed(layout: Struct, make: Callable[..., Value]) -> Callable[[Buffer, int, Dialect], tuple[Value, int]]:
    def decode(data: Buffer, offset: int, _: Dialect) -> tuple[Value, int]:
        return make(*layout.unpack_from(data, offset)), offset + layout.size

    return decode


def decode_bytes(data: Buffer, offset: int, _: object = None) -> tuple[bytes, int]:
    """u64 n and n bytes at `offset`, and where they end. Raises MalformedError, struct.error."""
    (length,) = _U64.unpack_from(data, offset)
    begin = offset + _U64.size
    if length > len(data) - begin:
        raise MalformedError(f"{length} bytes announced where {len(data) - begin} are left")
    return bytes(data[begin : begin + length]), begin + length


def decode_text(data: Buffer, offset: int, _: object = None) -> tuple[str, int]:
    """The text that `decode_bytes` finds as bytes."""
    text, end = decode_bytes(data, offset)
    return text.decode("utf-8", "surrogateescape"), end


def decode_tensor(data: Buffer, offset: int, dialect: Dialect) -> tuple[DLTensor, int]:
    """The DLTensor at `offset`, and where it ends."""
    handle, device_type, device_id, ndim, *dtype = _TENSOR.unpack_from(data, offset)
    begin = offset + _TENSOR.size
    if not 0 <= ndim <= (len(data) - begin) // _I64.size:
        raise MalformedError(f"a tensor of {ndim} dimensions in {len(data) - begin} bytes")
    shape = unpack_from(f"<{ndim}q", data, begin)
    end = begin + ndim * _I64.size
    byte_offset = 0
    if dialect is Dialect.V0_8_0:
        (byte_offset,) = _U64.unpack_from(data, end)
        end += _U64.size
    return DLTensor(handle, DataType(*dtype), shape, byte_offset, DLDevice(device_type, device_id)), end


_DECODERS: dict[int, Callable[[Buffer, int, Dialect], tuple[Value, int]]] = {
    TypeCode.INT: _fixed(_I64, int),
    TypeCode.UINT: _fixed(_U64, UInt),
    TypeCode.FLOAT: _fixed(_F64, float),
    TypeCode.HANDLE: _fixed(_U64, Handle),
    TypeCode.NULL: lambda _data, offset, _: (None, offset),
    TypeCode.DATA_TYPE: _fixed(_DTYPE, lambda code, bits, lanes, _padding: DataType(code, bits, lanes)),
    TypeCode.DEVICE: _fixed(_DEVICE, DLDevice),
    TypeCode.TENSOR: decode_tensor,
    TypeCode.OBJECT: _fixed(_OBJECT, Object),
    TypeCode.MODULE: _fixed(_U64, Module),
    TypeCode.FUNCTION: _fixed(_U64, Function),
    TypeCode.STRING: decode_text,
    TypeCode.BYTES: decode_bytes,
    TypeCode.BOOL: _fixed(_I64, lambda value: Bool(bool(value))),
}


def decode_sequence(data: Buffer, offset: int, dialect: Dialect) -> tuple[list[Value], int]:
    """The values of the packed sequence at `offset`, and where it ends. Raises MalformedError."""
    try:
        (count,) = _I32.unpack_from(data, offset)
        offset += _I32.size
        if not 0 <= count <= (len(data) - offset) // _I32.size:
            raise MalformedError(f"{count} values announced in {len(data) - offset} bytes")
        codes = unpack_from(f"<{count}i", data, offset)
        offset += count * _I32.size
        values = []
        for code in codes:
            value, offset = _DECODERS[code](data, offset, dialect)
            values.append(value)
    except KeyError:
        raise MalformedError(f"type code {code} is unknown") from None
    except struct.error:
        raise MalformedError("the message ends inside a value") from None
    return values, offset


def decode_whole_sequence(data: Buffer, offset: int, dialect: Dialect) -> list[Value]:
    """The values of a packed sequence that must end where `data` does."""
    values, end = decode_sequence(data, offset, dialect)
    if end != len(data):
        raise MalformedError(f"{len(data) - end} bytes too many after {len(values)} values")
    return values
