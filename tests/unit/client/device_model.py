# SPDX-License-Identifier: Apache-2.0
"""A device in Python, for tests of the client: the protocol as a device speaks it, no link, no time.

It plays this project's device, or TVM's own of one version: TVM's devices know one dialect and one arity of
the time evaluator, and a message that they can't read stops them for good.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from minrpc.wire import replies, requests
from minrpc.wire.dtypes import DataType
from minrpc.wire.framing import Deframer, Frame, encode_frame
from minrpc.wire.replies import Result
from minrpc.wire.requests import CallFunc, CopyFromRemote, CopyToRemote, Request, RpcCode, Shutdown, Syscall
from minrpc.wire.session_layer import HEADER, MessageType, encode_message, next_nonce
from minrpc.wire.values import Argument, Bool, Dialect, DLTensor, Function, Handle, MalformedError, Module

from tests.unit.client.numbered_model import NumberedModel

LIBRARY = 0x8000
BYTE = DataType(1, 8)


def info_answer(
    *,
    version: int = 4,
    regions: bytes = b"",
    options: bytes = b"",
    build_id: bytes = b"",
    longer: int = 0,
    wider: int = 0,
) -> bytes:
    """A device's info: its numbers are 8192, 2, 3, ...; a later version is longer and wider."""
    each = 24
    count = len(regions) // each
    head = struct.pack("<I6H", version, 104 + longer, count, each + wider, len(options), len(build_id), 64)
    numbers = struct.pack("<14I4Q", 8192, *range(2, 14), 0, 100, 200, 300, 400)
    widened = b"".join(regions[i * each : (i + 1) * each] + bytes(wider) for i in range(count))
    return head + numbers + bytes(longer) + widened + options + build_id


class DeviceFailureError(Exception):
    """Raised in the model to answer with an exception."""


@dataclass
class Traits:
    """Properties of a kind of device."""

    dialects: Sequence[Dialect] = (Dialect.V0_8_0, Dialect.V0_7_0)
    arities: Sequence[int] = (8, 10, 11, 12)
    max_packet: int = 8192
    tells_max_packet: bool = True
    ours: bool = True
    unknown_global_fails: bool = False
    memory: int = 1 << 20
    long_copies: bool = False


OURS = Traits()
TVM_0_7_0 = Traits((Dialect.V0_7_0,), (8,), 64000, False, False, True)
TVM_0_8_0 = Traits((Dialect.V0_8_0,), (8,), 2048, True, False)
TVM_0_11_0 = Traits((Dialect.V0_8_0,), (11,), 2048, True, False)
TVM_0_18_0 = Traits((Dialect.V0_8_0,), (12,), 2048, True, False)


