# SPDX-License-Identifier: Apache-2.0
"""Requests: the RPC packets that the client sends.

    u64 n | i32 code | rest              n counts the bytes after it; one packet is one session message

`CallFunc` and the two copies have layouts of their own, every other request is a code and a packed sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from struct import Struct, error
from typing import NamedTuple

from minrpc.wire.dtypes import DataType
from minrpc.wire.values import (
    CPU,
    Argument,
    Buffer,
    Dialect,
    DLDevice,
    DLTensor,
    Handle,
    MalformedError,
    TypeCode,
    Value,
    decode_tensor,
    decode_whole_sequence,
    encode_sequence,
)

HEAD = Struct("<Qi")
_U64 = Struct("<Q")
_CALL = Struct("<QiQ")
# A call with this number of integers: n, code, handle, count, and a type code and a value for each.
_MOST_INTEGERS = 8
_CALLS_OF_INTEGERS = [Struct(f"<QiQi{count}i{count}q") for count in range(_MOST_INTEGERS + 1)]
# Types that travel as one number. An address above 2^63, which no device has, takes the general encoder.
_CALL_FUNC = 3
_IN_EIGHT_BYTES: dict[type, int] = {int: int(TypeCode.INT), Handle: int(TypeCode.HANDLE)}
_COPY_0_7_0 = Struct("<QQQiiBBH")


class RpcCode(IntEnum):
    """The request codes of TVM's RPC protocol, the codes of its three replies, and this project's own."""

    NONE = 0
    SHUTDOWN = 1
    INIT_SERVER = 2
    CALL_FUNC = 3
    RETURN = 4
    EXCEPTION = 5
    COPY_FROM_REMOTE = 6
    COPY_TO_REMOTE = 7
    COPY_ACK = 8
    GET_GLOBAL_FUNC = 9
    FREE_HANDLE = 10
    DEV_SET_DEVICE = 11
    DEV_GET_ATTR = 12
    DEV_ALLOC_DATA = 13
    DEV_FREE_DATA = 14
    DEV_STREAM_SYNC = 15
    COPY_AMONG_REMOTE = 16
    DEV_ALLOC_DATA_WITH_SCOPE = 17
    DEV_CREATE_STREAM = 18
    DEV_FREE_STREAM = 19
    DEV_SET_STREAM = 20
    DEV_GET_CURRENT_STREAM = 21
    # Used only between this project's devices and client.
    ASK = 64
    ANSWER = 65


_KNOWN = {int(code): code for code in RpcCode}


class Shutdown(NamedTuple):
    """Stops the server, which does not answer."""


class InitServer(NamedTuple):
    """Tells the device the client's protocol, "0.7.0" or "0.8.0". TVM's clients never send it here."""

    version: str
    args: Sequence[Argument] = ()


class CallFunc(NamedTuple):
    """Call the function behind `handle`."""

    handle: int
    args: Sequence[Argument]


class CopyFromRemote(NamedTuple):
    """Send `nbytes` of a tensor's memory, from its byte offset on. The 0.7.0 dialect sends no shape."""

    tensor: DLTensor
    nbytes: int


class CopyToRemote(NamedTuple):
    """Write `data` into a tensor's memory, from its byte offset on. The 0.7.0 dialect sends no shape."""

    tensor: DLTensor
    data: Buffer


class Syscall(NamedTuple):
    """A request that consists of a code and a packed sequence."""

    code: RpcCode
    args: Sequence[Argument]


class Answer(NamedTuple):
    """Answer the question of the running function; without data, end it."""

    data: Buffer


Request = Shutdown | InitServer | CallFunc | CopyFromRemote | CopyToRemote | Syscall | Answer


def get_global_func(name: str) -> Syscall:
    """The handle of the global function `name`."""
    return Syscall(RpcCode.GET_GLOBAL_FUNC, (name,))


def free_handle(handle: int, kind: TypeCode) -> Syscall:
    """Frees the handle of a function, a module or an array."""
    return Syscall(RpcCode.FREE_HANDLE, (Handle(handle), int(kind)))


def alloc_data(nbytes: int, dtype: DataType, alignment: int = 128, device: DLDevice = CPU) -> Syscall:
    """Memory of `nbytes`, as clients of the 0.7.0 protocol ask for it."""
    return Syscall(RpcCode.DEV_ALLOC_DATA, (device, nbytes, alignment, dtype))


def alloc_data_with_scope(tensor: DLTensor, scope: str | None = None) -> Syscall:
    """Memory for `tensor`, whose data is 0, as clients of the 0.8.0 protocol ask for it."""
    return Syscall(RpcCode.DEV_ALLOC_DATA_WITH_SCOPE, (tensor, scope))


def free_data(data: int, device: DLDevice = CPU) -> Syscall:
    """Frees memory."""
    return Syscall(RpcCode.DEV_FREE_DATA, (device, Handle(data)))


def encode_request(request: Request, dialect: Dialect) -> bytes:
    """The packet. Raises TypeError and ValueError as `encode_sequence` does."""
    match request:
        case CallFunc(handle, args):
            return encode_call(handle, args, dialect)
        case Syscall(code, args):
            return _packet(code, encode_sequence(args, dialect))
        case CopyFromRemote(tensor, nbytes):
            return _packet(RpcCode.COPY_FROM_REMOTE, _copy(tensor, nbytes, dialect))
        case CopyToRemote(tensor, data):
            return _packet(RpcCode.COPY_TO_REMOTE, _copy(tensor, len(data), dialect), data)
        case InitServer(version, args):
            text = version.encode()
            rest = encode_sequence(args, dialect)
            return _packet(RpcCode.INIT_SERVER, _U64.pack(len(text)) + text + rest)
        case Answer(data):
            return _packet(RpcCode.ANSWER, data)
        case Shutdown():
            return _packet(RpcCode.SHUTDOWN)


