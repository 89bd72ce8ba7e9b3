# SPDX-License-Identifier: Apache-2.0
"""TVM's RPC over TCP, the server's side without I/O: a handshake, then packets without frames.

    client: i32 0xff271, i32 n, n bytes "client:KEY[ -timeout=S]"      server: the same with "server:NAME"
    then both: u64 n, n bytes                                          (little-endian; n = 0 means nothing)

The first request with arguments shows the client's packing of values: of TVM before v0.21, or since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Final, NamedTuple

from minrpc.wire import ffi
from minrpc.wire.replies import Result, encode_call_result, encode_exception, encode_return
from minrpc.wire.requests import InitServer, Request, RpcCode, Syscall, decode_request
from minrpc.wire.values import Dialect, MalformedError, UInt, Value

MAGIC: Final = 0xFF271
DUPLICATE_KEY: Final = 0xFF272
NO_SUCH_KEY: Final = 0xFF273
MAX_KEY: Final = 4096
# Longest request of a client, in bytes; a peer that announces more is not a client.
MAX_PACKET: Final = 1 << 31

_HANDSHAKE: Final = Struct("<ii")
_LENGTH: Final = Struct("<Q")


class Hello(NamedTuple):
    """The client's handshake. key: as received, "client:NAME" and options after a space."""

    key: str


class TooLong(NamedTuple):
    """A packet of `nbytes` bytes was longer than the limit; its bytes were dropped."""

    nbytes: int


class PacketReceived(NamedTuple):
    """One whole packet, with its length."""

    packet: bytes


@dataclass
class Door:
    """The bytes of one client, cut into its handshake and its packets.

    greets: over a pipe a client has no handshake. most: limit of a packet, in bytes.
    """

    greets: bool = True
    most: int = MAX_PACKET
    _buffer: bytearray = field(default_factory=bytearray)
    _dropped: int = 0

    def feed(self, data: bytes) -> Iterator[Hello | PacketReceived | TooLong]:
        """The requests that the next bytes complete. Raises MalformedError for other bytes."""
        self._buffer += data
        if self.greets:
            hello = self._handshake()
            if hello is None:
                return
            self.greets = False
            yield hello
        while (packet := self._packet()) is not None:
            if isinstance(packet, TooLong):
                yield packet
            elif len(packet) > _LENGTH.size:
                yield PacketReceived(packet)

    def _handshake(self) -> Hello | None:
        if len(self._buffer) < _HANDSHAKE.size:
            return None
        magic, length = _HANDSHAKE.unpack_from(self._buffer)
        if magic != MAGIC:
            raise MalformedError(f"the client begins with {magic & 0xFFFFFFFF:#x}, TVM's with {MAGIC:#x}")
        if not 0 <= length <= MAX_KEY:
            raise MalformedError(f"a key of {length} bytes")
        end = _HANDSHAKE.size + length
        if len(self._buffer) < end:
            return None
        key = bytes(self._buffer[_HANDSHAKE.size : end]).decode("utf-8", "backslashreplace")
        del self._buffer[:end]
        return Hello(key)

    def _packet(self) -> bytes | TooLong | None:
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        if length > MAX_PACKET:
            raise MalformedError(f"a packet of {length} bytes")
        end = _LENGTH.size + length
        if length > self.most:
            return self._drop(end)
        if len(self._buffer) < end:
            return None
        packet = bytes(self._buffer[:end])
        del self._buffer[:end]
        return packet

    def _drop(self, end: int) -> TooLong | None:
        """Drops what came of a packet of `end` bytes, behind its length; the packet once all of it came."""
        size = min(len(self._buffer), end - self._dropped)
        self._dropped += size - _LENGTH.size
        del self._buffer[_LENGTH.size : size]
        if self._dropped + _LENGTH.size < end:
            return None
        del self._buffer[: _LENGTH.size]
        self._dropped = 0
        return TooLong(end - _LENGTH.size)


def answer_hello(text: str, code: int = MAGIC) -> bytes:
    """The server's handshake. code: MAGIC, or the code of a refusal."""
    if code != MAGIC:
        return Struct("<i").pack(code)
    data = text.encode()
    return _HANDSHAKE.pack(code, len(data)) + data


@dataclass(frozen=True, slots=True)
class Packing:
    """A client's packing of values; answers to it use the same packing.

    Its fields are functions of `wire.ffi`, or of `wire.replies` for one dialect.
    """

    decode_request: Callable[[bytes], Request]
    encode_return: Callable[[Sequence[Value]], bytes]
    encode_call_result: Callable[[Result], bytes]
    encode_exception: Callable[[str], bytes]


def _before_0_21(dialect: Dialect) -> Packing:
    return Packing(
        lambda packet: decode_request(packet, (dialect,))[0],
        lambda values: encode_return(values, dialect),
        lambda result: encode_call_result(result, dialect),
        encode_exception,
    )


V0_7: Final = _before_0_21(Dialect.V0_7_0)
V0_8: Final = _before_0_21(Dialect.V0_8_0)
FFI: Final = Packing(ffi.decode_request, ffi.encode_return, ffi.encode_call_result, ffi.encode_exception)

# The answer to InitServer: no values. Its bytes are the same in each packing, and the client does not read
# them.
INITIALIZED: Final = V0_8.encode_return([])


def recognize(packet: bytes) -> tuple[Request, Packing | None]:
    """The request of a client whose packing is not known yet, and the packing if this request shows it.

    Raises MalformedError if the bytes are not a request in any packing.
    """
    try:
        request, packing = V0_8.decode_request(packet), V0_8
        if not _sent_before_0_21(request):
            request, packing = ffi.decode_request(packet), FFI
    except MalformedError:
        request, packing = ffi.decode_request(packet), FFI
    if isinstance(request, InitServer):
        return request, V0_7 if request.version == Dialect.V0_7_0.value else None
    return request, packing if getattr(request, "args", None) else None


def _sent_before_0_21(request: Request) -> bool:
    """True if a request that parses in the old packing can be a request of an old client: some requests in
    the new packing parse as both.

    Clients before v0.21 look functions up by a string, and never send an unsigned integer.
    """
    args: Sequence[object] = getattr(request, "args", ())
    if isinstance(request, Syscall) and request.code is RpcCode.GET_GLOBAL_FUNC:
        return len(args) == 1 and isinstance(args[0], str)
    return not any(isinstance(value, UInt) for value in args)
