# SPDX-License-Identifier: Apache-2.0
"""Renders the traffic of a link, one line per message, for failure reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from minrpc.wire.framing import Deframer, Frame, FramingEvent, Noise
from minrpc.wire.replies import CopyAck, Question, RemoteException, ReturnedArray, call_result, decode_reply
from minrpc.wire.requests import (
    Answer,
    CallFunc,
    CopyFromRemote,
    CopyToRemote,
    RpcCode,
    Syscall,
    decode_request,
)
from minrpc.wire.session_layer import HEADER, MessageType
from minrpc.wire.values import Dialect, DLTensor, Function, Handle, MalformedError, Module

TO_DEVICE: Final = ">"
FROM_DEVICE: Final = "<"

_BYTES_SHOWN: Final = 16
_TEXT_SHOWN: Final = 160
# Bytes before and after the packet in these messages, without the header; see `MessageType`.
_AROUND_PACKET: Final = {
    MessageType.NORMAL: (0, 0),
    MessageType.NUMBERED: (1, 4),
    MessageType.CHECKED: (4, 0),
}


def explain(chunks: Iterable[tuple[str, bytes]]) -> list[str]:
    """The messages in `chunks` of bytes, each with its direction, `TO_DEVICE` or `FROM_DEVICE`, before it.

    If bytes were lost before the first chunk, the rest of their message shows as noise.
    """
    readers = {TO_DEVICE: Deframer(), FROM_DEVICE: Deframer()}
    return [
        f"{mark} {explain_event(event, mark)}" for mark, data in chunks for event in readers[mark].feed(data)
    ]


def explain_event(event: FramingEvent, mark: str) -> str:
    """One line for an event of the reader of one direction."""
    if isinstance(event, Frame):
        return explain_message(event.payload, mark)
    if isinstance(event, Noise):
        return f"between frames: {_bytes(event.data)}"
    return f"damaged: {event}"


def explain_message(payload: bytes, mark: str) -> str:
    """A session message."""
    if len(payload) < HEADER.size:
        return f"a message of {_bytes(payload)}"
    session_id, kind = HEADER.unpack_from(payload)
    body = payload[HEADER.size :]
    if kind in _AROUND_PACKET:
        before, behind = _AROUND_PACKET[MessageType(kind)]
        packet = body[before : len(body) - behind]
        numbered = f"number {body[0]}: " if kind == MessageType.NUMBERED and body else ""
        return numbered + (_request(packet) if mark == TO_DEVICE else _reply(packet))
    return _session_message(session_id, kind, body)


def _session_message(session_id: int, kind: int, body: bytes) -> str:
    match kind:
        case MessageType.START_INIT:
            return f"start of a session, nonce {session_id & 0xFF:02x}"
        case MessageType.START_REPLY:
            return f"session {session_id:04x} is established"
        case MessageType.TERMINATE:
            return "end of the session"
        case MessageType.LOG:
            return f"log: {_text(body.decode('utf-8', 'backslashreplace'))}"
        case MessageType.RESEND | MessageType.PROBE:
            return f"{MessageType(kind).name.lower()} {body.hex()}"
    return f"a message of unknown type {kind:#04x}: {_bytes(body)}"


def _request(packet: bytes) -> str:
    try:
        request, _ = decode_request(packet)
    except MalformedError as error:
        return f"malformed: {error}"
    match request:
        case CallFunc(handle, args):
            return f"call {handle:#x}({_values(args)})"
        case CopyFromRemote(tensor, nbytes):
            return f"copy {nbytes} bytes from {_value(tensor)}"
        case CopyToRemote(tensor, data):
            return f"copy {len(memoryview(data))} bytes to {_value(tensor)}"
        case Answer(data):
            return f"answer of {len(data)} bytes"
        case Syscall(code, args):
            return f"{_name(code)}({_values(args)})"
    return _name(RpcCode.SHUTDOWN if request == () else RpcCode.INIT_SERVER)


def _reply(packet: bytes) -> str:
    try:
        reply = decode_reply(packet, Dialect.V0_8_0)
        if isinstance(reply, RemoteException):
            return f"exception: {_text(reply.text)}"
        if isinstance(reply, CopyAck):
            return f"{len(reply.data)} bytes"
        if isinstance(reply, Question):
            return f"question of {len(reply.data)} bytes"
        return f"returned {_result(reply.values)}"
    except MalformedError as error:
        return f"malformed: {error}"


def _result(values: Sequence[object]) -> str:
    """The result of a call comes after its type; the result of a system call has no type before it."""
    return _value(call_result(values)) if len(values) > 1 else _values(values)  # type: ignore[arg-type]


def _name(code: RpcCode) -> str:
    return code.name.lower().replace("_", " ")


def _values(values: Sequence[object]) -> str:
    return ", ".join(_value(value) for value in values)


def _value(value: object) -> str:
    match value:
        case None:
            return "null"
        case bytes() | memoryview():
            return _bytes(bytes(value))
        case str():
            return f'"{_text(value)}"'
        case Handle(number):
            return f"{number:#x}"
        case Module(handle):
            return f"module {handle:#x}"
        case Function(handle):
            return f"function {handle:#x}"
        case ReturnedArray(tensor, _):
            return _value(tensor)
        case DLTensor():
            return f"{value.dtype}{list(value.shape)} at {value.data + value.byte_offset:#x}"
    return str(value)


def _bytes(data: bytes) -> str:
    shown = data[:_BYTES_SHOWN].hex(" ")
    return f"{len(data)} bytes: {shown}{' ...' if len(data) > _BYTES_SHOWN else ''}"


def _text(text: str) -> str:
    return text if len(text) <= _TEXT_SHOWN else f"{text[:_TEXT_SHOWN]}..."
