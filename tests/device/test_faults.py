# SPDX-License-Identifier: Apache-2.0
"""Input that stops TVM's own device runtime passes a port's link without harm: after each fault the device
serves. `tests/runtime/test_faults.py` has each fault, byte by byte, with the runtime alone."""

import struct

import pytest
from minrpc import Device
from minrpc.host import Deadline, write_before
from minrpc.wire.framing import encode_frame
from minrpc.wire.replies import RemoteException, Return, decode_reply
from minrpc.wire.requests import CallFunc, RpcCode, encode_request
from minrpc.wire.session_layer import MessageType, encode_message
from minrpc.wire.values import Dialect, Function, TypeCode

TIMEOUT_S = 60.0


def send(device: Device, data: bytes) -> None:
    """Send these bytes unchanged."""
    link = device.rpc.link
    write_before(link.transport, data, Deadline("write", TIMEOUT_S, link.owner.clock))


def handle(device: Device, name: str) -> int:
    """The handle of a function of the system library."""
    function = device.system_lib()[name].argument
    assert isinstance(function, Function)
    return function.handle


def call(device: Device, name: str = "inc", number: int = 41) -> bytes:
    """The packet of a call."""
    return encode_request(CallFunc(handle(device, name), (number,)), Dialect.V0_8_0)


def frame(device: Device, packet: bytes, session: int = 0) -> bytes:
    """The frame of a packet in this session, or with an id that differs from the session's by these bits."""
    identity = device.rpc.link._session.session_id ^ session
    return encode_frame(encode_message(identity, MessageType.NORMAL, packet))


def packet(code: int, body: bytes = b"") -> bytes:
    """An RPC packet with any code and body."""
    return struct.pack("<Qi", 4 + len(body), code) + body


def refused(device: Device, packet: bytes) -> str:
    """The text of the exception that answers the packet; then the device serves."""
    reply = decode_reply(device.rpc.link.request(packet, "fault", TIMEOUT_S), Dialect.V0_8_0)
    assert isinstance(reply, RemoteException), reply
    assert reply.text
    assert serves(device)
    return reply.text


def serves(device: Device) -> bool:
    """True if a good request gets the right answer."""
    return bool(device.system_lib()["inc"](41) == 42)


def test_damage_noise_and_what_is_for_another_session_get_no_answer(device: Device) -> None:
    request = call(device)
    good = frame(device, request)
    # A damaged byte ff would begin an escape, and the next frame's first byte would end it.
    flipped = good[-1] ^ (0x01 if good[-1] != 0xFE else 0x02)
    for data in (
        good[:-1] + bytes([flipped]),
        b"\r\nlogin: \x00\x01\x02\x80\xfd\xfe" * 20 + b"\xfe",
        encode_frame(encode_message(0, MessageType.LOG, b"hello")),
        frame(device, request, 0x0100) + frame(device, request, 0x0001),
    ):
        send(device, data)
        assert serves(device)


def test_frame_cut_short_is_forgotten(device: Device) -> None:
    good = frame(device, call(device))
    for end in (1, 2, 5, 9, 20, len(good) - 1):
        # A restarted sender begins with fe, since its last message may have been cut inside an escape.
        send(device, good[:end])
        send(device, b"\xfe")
        assert serves(device)


@pytest.mark.once
def test_2200_session_starts_without_a_call(device: Device) -> None:
    for _ in range(2200):
        device.rpc.link.start(TIMEOUT_S)
    device.reset()
    assert serves(device)


def test_message_over_the_buffer_is_answered_with_an_exception(device: Device) -> None:
    size = device.info().max_packet
    assert str(size) in refused(device, packet(RpcCode.CALL_FUNC, bytes(size)))


@pytest.mark.parametrize("length", [0x10000, 0x7F7F7F7F, 0xFEFEFEFE])
def test_nonsense_length_is_skipped_and_logged(device: Device, length: int) -> None:
    size = device.info().max_packet
    send(device, b"\xff\xfd" + struct.pack("<I", length) + b" " * 100)
    assert serves(device)
    said = (device.console_text or "").splitlines()
    assert any(str(length) in line and str(size) in line for line in said), said


def test_codes_lengths_and_handles_that_are_none_are_exceptions(device: Device) -> None:
    inc = handle(device, "inc")
    for code in (0, 4, 22, -1):
        assert str(code % 2**32) in refused(device, packet(code))
    for code in (13, 99, -1):
        body = struct.pack("<QIiQ", inc, 1, code, 1)
        assert str(code % 2**32) in refused(device, packet(RpcCode.CALL_FUNC, body))
    for size in (0, 12):
        refused(device, packet(RpcCode.CALL_FUNC, b"\xee" * size))
    for said in (5, 0xFFFFFFFF, 2**64 - 1):
        refused(device, struct.pack("<Qi", said, RpcCode.CALL_FUNC) + bytes(12))
    for number in (0, 0x80008100, 2**64 - 1):
        refused(device, encode_request(CallFunc(number, ()), Dialect.V0_8_0))


@pytest.mark.parametrize("count", [2, 0x3FFFFFFF, 0x40000000, 2**32 - 1])
def test_counts_of_the_wire_are_checked(device: Device, count: int) -> None:
    inc = handle(device, "inc")
    arguments = struct.pack("<QIiQ", inc, count, TypeCode.INT, 1)
    dimensions = struct.pack("<QIiQQIIQ", inc, 1, TypeCode.TENSOR, 0, 1, count, 0x00010800, 1)
    text = struct.pack("<QIiQ", inc, 1, TypeCode.STRING, count) + b"x"
    for body in (arguments, dimensions, text):
        refused(device, packet(RpcCode.CALL_FUNC, body))


def test_bytes_that_come_during_a_measurement_do_not_end_it(device: Device) -> None:
    """They wait while the device looks through them for a new session: more than a pty gives at once."""
    create = device.get_function("runtime.RPCTimeEvaluator")
    timed = create(device.system_lib(), "spin", 1, 0, 5, 1, 50, "")
    good = call(device)
    request = encode_request(CallFunc(timed.argument.handle, (1000,)), Dialect.V0_8_0)
    send(device, frame(device, request) + bytes(6_000))
    # The first answer is the measurement's.
    reply = decode_reply(device.rpc.link.request(good, "the measurement", TIMEOUT_S), Dialect.V0_8_0)
    assert isinstance(reply, Return), reply
    times = reply.values[1]
    assert isinstance(times, bytes)
    assert len(times) == 8
    device.rpc.restart()
    assert serves(device)
