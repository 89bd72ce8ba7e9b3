# SPDX-License-Identifier: Apache-2.0
"""A client of TVM's TCP door, in either packing; for benchmarks and tests."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from struct import Struct, pack
from typing import Final

from minrpc.wire import ffi
from minrpc.wire.replies import Result, call_result
from minrpc.wire.requests import (
    HEAD,
    CallFunc,
    CopyFromRemote,
    CopyToRemote,
    Request,
    RpcCode,
    Syscall,
    encode_request,
    get_global_func,
)
from minrpc.wire.values import (
    Argument,
    Dialect,
    DLTensor,
    Function,
    Handle,
    Module,
    TypeCode,
    Value,
    decode_whole_sequence,
)

_LENGTH: Final = Struct("<Q")
LIMIT_S: Final = 60.0


class RefusedError(Exception):
    """The server answered with an exception that has this text."""


@dataclass
class TvmClient:
    """today: packs as TVM does from v0.21 on, else as before it. pipe: used instead of a port, without a
    handshake."""

    port: int
    today: bool
    key: str = "client:"
    pipe: socket.socket | None = None
    connection: socket.socket = field(init=False)

    def __enter__(self) -> TvmClient:
        if self.pipe is not None:
            self.connection = self.pipe
            return self
        self.connection = socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT_S)
        self.connection.sendall(pack("<ii", 0xFF271, len(self.key)) + self.key.encode())
        magic = int.from_bytes(self._receive(4), "little")
        if magic != 0xFF271:
            raise RefusedError(f"{magic:#x}")
        assert self._receive(int.from_bytes(self._receive(4), "little")).startswith(b"server:")
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def send(self, request: Request) -> None:
        """Send a request without waiting for the answer."""
        plain = isinstance(request, CallFunc | Syscall) and self.today
        packet = ffi.encode_request(request) if plain else encode_request(request, Dialect.V0_8_0)  # type: ignore[arg-type]
        self.connection.sendall(packet)

    def begun(self) -> bool:
        """True if the answer to InitServer reports success: it has no values."""
        length, code = HEAD.unpack(self._receive(HEAD.size))
        self._receive(length - (HEAD.size - _LENGTH.size))
        return bool(code == RpcCode.RETURN)

    def answer(self) -> list[Value] | bytes:
        head = self._receive(HEAD.size)
        length, code = HEAD.unpack(head)
        body = self._receive(length - (HEAD.size - _LENGTH.size))
        if code == RpcCode.COPY_ACK:
            return body
        values = ffi.decode_sequence(body) if self.today else decode_whole_sequence(body, 0, Dialect.V0_8_0)
        if code == RpcCode.EXCEPTION:
            raise RefusedError(values[0])
        return values

    def syscall(self, request: Request) -> Value:
        self.send(request)
        (value,) = self.answer()
        assert not isinstance(value, bytes) or not isinstance(request, CopyFromRemote)
        return value

    def function(self, name: str) -> int:
        handle = self.syscall(get_global_func(name))
        return handle.value if isinstance(handle, Handle) else 0

    def call(self, handle: int, *args: Argument) -> Result:
        self.send(CallFunc(handle, args))
        values = self.answer()
        assert isinstance(values, list)
        if not self.today:
            return call_result(values)
        code, value = values[0], values[1]
        if isinstance(value, Handle) and code == ffi.TypeIndex.FUNCTION:
            return Function(value.value)
        if isinstance(value, Handle) and code == ffi.TypeIndex.MODULE:
            return Module(value.value)
        return value

    def library_function(self, name: str) -> int:
        library = self.call(self.function("ffi.SystemLib" if self.today else "runtime.SystemLib"))
        assert isinstance(library, Module)
        find = self.function("tvm.rpc.server.ModuleGetFunction")
        function = self.call(find, library, name, True)
        return function.handle if isinstance(function, Function) else 0

    def array(self, tensor: DLTensor, data: bytes) -> DLTensor:
        address = self.syscall(Syscall(RpcCode.DEV_ALLOC_DATA_WITH_SCOPE, (tensor, None)))
        assert isinstance(address, Handle)
        placed = tensor._replace(data=address.value)
        self.syscall(CopyToRemote(placed, data))
        return placed

    def free(self, made: Function | Module) -> None:
        kind = TypeCode.FUNCTION if isinstance(made, Function) else TypeCode.MODULE
        args = (Handle(made.handle),) if self.today else (Handle(made.handle), int(kind))
        self.syscall(Syscall(RpcCode.FREE_HANDLE, args))

    def read(self, tensor: DLTensor) -> bytes:
        return self.read_bytes(tensor, tensor.nbytes)

    def read_bytes(self, tensor: DLTensor, nbytes: int) -> bytes:
        self.send(CopyFromRemote(tensor, nbytes))
        data = self.answer()
        assert isinstance(data, bytes)
        return data

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.connection.recv(size - len(data))
            if not more:
                raise ConnectionResetError(f"{len(data)} of {size} bytes")
            data += more
        return data