def encode_call(handle: int, args: Sequence[Argument], dialect: Dialect) -> bytes:
    """The packet of `CallFunc(handle, args)`."""
    if len(args) <= _MOST_INTEGERS:
        codes = [_IN_EIGHT_BYTES.get(argument.__class__) for argument in args]
        packet = None if None in codes else _encode_call_of_integers(handle, codes, args)
        if packet is not None:
            return packet
    sequence = encode_sequence(args, dialect)
    return _CALL.pack(_CALL.size - _U64.size + len(sequence), RpcCode.CALL_FUNC, handle) + sequence


def _encode_call_of_integers(
    handle: int, codes: Sequence[int | None], args: Sequence[Argument]
) -> bytes | None:
    """A call that carries only integers and handles, packed in one step; None where a value does not fit."""
    layout = _CALLS_OF_INTEGERS[len(args)]
    values = [argument if argument.__class__ is int else argument.value for argument in args]  # type: ignore[union-attr]
    try:
        return layout.pack(layout.size - _U64.size, _CALL_FUNC, handle, len(args), *codes, *values)
    except error:
        return None


def _packet(code: RpcCode, *parts: Buffer) -> bytes:
    body = b"".join(parts)
    return HEAD.pack(HEAD.size - _U64.size + len(body), code) + body


def _copy(tensor: DLTensor, nbytes: int, dialect: Dialect) -> bytes:
    if dialect is Dialect.V0_8_0:
        return tensor.pack(dialect) + _U64.pack(nbytes)
    return _COPY_0_7_0.pack(tensor.data, tensor.byte_offset, nbytes, *tensor.device, *tensor.dtype)


def copy_overhead(ndim: int, dialect: Dialect) -> int:
    """Bytes of a CopyToRemote that its n counts and that are not data."""
    copy = _COPY_0_7_0.size if dialect is Dialect.V0_7_0 else 40 + 8 * ndim
    return HEAD.size - _U64.size + copy


def decode_request(
    packet: Buffer, dialects: Sequence[Dialect] = (Dialect.V0_8_0, Dialect.V0_7_0)
) -> tuple[Request, Dialect]:
    """The request, and the first of `dialects` that its length fits; without tensors each does.

    Raises MalformedError when it is well formed in none.
    """
    code, body = split_packet(packet)
    for dialect in dialects:
        try:
            return _decode(code, body, dialect), dialect
        except MalformedError as error:
            refusal = error
    raise refusal


def split_packet(packet: Buffer) -> tuple[RpcCode, memoryview]:
    """The request's code and the bytes after it. Raises MalformedError."""
    if len(packet) < HEAD.size:
        raise MalformedError(f"a packet of {len(packet)} bytes holds no code")
    length, code = HEAD.unpack_from(packet)
    if length != len(packet) - _U64.size:
        raise MalformedError(f"the packet announces {length} bytes and has {len(packet) - _U64.size}")
    known = _KNOWN.get(code)
    if known is None:
        raise MalformedError(f"request code {code} is unknown")
    return known, memoryview(packet)[HEAD.size :]


def _decode(code: RpcCode, body: memoryview, dialect: Dialect) -> Request:
    try:
        if code is RpcCode.CALL_FUNC:
            (handle,) = _U64.unpack_from(body)
            return CallFunc(handle, decode_whole_sequence(body, _U64.size, dialect))
        if code in (RpcCode.COPY_FROM_REMOTE, RpcCode.COPY_TO_REMOTE):
            return decode_copy(code, body, dialect)
        if code is RpcCode.INIT_SERVER:
            return decode_init(body, lambda data, offset: decode_whole_sequence(data, offset, dialect))
    except error:
        raise MalformedError("the request is too short") from None
    if code is RpcCode.SHUTDOWN:
        return Shutdown()
    if code is RpcCode.ANSWER:
        return Answer(bytes(body))
    if code < RpcCode.GET_GLOBAL_FUNC or code is RpcCode.ASK:
        raise MalformedError(f"{code.name} is no request")
    return Syscall(code, decode_whole_sequence(body, 0, dialect))


def decode_init(body: memoryview, decode_args: Callable[[memoryview, int], list[Value]]) -> Request:
    """An InitServer, from the bytes after its code. Raises MalformedError and struct.error."""
    (length,) = _U64.unpack_from(body)
    if length > len(body) - _U64.size:
        raise MalformedError(f"{length} bytes announced where {len(body) - _U64.size} are left")
    end = _U64.size + length
    version = bytes(body[_U64.size : end]).decode("utf-8", "surrogateescape")
    return InitServer(version, decode_args(body, end))


def decode_copy(code: RpcCode, body: memoryview, dialect: Dialect) -> Request:
    """A copy, from the bytes after its code. Raises MalformedError and struct.error."""
    if dialect is Dialect.V0_8_0:
        tensor, end = decode_tensor(body, 0, dialect)
        (nbytes,) = _U64.unpack_from(body, end)
        begin = end + _U64.size
    else:
        data, offset, nbytes, device_type, device_id, *dtype = _COPY_0_7_0.unpack_from(body)
        tensor = DLTensor(data, DataType(*dtype), (), offset, DLDevice(device_type, device_id))
        begin = _COPY_0_7_0.size
    carried = nbytes if code is RpcCode.COPY_TO_REMOTE else 0
    if len(body) - begin != carried:
        raise MalformedError(f"the copy carries {len(body) - begin} bytes of data, not {carried}")
    if code is RpcCode.COPY_FROM_REMOTE:
        return CopyFromRemote(tensor, nbytes)
    return CopyToRemote(tensor, bytes(body[begin:]))