@dataclass
class DeviceModel:
    """A device: `receive` takes bytes and returns the answer's bytes.

    requests: all executed requests.
    memory: live allocations by address.
    globals: its global functions by name. evaluators: function and repeats of each, by handle.
    dead: True if it does not answer any more.
    mangle: changes the bytes of each answer before they are sent.
    """

    traits: Traits = field(default_factory=Traits)
    nonce: int = 0xA5
    requests: list[Request] = field(default_factory=list)
    memory: dict[int, bytearray] = field(default_factory=dict)
    dead: bool = False
    logs: list[str] = field(default_factory=list)
    mangle: Callable[[bytes], bytes] = bytes
    evaluated: int = 0

    def __post_init__(self) -> None:
        self._reader = Deframer()
        self.checked: list[int] = []
        self._rebooting = False
        self._session_id: int | None = None
        self._normal_messages = 0
        self._next_address = 0x1000
        self.evaluators: dict[int, tuple[str, int]] = {}
        self._library: dict[str, Callable[[Sequence[Argument]], Result]] = {
            "inc": _inc, "add": self._add, "echo": _echo, "fail": _fail, "array": self._array,
        }  # fmt: skip
        self.globals: dict[str, Callable[[Sequence[Argument]], Result]] = {
            "runtime.SystemLib": lambda _: Module(LIBRARY),
            "tvm.rpc.server.ModuleGetFunction": self._module_get_function,
            "runtime.RPCTimeEvaluator": self._time_evaluator,
            "tvm.testing.reset_server": self._reset_server,
        }
        if self.traits.tells_max_packet:
            self.globals["tvm.rpc.server.GetCRTMaxPacketSize"] = lambda _: (
                min(self.traits.max_packet, 2048) - 11
            )
        if self.traits.ours:
            self.globals["minrpc.device_info"] = lambda _: self._info()
            self.globals["minrpc.resend"] = lambda _: 1
        self._numbered = NumberedModel(self._answer)

    def boot(self) -> bytes:
        """The bytes that it sends at boot, which ends all sessions."""
        self._session_id = None
        self.memory.clear()
        return encode_frame(encode_message(0, MessageType.TERMINATE), first=True)

    def receive(self, data: bytes) -> bytes:
        """The answer to bytes of the link."""
        answers = b""
        for event in self._reader.feed(data):
            if isinstance(event, Frame) and not self.dead:
                answers += self._message(event.payload)
        return answers

    def _message(self, payload: bytes) -> bytes:
        if len(payload) < HEADER.size:
            return b""
        session_id, kind = HEADER.unpack_from(payload)
        if kind == MessageType.START_INIT and session_id & 0xFF:
            return self._start(session_id & 0xFF)
        if kind == MessageType.TERMINATE:
            self._session_id = None
        packet = payload[HEADER.size :]
        if kind == MessageType.CHECKED and self.traits.long_copies:
            kind, packet = MessageType.NORMAL, self._checked(packet)
        if session_id == self._session_id and self.traits.ours and NumberedModel.takes(kind):
            return self.mangle(self._numbered.receive(payload))
        if kind != MessageType.NORMAL or session_id != self._session_id:
            return b""
        return self._normal(packet, session_id) if packet != bytes(8) else b""

    def _checked(self, body: bytes) -> bytes:
        """The packet of a checked message."""
        (check,), packet = struct.unpack_from("<I", body), body[4:]
        request, _ = requests.decode_request(packet)
        assert isinstance(request, CopyToRemote)
        front = packet[: len(packet) - len(request.data)]
        assert zlib.crc32(front) == check
        self.checked.append(len(request.data))
        return packet

    def _info(self) -> bytes:
        return info_answer(options=b"streaming," if self.traits.long_copies else b"")

    def _start(self, initiator: int) -> bytes:
        self.nonce = next_nonce(self.nonce)
        self._session_id = initiator | self.nonce << 8
        self._normal_messages = 0
        self._numbered = NumberedModel(self._answer)
        return encode_frame(encode_message(self._session_id, MessageType.START_REPLY, b"\x01"))

    def _normal(self, packet: bytes, session_id: int) -> bytes:
        room = self.traits.max_packet - (0 if self._normal_messages else 7)
        self._normal_messages += 1
        if not self.traits.ours and len(packet) + HEADER.size > room:
            self.dead = True
            return b""
        answer = self._answer(packet)
        logs = b"".join(encode_frame(encode_message(0, MessageType.LOG, line.encode())) for line in self.logs)
        self.logs = []
        if self._rebooting:
            self._rebooting = False
            return logs + self.boot()
        if answer is None:
            return logs
        return self.mangle(logs + encode_frame(encode_message(session_id, MessageType.NORMAL, answer)))

    def _answer(self, packet: bytes) -> bytes | None:
        if packet[8] >= RpcCode.DEV_ALLOC_DATA_WITH_SCOPE and Dialect.V0_8_0 not in self.traits.dialects:
            return replies.encode_exception("Syscall not recognized")
        try:
            request, dialect = requests.decode_request(packet, self.traits.dialects)
            self._refuse_what_stops_tvm(request)
            self.requests.append(request)
            return self._carry_out(request, dialect)
        except MalformedError as error:
            if self.traits.ours:
                return replies.encode_exception(str(error))
            self.dead = True
            return None
        except DeviceFailureError as error:
            return replies.encode_exception(str(error))

    def _refuse_what_stops_tvm(self, request: Request) -> None:
        args = request.args if isinstance(request, CallFunc) else ()
        if not self.traits.ours and any(isinstance(value, Bool) for value in args):
            raise MalformedError("a bool")

    def _carry_out(self, request: Request, dialect: Dialect) -> bytes | None:
        match request:
            case CallFunc(handle, args):
                result = self._function(handle)(args)
                return None if result is _NO_ANSWER else replies.encode_call_result(result, dialect)
            case CopyToRemote(tensor, data):
                memory, offset = self._place(tensor, len(data))
                memory[offset : offset + len(data)] = data
            case CopyFromRemote(tensor, nbytes):
                memory, offset = self._place(tensor, nbytes)
                return replies.encode_copy_ack(bytes(memory[offset : offset + nbytes]))
            case Syscall(code, args):
                return replies.encode_return([self._syscall(code, args)], dialect)
            case Shutdown():
                self._session_id = None
                return None
        return replies.encode_return([None], dialect)

    def _syscall(self, code: RpcCode, args: Sequence[Argument]) -> Handle | None:
        match code, args:
            case RpcCode.GET_GLOBAL_FUNC, [str(name)]:
                return Handle(self._global_handle(name))
            case RpcCode.DEV_ALLOC_DATA, [_, int(nbytes), 128, _]:
                return self._allocate(nbytes)
            case RpcCode.DEV_ALLOC_DATA_WITH_SCOPE, [DLTensor(0) as tensor, None]:
                return self._allocate(tensor.nbytes)
            case RpcCode.DEV_FREE_DATA, [_, Handle(address)]:
                if self.memory.pop(address, None) is None:
                    raise DeviceFailureError(f"no allocation at {address:#x}")
                return None
            case RpcCode.FREE_HANDLE, [Handle(handle), int()]:
                self.evaluators.pop(handle, None)
                return None
            case RpcCode.DEV_STREAM_SYNC | RpcCode.DEV_FREE_STREAM | RpcCode.DEV_SET_STREAM, [_, Handle(0)]:
                return None
            case RpcCode.DEV_CREATE_STREAM | RpcCode.DEV_GET_CURRENT_STREAM, [_]:
                return Handle(0)
            case RpcCode.COPY_AMONG_REMOTE, [DLTensor() as source, DLTensor() as target, _]:
                self._copy_among(source, target, source.nbytes)
                return None
            case RpcCode.COPY_AMONG_REMOTE, [
                Handle(a),
                0,
                Handle(b),
                0,
                int(nbytes),
                *_,
                DataType(),
                Handle(0),
            ]:
                self._copy_among(DLTensor(a, BYTE, ()), DLTensor(b, BYTE, ()), nbytes)
                return None
        raise DeviceFailureError(f"{code.name}: wrong arguments, or not supported")

    def _allocate(self, nbytes: int) -> Handle:
        if nbytes + sum(map(len, self.memory.values())) > self.traits.memory:
            raise DeviceFailureError(f"out of memory: asked for {nbytes} bytes")
        address = self._next_address
        self._next_address += max(nbytes, 1) + 0x100
        self.memory[address] = bytearray(nbytes)
        return Handle(address)

    def _place(self, tensor: DLTensor, nbytes: int) -> tuple[bytearray, int]:
        memory = self.memory.get(tensor.data)
        if memory is None or tensor.byte_offset + nbytes > len(memory):
            raise DeviceFailureError(f"{nbytes} bytes at {tensor.data:#x} are not allocated")
        return memory, tensor.byte_offset

    def _copy_among(self, source: DLTensor, target: DLTensor, nbytes: int) -> None:
        there, _ = self._place(target, nbytes)
        there[:nbytes] = self._place(source, nbytes)[0][:nbytes]

    def _global_handle(self, name: str) -> int:
        if name in self.globals:
            return 0x80028000 + list(self.globals).index(name)
        if self.traits.ours and name[:1] == ":" and name[1:] in self._library:
            return 0x80008000 + list(self._library).index(name[1:])
        if self.traits.unknown_global_fails:
            raise DeviceFailureError("")
        return 0

    def _function(self, handle: int) -> Callable[[Sequence[Argument]], Result]:
        if handle in self.evaluators:
            name, repeat = self.evaluators[handle]
            return lambda args: self._measure(self._library[name], repeat, args)
        functions = {0x80008000: self._library, 0x80028000: self.globals}.get(handle & ~0xFF, {})
        if handle & 0xFF >= len(functions):
            raise DeviceFailureError(f"no function has handle {handle:#x}")
        return list(functions.values())[handle & 0xFF]

    def _measure(
        self, function: Callable[[Sequence[Argument]], Result], repeat: int, args: Sequence[Argument]
    ) -> bytes:
        function(args)
        return struct.pack(f"<{repeat}d", *(1e-6 * (i + 1) for i in range(repeat)))

    def _module_get_function(self, args: Sequence[Argument]) -> Result:
        match args:
            case [Module(handle), str(name), 0 | 1 | Bool()] if handle == LIBRARY:
                if name in self._library:
                    return Function(0x80008000 + list(self._library).index(name))
                return None
        raise DeviceFailureError("ModuleGetFunction: invalid arguments")

    def _time_evaluator(self, args: Sequence[Argument]) -> Result:
        if len(args) not in self.traits.arities or not isinstance(args[-1], str):
            raise DeviceFailureError("one or more invalid arg types")
        name, repeat = args[1], args[5]
        assert isinstance(name, str)
        assert isinstance(repeat, int)
        if name not in self._library:
            raise DeviceFailureError(f"no function {name}")
        self.evaluated += 1
        self.evaluators[0xFFFF8000 + self.evaluated] = (name, repeat)
        return Function(0xFFFF8000 + self.evaluated)

    def _reset_server(self, _: Sequence[Argument]) -> Result:
        self._rebooting = True
        return _NO_ANSWER

    def _add(self, args: Sequence[Argument]) -> Result:
        match args:
            case [DLTensor() as a, DLTensor() as b, DLTensor() as c]:
                left, right = self._elements(a), self._elements(b)
                sums = ((x + right[i % len(right)] + 128) % 256 - 128 for i, x in enumerate(left))
                self._place(c, c.nbytes)[0][:] = struct.pack(f"<{len(left)}b", *sums)
                return None
        raise DeviceFailureError(f"add: expected 3 tensors, got {len(args)} arguments")

    def _elements(self, tensor: DLTensor) -> tuple[int, ...]:
        memory, _ = self._place(tensor, tensor.nbytes)
        return struct.unpack(f"<{len(memory)}b", memory)

    def _array(self, args: Sequence[Argument]) -> Result:
        assert isinstance(args[0], DLTensor)
        return replies.ReturnedArray(args[0], 0x77)


_NO_ANSWER = Handle(-1)


def _inc(args: Sequence[Argument]) -> Result:
    match args:
        case [int(number)] | [Bool(number)]:
            return number + 1
    raise DeviceFailureError("inc: expected an int")


def _echo(args: Sequence[Argument]) -> Result:
    return args[0] if args else None  # type: ignore[return-value]


def _fail(_: Sequence[Argument]) -> Result:
    raise DeviceFailureError("boom")
