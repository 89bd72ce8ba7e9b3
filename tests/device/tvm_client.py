# SPDX-License-Identifier: Apache-2.0
"""A client of TVM's TCP door for tests, in either packing, and a server for it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from struct import Struct, pack

from minrpc import Device
from minrpc.tvm.rpc.served import serving
from minrpc.wire import (
    HEAD,
    Argument,
    CallFunc,
    CopyFromRemote,
    CopyToRemote,
    Dialect,
    DLTensor,
    Function,
    Handle,
    Module,
    Request,
    Result,
    RpcCode,
    Syscall,
    TypeCode,
    Value,
    call_result,
    decode_whole_sequence,
    encode_request,
    ffi,
    get_global_func,
)

_LENGTH = Struct("<Q")
LIMIT_S = 60.0


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
    _socket: socket.socket = field(init=False)

    def __enter__(self) -> TvmClient:
        if self.pipe is not None:
            self._socket = self.pipe
            return self
        self._socket = socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT_S)
        self._socket.sendall(pack("<ii", 0xFF271, len(self.key)) + self.key.encode())
        magic = int.from_bytes(self._receive(4), "little")
        if magic != 0xFF271:
            raise RefusedError(f"{magic:#x}")
        assert self._receive(int.from_bytes(self._receive(4), "little")).startswith(b"server:")
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, request: Request) -> None:
        """Send a request without waiting for the answer."""
        plain = isinstance(request, CallFunc | Syscall) and self.today
        packet = ffi.encode_request(request) if plain else encode_request(request, Dialect.V0_8_0)  # type: ignore[arg-type]
        self._socket.sendall(packet)

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
        found = self.syscall(get_global_func(name))
        return found.value if isinstance(found, Handle) else 0

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
        found = self.call(find, library, name, True)
        return found.handle if isinstance(found, Function) else 0

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
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionResetError(f"{len(data)} of {size} bytes")
            data += more
        return data


@dataclass
class LentDevice:
    """A `DeviceSource` over the test's device. Its clients also find the function `test.wait`, which returns
    when the source must interrupt.
    """

    device: Device
    waits: threading.Event = field(default_factory=threading.Event)
    interrupted: threading.Event = field(default_factory=threading.Event)
    discarded: int = 0

    def wait(self, _: Sequence[Argument]) -> None:
        self.waits.set()
        if not self.interrupted.wait(LIMIT_S):
            raise ValueError("nobody interrupted")

    def open(self) -> Device:
        self.device.rpc.restart()
        return self.device

    def interrupt(self) -> None:
        self.interrupted.set()

    def discard(self) -> None:
        self.discarded += 1


@contextmanager
def served(source: LentDevice, said: list[str]) -> Iterator[int]:
    """The port where clients are served, in a thread that ends with the block."""
    functions = {"test.wait": source.wait}
    with serving(source, said.append, lambda _: functions) as port:
        yield port
