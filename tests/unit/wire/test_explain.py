# SPDX-License-Identifier: Apache-2.0
"""Explanations of messages for people."""

import pytest
from minrpc.wire.dtypes import to_dtype
from minrpc.wire.explain import FROM_DEVICE, TO_DEVICE, explain
from minrpc.wire.framing import encode_frame
from minrpc.wire.replies import encode_call_result, encode_copy_ack, encode_exception, encode_return
from minrpc.wire.requests import (
    CallFunc,
    CopyFromRemote,
    CopyToRemote,
    InitServer,
    Request,
    Shutdown,
    encode_request,
    get_global_func,
)
from minrpc.wire.session_layer import MessageType, encode_message
from minrpc.wire.values import Dialect, DLTensor, Handle, Module

TENSOR = DLTensor(0x2000, to_dtype("int8"), (2, 3))


def sent(kind: MessageType, body: bytes, mark: str) -> list[str]:
    """The explanation of a message."""
    return explain([(mark, encode_frame(encode_message(0x2183, kind, body)))])


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (
            CallFunc(0x80008000, (TENSOR, 3, "hi", None)),
            'call 0x80008000(int8[2, 3] at 0x2000, 3, "hi", null)',
        ),
        (CallFunc(0x10, (b"\x01\x02", Module(0x8000), 0.5)), "call 0x10(2 bytes: 01 02, module 0x8000, 0.5)"),
        (CopyFromRemote(TENSOR, 6), "copy 6 bytes from int8[2, 3] at 0x2000"),
        (CopyToRemote(TENSOR, b"abcdef"), "copy 6 bytes to int8[2, 3] at 0x2000"),
        (get_global_func("minrpc.device_info"), 'get global func("minrpc.device_info")'),
        (Shutdown(), "shutdown"),
        (InitServer("0.8.0"), "init server"),
    ],
)
def test_requests(request_: Request, text: str) -> None:
    packet = encode_request(request_, Dialect.V0_8_0)
    assert sent(MessageType.NORMAL, packet, TO_DEVICE) == [f"> {text}"]


def test_a_request_that_is_none() -> None:
    (told,) = sent(MessageType.NORMAL, b"\x01\x02", TO_DEVICE)
    assert told == "> malformed: a packet of 2 bytes holds no code"


@pytest.mark.parametrize(
    ("packet", "text"),
    [
        (encode_call_result(None, Dialect.V0_8_0), "returned null"),
        (encode_call_result(41, Dialect.V0_8_0), "returned 41"),
        (encode_call_result(bytes(20), Dialect.V0_8_0), f"returned 20 bytes: {'00 ' * 16}..."),
        (encode_return([Handle(0x2000)], Dialect.V0_8_0), "returned 0x2000"),
        (encode_copy_ack(bytes(1000)), "1000 bytes"),
        (encode_exception("add: expected 3 arguments, got 2"), "exception: add: expected 3 arguments, got 2"),
        (b"\x01\x02", "malformed: a reply of 2 bytes holds no code"),
    ],
)
def test_replies(packet: bytes, text: str) -> None:
    assert sent(MessageType.NORMAL, packet, FROM_DEVICE) == [f"< {text}"]


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        (MessageType.START_INIT, b"\x01", "start of a session, nonce 83"),
        (MessageType.START_REPLY, b"\x01", "session 2183 is established"),
        (MessageType.TERMINATE, b"", "end of the session"),
        (MessageType.LOG, b"hi", "log: hi"),
        (MessageType.PROBE, b"\x07", "probe 07"),
    ],
)
def test_sessions(kind: MessageType, body: bytes, text: str) -> None:
    assert sent(kind, body, FROM_DEVICE) == [f"< {text}"]


def test_numbered_and_checked_messages_show_their_packets() -> None:
    packet = encode_request(get_global_func("f"), Dialect.V0_8_0)
    assert sent(MessageType.NUMBERED, b"\x05" + packet + bytes(4), TO_DEVICE) == [
        '> number 5: get global func("f")'
    ]
    assert sent(MessageType.CHECKED, bytes(4) + packet, TO_DEVICE) == ['> get global func("f")']


def test_directions_are_read_apart_and_in_order() -> None:
    ours = encode_frame(encode_message(1, MessageType.START_INIT, b"\x01"))
    theirs = encode_frame(encode_message(0x101, MessageType.START_REPLY, b"\x01"))
    chunks = [("<", b"booting\r\n"), (">", ours[:5]), ("<", theirs[:4]), (">", ours[5:]), ("<", theirs[4:])]
    assert explain(chunks) == [
        "< between frames: 9 bytes: 62 6f 6f 74 69 6e 67 0d 0a",
        "> start of a session, nonce 01",
        "< session 0101 is established",
    ]


def test_damage_is_named() -> None:
    frame = bytearray(encode_frame(encode_message(1, MessageType.LOG, b"hello")))
    frame[10] ^= 1
    (line,) = explain([("<", bytes(frame))])
    assert line.startswith("< damaged: CRC of a frame of 8 bytes is")
