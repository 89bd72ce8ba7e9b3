# SPDX-License-Identifier: Apache-2.0
"""Replies: the RPC packets that the device sends.

A Return or an Exception carries a packed sequence, a CopyAck raw bytes. A system call returns one value. A
called function returns two or three: first the type code that the function gave its result, then the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from minrpc.wire.requests import HEAD, RpcCode
from minrpc.wire.values import (
    Buffer,
    Dialect,
    DLTensor,
    Function,
    Handle,
    MalformedError,
    Module,
    TypeCode,
    Value,
    decode_whole_sequence,
    encode_sequence,
)

_U64 = Struct("<Q")
_QUESTION = Struct("<QiI")

# The most frequent replies are compared whole, not parsed: the reply of a function that returns nothing, and
# the reply of a function that returns an int, as n, the code, two values of type int, and the values.
_NOTHING: list[Value] = [int(TypeCode.NULL), None]
_INT = Struct("<QiiiiQq")
_INT_HEAD = (_INT.size - _U64.size, RpcCode.RETURN, 2, TypeCode.INT, TypeCode.INT, TypeCode.INT)


class Return(NamedTuple):
    """The returned values."""

    values: list[Value]


class RemoteException(NamedTuple):
    """The device refused the request, or the function failed; `text` has the reason."""

    text: str


class CopyAck(NamedTuple):
    """The bytes of a CopyFromRemote."""

    data: memoryview


class Question(NamedTuple):
    """A question of the running function: the next request answers it.

    room: the largest answer that the device takes, in bytes.
    """

    room: int
    data: memoryview


class ReturnedArray(NamedTuple):
    """An NDArray that a function returned: the tensor, and the handle that frees it."""

    tensor: DLTensor
    handle: int


Reply = Return | RemoteException | CopyAck | Question
Result = Value | ReturnedArray


def decode_reply(packet: Buffer, dialect: Dialect) -> Reply:
    """The reply. Raises MalformedError."""
    if packet == _NOTHING_PACKET:
        return Return(_NOTHING)
    if len(packet) == _INT.size:
        fields = _INT.unpack_from(packet)
        if fields[:-1] == _INT_HEAD:
            return Return([*fields[-2:]])
    if len(packet) < HEAD.size:
        raise MalformedError(f"a reply of {len(packet)} bytes holds no code")
    length, code = HEAD.unpack_from(packet)
    if length != len(packet) - _U64.size:
        raise MalformedError(f"the reply announces {length} bytes and has {len(packet) - _U64.size}")
    if code == RpcCode.COPY_ACK:
        return CopyAck(memoryview(packet)[HEAD.size :])
    if code == RpcCode.RETURN:
        return Return(decode_whole_sequence(packet, HEAD.size, dialect))
    if code == RpcCode.EXCEPTION:
        return RemoteException(_exception_text(decode_whole_sequence(packet, HEAD.size, dialect)))
    if code == RpcCode.ASK and len(packet) >= _QUESTION.size:
        return Question(_QUESTION.unpack_from(packet)[2], memoryview(packet)[_QUESTION.size :])
    raise MalformedError(f"code {code} is no reply")


def is_question(packet: Buffer) -> bool:
    """True if the reply is a question of the running function."""
    return packet[_U64.size] == RpcCode.ASK if len(packet) >= HEAD.size else False


def decode_call_reply(packet: Buffer, dialect: Dialect) -> Result | RemoteException:
    """The result of a called function, or its failure. Raises MalformedError."""
    if len(packet) == _INT.size:
        fields = _INT.unpack_from(packet)
        if fields[:-1] == _INT_HEAD:
            return int(fields[-1])
    elif packet == _NOTHING_PACKET:
        return None
    reply = decode_reply(packet, dialect)
    if isinstance(reply, CopyAck | Question):
        raise MalformedError(f"{len(reply.data)} bytes came where values were due")
    return call_result(reply.values) if isinstance(reply, Return) else reply


def _exception_text(values: Sequence[Value]) -> str:
    text = values[0] if len(values) == 1 else None
    if not isinstance(text, str):
        raise MalformedError("an exception without its text")
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def call_result(values: Sequence[Value]) -> Result:
    """The result of a called function, from the values of its reply. Raises MalformedError."""
    match values:
        case [int(code), value]:
            return _single_result(code, value)
        case [int(TypeCode.NDARRAY), DLTensor() as tensor, Handle(handle)]:
            return ReturnedArray(tensor, handle)
    raise MalformedError(f"a function's result has a type code and a value, not {len(values)} values")


def _single_result(code: int, value: Value) -> Result:
    if code == TypeCode.NULL:
        return None
    if code in _HANDLES and isinstance(value, Handle):
        return _HANDLES[code](value.value)
    return value


_HANDLES: dict[int, type[Module] | type[Function]] = {
    TypeCode.MODULE: Module,
    TypeCode.FUNCTION: Function,
}


def encode_return(values: Sequence[Value], dialect: Dialect) -> bytes:
    """The packet of a Return."""
    return _packet(RpcCode.RETURN, encode_sequence(values, dialect))


def encode_call_result(result: Result, dialect: Dialect) -> bytes:
    """The packet that answers a CallFunc, as `call_result` reads it."""
    match result:
        case None:
            return encode_return([int(TypeCode.NULL), None], dialect)
        case Module(handle):
            return encode_return([int(TypeCode.MODULE), Handle(handle)], dialect)
        case Function(handle):
            return encode_return([int(TypeCode.FUNCTION), Handle(handle)], dialect)
        case ReturnedArray(tensor, handle):
            return encode_return([int(TypeCode.NDARRAY), tensor, Handle(handle)], dialect)
    codes = {int: TypeCode.INT, float: TypeCode.FLOAT, str: TypeCode.STRING, bytes: TypeCode.BYTES}
    return encode_return([int(codes.get(type(result), TypeCode.HANDLE)), result], dialect)


def encode_exception(text: str) -> bytes:
    """The packet of an Exception."""
    return _packet(RpcCode.EXCEPTION, encode_sequence([text], Dialect.V0_8_0))


def encode_copy_ack(data: Buffer) -> bytes:
    """The packet of a CopyAck."""
    return _packet(RpcCode.COPY_ACK, data)


def _packet(code: RpcCode, body: Buffer) -> bytes:
    return HEAD.pack(HEAD.size - _U64.size + len(body), code) + body


_NOTHING_PACKET = encode_call_result(None, Dialect.V0_8_0)
