# SPDX-License-Identifier: Apache-2.0
"""The packed sequences of TVM from v0.21 on, for a server of its clients.

    i32 count | per value: i32 type index, value                                      (little-endian)

Before v0.21 all type codes stood in front of all values (`minrpc.wire.values`). RPC codes, the layout of a
tensor and the copies are the same. `kInitServer` says "0.8.0" in both versions, so the first later packed
sequence shows the version. TVM's `c_api.h` defines the type indices, for its foreign function interface.

Requests and results are the same values as in `minrpc.wire.requests` and `minrpc.wire.replies`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from enum import IntEnum
from struct import Struct
from typing import Final

from minrpc.wire.dtypes import DataType
from minrpc.wire.replies import Result, ReturnedArray
from minrpc.wire.requests import (
    HEAD,
    CallFunc,
    Request,
    RpcCode,
    Shutdown,
    Syscall,
    decode_copy,
    decode_init,
    split_packet,
)
from minrpc.wire.values import (
    Argument,
    Bool,
    Buffer,
    Dialect,
    DLDevice,
    DLTensor,
    Function,
    Handle,
    MalformedError,
    Module,
    Object,
    PackedTensor,
    UInt,
    Value,
    decode_bytes,
    decode_tensor,
    decode_text,
)

_I32: Final = Struct("<i")
_U32: Final = Struct("<I")
_U64: Final = Struct("<Q")
_I64: Final = Struct("<q")
_F64: Final = Struct("<d")
_DEVICE: Final = Struct("<ii")
_DTYPE: Final = Struct("<BBHi")


class TypeIndex(IntEnum):
    """The type of a value on the wire."""

    NONE = 0
    INT = 1
    BOOL = 2
    FLOAT = 3
    OPAQUE = 4
    DATA_TYPE = 5
    DEVICE = 6
    TENSOR_POINTER = 7
    RAW_TEXT = 8
    RAW_BYTES = 9
    SMALL_TEXT = 11
    SMALL_BYTES = 12
    TEXT = 65
    BYTES = 66
    FUNCTION = 68
    TENSOR = 70
    MODULE = 73


# Objects begin here; each carries a second index, of 32 bits, in front of its value.
_FIRST_OBJECT: Final = 64
_TEXTS: Final = (TypeIndex.SMALL_TEXT, TypeIndex.TEXT)
_BYTES: Final = (TypeIndex.SMALL_BYTES, TypeIndex.BYTES)

_Decoder = Callable[[Buffer, int], tuple[Value, int]]


def _fixed(layout: Struct, make: Callable[..., Value]) -> _Decoder:
    def decode(data: Buffer, offset: int) -> tuple[Value, int]:
        return make(*layout.unpack_from(data, offset)), offset + layout.size

    return decode


def _object(data: Buffer, offset: int) -> tuple[Value, int]:
    """A string or bytes that the client had as an object, or its reference to an object of the server."""
    (kind,) = _U32.unpack_from(data, offset)
    offset += _U32.size
    if kind in _TEXTS:
        return decode_text(data, offset)
    if kind in _BYTES:
        return decode_bytes(data, offset)
    (handle,) = _U64.unpack_from(data, offset)
    return Object(kind, handle), offset + _U64.size


_DECODERS: Final[dict[int, _Decoder]] = {
    TypeIndex.NONE: lambda _data, offset: (None, offset),
    TypeIndex.INT: _fixed(_I64, int),
    TypeIndex.BOOL: _fixed(_I64, lambda value: Bool(bool(value))),
    TypeIndex.FLOAT: _fixed(_F64, float),
    TypeIndex.OPAQUE: _fixed(_U64, Handle),
    TypeIndex.DATA_TYPE: _fixed(_DTYPE, lambda code, bits, lanes, _padding: DataType(code, bits, lanes)),
    TypeIndex.DEVICE: _fixed(_DEVICE, DLDevice),
    TypeIndex.TENSOR_POINTER: lambda data, offset: decode_tensor(data, offset, Dialect.V0_8_0),
    TypeIndex.RAW_TEXT: decode_text,
    TypeIndex.RAW_BYTES: decode_bytes,
    TypeIndex.SMALL_TEXT: _object,
    TypeIndex.SMALL_BYTES: _object,
    TypeIndex.FUNCTION: _fixed(_U64, Function),
    TypeIndex.MODULE: _fixed(_U64, Module),
}


def decode_sequence(data: Buffer, offset: int = 0) -> list[Value]:
    """The values of the sequence at `offset`, which must end where `data` does. Raises MalformedError."""
    try:
        (count,) = _I32.unpack_from(data, offset)
        offset += _I32.size
        if not 0 <= count <= (len(data) - offset) // _I32.size:
            raise MalformedError(f"{count} values announced in {len(data) - offset} bytes")
        values = []
        for _ in range(count):
            (index,) = _I32.unpack_from(data, offset)
            decoder = _DECODERS.get(index) or (_object if index >= _FIRST_OBJECT else None)
            if decoder is None:
                raise MalformedError(f"type index {index} is unknown")
            value, offset = decoder(data, offset + _I32.size)
            values.append(value)
    except struct.error:
        raise MalformedError("the message ends inside a value") from None
    if offset != len(data):
        raise MalformedError(f"{len(data) - offset} bytes too many after {count} values")
    return values


def _sized(data: bytes) -> bytes:
    return _U64.pack(len(data)) + data


_ENCODERS: Final[dict[type, Callable[..., tuple[TypeIndex, bytes]]]] = {
    type(None): lambda _v: (TypeIndex.NONE, b""),
    int: lambda v: (TypeIndex.INT, _I64.pack(v)),
    UInt: lambda v: (TypeIndex.INT, _U64.pack(v.value)),
    bool: lambda v: (TypeIndex.BOOL, _I64.pack(v)),
    Bool: lambda v: (TypeIndex.BOOL, _I64.pack(v.value)),
    float: lambda v: (TypeIndex.FLOAT, _F64.pack(v)),
    Handle: lambda v: (TypeIndex.OPAQUE, _U64.pack(v.value)),
    DataType: lambda v: (TypeIndex.DATA_TYPE, _DTYPE.pack(*v, 0)),
    DLDevice: lambda v: (TypeIndex.DEVICE, _DEVICE.pack(*v)),
    DLTensor: lambda v: (TypeIndex.TENSOR_POINTER, v.pack(Dialect.V0_8_0)),
    PackedTensor: lambda v: (TypeIndex.TENSOR_POINTER, v.packed),
    str: lambda v: (TypeIndex.RAW_TEXT, _sized(v.encode("utf-8", "surrogateescape"))),
    bytes: lambda v: (TypeIndex.RAW_BYTES, _sized(v)),
    Object: lambda v: (TypeIndex.TEXT, _U32.pack(v.type_index) + _U64.pack(v.handle)),
    Function: lambda v: (TypeIndex.FUNCTION, _U64.pack(v.handle)),
    Module: lambda v: (TypeIndex.MODULE, _U64.pack(v.handle)),
}


def encode_sequence(values: Sequence[Argument]) -> bytes:
    """The packed sequence. Raises ValueError for a value that its type does not hold."""
    parts = [_I32.pack(len(values))]
    for value in values:
        try:
            index, data = _ENCODERS[value.__class__](value)
        except struct.error as error:
            raise ValueError(f"{value!r} does not fit its type on the wire: {error}") from error
        parts += (_I32.pack(index), data)
    return b"".join(parts)


def decode_request(packet: Buffer) -> Request:
    """The request of a client of TVM v0.21 or later. Raises MalformedError."""
    code, body = split_packet(packet)
    try:
        if code is RpcCode.CALL_FUNC:
            (handle,) = _U64.unpack_from(body)
            return CallFunc(handle, decode_sequence(body, _U64.size))
        if code in (RpcCode.COPY_FROM_REMOTE, RpcCode.COPY_TO_REMOTE):
            return decode_copy(code, body, Dialect.V0_8_0)
        if code is RpcCode.INIT_SERVER:
            return decode_init(body, decode_sequence)
    except struct.error:
        raise MalformedError("the request is too short") from None
    if code is RpcCode.SHUTDOWN:
        return Shutdown()
    if code < RpcCode.GET_GLOBAL_FUNC:
        raise MalformedError(f"{code.name} is no request")
    return Syscall(code, decode_sequence(body))


def encode_request(request: CallFunc | Syscall) -> bytes:
    """The packet of a call or a system call, as such a client sends it."""
    if isinstance(request, CallFunc):
        return _packet(RpcCode.CALL_FUNC, _U64.pack(request.handle) + encode_sequence(request.args))
    return _packet(request.code, encode_sequence(request.args))


def encode_return(values: Sequence[Argument]) -> bytes:
    """The packet that answers a system call."""
    return _packet(RpcCode.RETURN, encode_sequence(values))


def encode_call_result(result: Result) -> bytes:
    """The packet that answers a CallFunc: the result's type index, and the result."""
    match result:
        case None:
            return encode_return([int(TypeIndex.NONE), None])
        case Module(handle):
            return encode_return([int(TypeIndex.MODULE), Handle(handle)])
        case Function(handle):
            return encode_return([int(TypeIndex.FUNCTION), Handle(handle)])
        case ReturnedArray(tensor, handle):
            return encode_return([int(TypeIndex.TENSOR), tensor, Handle(handle)])
        case str():
            return encode_return([int(TypeIndex.TEXT), result])
        case bytes():
            return encode_return([int(TypeIndex.BYTES), result])
    return encode_return([int(_ENCODERS[result.__class__](result)[0]), result])


def encode_exception(text: str) -> bytes:
    """The packet of an exception."""
    return _packet(RpcCode.EXCEPTION, encode_sequence([text]))


def _packet(code: RpcCode, body: bytes) -> bytes:
    return HEAD.pack(HEAD.size - _U64.size + len(body), code) + body
