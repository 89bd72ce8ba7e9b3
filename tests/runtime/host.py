# SPDX-License-Identifier: Apache-2.0
"""A device on the host, and its client: a server in a `Door`, with a link of memory and a scripted clock."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, NamedTuple
from zlib import crc32

from minrpc.wire.dtypes import DataType
from minrpc.wire.framing import RESYNC, Deframer, Frame, encode_frame
from minrpc.wire.replies import CopyAck, RemoteException, Reply, Result, Return, call_result, decode_reply
from minrpc.wire.requests import (
    CallFunc,
    CopyFromRemote,
    CopyToRemote,
    Request,
    RpcCode,
    Syscall,
    alloc_data,
    encode_request,
    free_data,
    get_global_func,
)
from minrpc.wire.session_layer import MessageType, encode_message
from minrpc.wire.values import Argument, Dialect, DLTensor, Function, Handle, Module

from tests.runtime.door import Door

V7: Final = Dialect.V0_7_0
V8: Final = Dialect.V0_8_0
U8: Final = DataType(1, 8)
I8: Final = DataType(0, 8)
F32: Final = DataType(2, 32)
SYSTEM_LIB: Final = Module(0x8000)
LOG_MAX: Final = 1023


class Message(NamedTuple):
    """A message of the device."""

    session: int
    kind: int
    body: bytes


def message(session: int, kind: int, body: bytes = b"") -> bytes:
    """The frame of a message, of any kind."""
    return encode_frame(struct.pack("<HB", session, kind) + body)


def numbered(session: int, sequence: int, packet: bytes) -> bytes:
    """The payload of a numbered message: its own check covers the header, too."""
    whole = encode_message(session, MessageType.NUMBERED, bytes([sequence]) + packet)
    return whole + struct.pack("<I", crc32(whole))


def tensor(data: int, size: int, offset: int = 0, dtype: DataType = I8) -> DLTensor:
    """A tensor of one dimension."""
    return DLTensor(data, dtype, (size,), offset)


def packet(request: Request | bytes, dialect: Dialect = V8) -> bytes:
    """The RPC packet of a request; bytes are a code and a body of any content."""
    if isinstance(request, bytes):
        return struct.pack("<Q", len(request)) + request
    return encode_request(request, dialect)


def flipped(data: bytes, at: int, bit: int = 0) -> bytes:
    """The bytes with one bit changed."""
    changed = bytearray(data)
    changed[at] ^= 1 << bit
    return bytes(changed)


class Host:
    """A device with buffers of these sizes, in a session with a client. is_: `struct host` of the program."""

    def __init__(self, door: Door, receive: int = 8192, send: int = 256, arena: int = 65536) -> None:
        self.door = door
        self.session = 0
        self.packet = b""  # the last answer
        self.functions = door.at("host_functions", "host_functions")
        self._messages: list[Message] = []
        self.is_ = self.door.at(self.door.call("door_boot", receive, send, arena, result="P"), "host")
        self.server = self.is_.server
        self.config = self.is_.config
        self.platform = self.is_.platform
        self.clock = self.is_.clock
        self.arena = self.server.arena
        self.begin()

    def begin(self) -> None:
        """Takes the message of a device that has booted, and opens a session."""
        booted = self.take()
        assert booted.kind == MessageType.TERMINATE
        self.open()

    def restart(self) -> None:
        """The same device after a reset, in the same memory."""
        self.door.call("host_reboot", self.is_)
        self._messages.clear()

    def reboot(self) -> None:
        """The same, and a session."""
        self.restart()
        self.begin()

    def stop(self) -> None:
        """Ends the device: its timer has stopped and its arena is intact."""
        self.door.call("host_stop", self.is_)

    def give(self, wire: bytes) -> None:
        """Bytes over the link to the device."""
        self.door.call("door_give", self.is_, self.door.memory(wire), len(wire))

    def send(self, request: Request | bytes, dialect: Dialect = V8) -> None:
        """A request in a normal message."""
        self.give(message(self.session, MessageType.NORMAL, packet(request, dialect)))

    def open(self, nonce: int = 0x23) -> None:
        """Opens a session."""
        self.give(message(nonce, MessageType.START_INIT, b"\1"))
        reply = self.take_next()
        assert reply.kind == MessageType.START_REPLY
        assert reply.session & 0xFF == nonce
        assert reply.session >> 8
        assert reply.body == b"\1"
        self.session = reply.session
        self.silent()

    def messages(self) -> list[Message]:
        """Messages that the device has sent and nobody has taken; they stay."""
        sent = self.is_.sent
        if size := sent.size:
            self._messages += map(_parsed, _frames(self.door.read(sent.data, size)))
            sent.size = 0
        return self._messages

    def take(self) -> Message:
        """The next message."""
        messages = self.messages()
        assert messages, "the device sent nothing"
        return messages.pop(0)

    def take_next(self) -> Message:
        """The next message after any logs."""
        while (taken := self.take()).kind == MessageType.LOG:
            pass
        return taken

    def take_log(self, part: str) -> str:
        """A log that contains `part`."""
        taken = self.take()
        assert (taken.session, taken.kind) == (0, MessageType.LOG)
        assert part in taken.body.decode()
        return taken.body.decode()

    def take_numbered(self, sequence: int) -> bytes:
        """The packet of the next message, which is a numbered one."""
        taken = self.take_next()
        assert (taken.session, taken.kind) == (self.session, MessageType.NUMBERED)
        packet = taken.body[1:-4]
        assert encode_message(self.session, MessageType.NUMBERED, taken.body) == numbered(
            self.session, sequence, packet
        )
        assert struct.unpack_from("<Q", packet)[0] == len(packet) - 8
        return packet

    def silent(self) -> None:
        """The device has sent nothing more."""
        assert self.messages() == []

    def request(self, request: Request | bytes, dialect: Dialect = V8) -> Reply:
        """The answer to a request, the only message that comes."""
        self.send(request, dialect)
        taken = self.take_next()
        assert (taken.session, taken.kind) == (self.session, MessageType.NORMAL)
        self.silent()
        self.packet = taken.body
        reply = decode_reply(taken.body, dialect)
        assert not isinstance(reply, RemoteException) or reply.text
        return reply

    def result(self, request: Request | bytes, dialect: Dialect = V8) -> Result:
        """The value of the answer, or the bytes, where no exception is due."""
        reply = self.request(request, dialect)
        if isinstance(reply, CopyAck):
            return bytes(reply.data)
        assert isinstance(reply, Return), reply
        if isinstance(request, CallFunc):
            return call_result(reply.values)
        (value,) = reply.values
        return value

    def error(self, request: Request | bytes, dialect: Dialect = V8) -> str:
        """The text of the exception that the request ends with."""
        reply = self.request(request, dialect)
        assert isinstance(reply, RemoteException), reply
        return reply.text

    def call(self, function: int, *args: Argument) -> Result:
        """The result of a function."""
        return self.result(CallFunc(function, args))

    def fails(self, function: int, *args: Argument) -> str:
        """The text of the exception that a call ends with."""
        return self.error(CallFunc(function, args))

    def handle_of(self, result: Result) -> int:
        """The handle or the address that a function has returned."""
        assert isinstance(result, Handle | Function | Module)
        return result[0]

    def find(self, name: str) -> int:
        """The handle of a global function; 0 if there is none."""
        return self.handle_of(self.result(get_global_func(name)))

    def function(self, name: str, module: Module = SYSTEM_LIB) -> int:
        """The handle of a module's function."""
        return self.handle_of(self.call(self.find("tvm.rpc.server.ModuleGetFunction"), module, name, 0))

    def evaluating(
        self, name: str, module: Module = SYSTEM_LIB, number: int = 1, repeat: int = 1
    ) -> CallFunc:
        """A request for a time evaluator."""
        return CallFunc(self.find("runtime.RPCTimeEvaluator"), (module, name, 1, 0, number, repeat, 0, ""))

    def evaluator(self, name: str, module: Module = SYSTEM_LIB, number: int = 1, repeat: int = 1) -> int:
        """The handle of a time evaluator."""
        return self.handle_of(self.result(self.evaluating(name, module, number, repeat)))

    def alloc(self, size: int) -> int:
        """The address of memory for data."""
        data = self.handle_of(self.result(alloc_data(size, I8)))
        assert data
        return data

    def free(self, data: int) -> None:
        """Frees memory for data."""
        assert self.result(free_data(data)) is None

    def free_handle(self, handle: int, kind: int) -> None:
        """Frees a function, a module or an array."""
        assert self.result(free(handle, kind)) is None

    def write(self, data: int, content: bytes) -> None:
        """Writes memory for data, in pieces that fit any buffer."""
        for at in range(0, len(content), 400):
            piece = content[at : at + 400]
            assert self.result(CopyToRemote(tensor(data, len(piece), at), piece)) is None

    def read(self, data: int, size: int) -> bytes:
        """Reads memory for data."""
        content = self.result(CopyFromRemote(tensor(data, size), size))
        assert isinstance(content, bytes)
        return content

    def serves(self) -> bool:
        """True if the good request gets the right answer, after any input."""
        return self.call(self.function("inc"), 41) == 42

    def blocks(self, arena: str = "arena") -> int:
        """Blocks of an arena that are not free; its blocks tile it and its counts are right."""
        return int(self.door.call("arena_check", getattr(self.server, arena)))

    def count(self, name: str) -> int:
        """One of the counts of the link."""
        return int(self.server.counters[self.door.constant(name)])

    def on_wait(self, waiting: Callable[[int], bytes]) -> None:
        """Bytes that come while a function waits, by the number of the turn."""
        turns = iter(range(1 << 30))

        def receive(_context: int, data: int, *_: int) -> int:
            wire = waiting(next(turns))
            self.door.write(data, self.door.memory(wire).to_bytes(self.door.bits // 8, "little"))
            return len(wire)

        self.platform.receive = self.door.callback(receive)


def free(handle: int, kind: int) -> Syscall:
    """Frees a handle, with a type code of any value."""
    return Syscall(RpcCode.FREE_HANDLE, (Handle(handle), int(kind)))


def _frames(wire: bytes) -> list[bytes]:
    """Payloads of frames in the one form that a sender may use: a lone `fe` may stand in front of each."""
    events = Deframer(max_payload=1 << 24).feed(wire)
    at = 0
    payloads = []
    for event in events:
        assert isinstance(event, Frame), event
        frame = encode_frame(event.payload, first=wire.startswith(RESYNC, at))
        assert wire.startswith(frame, at)
        at += len(frame)
        payloads.append(event.payload)
    assert at == len(wire)
    return payloads


def _parsed(payload: bytes) -> Message:
    session, kind = struct.unpack_from("<HB", payload)
    parsed = Message(session, kind, payload[3:])
    # After an empty log, or a longer log, clients lose all later messages.
    assert parsed.kind != MessageType.LOG or 0 < len(parsed.body) <= LOG_MAX
    return parsed
