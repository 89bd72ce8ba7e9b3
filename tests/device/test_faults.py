# SPDX-License-Identifier: Apache-2.0
"""Input that stops TVM's own device runtime must not stop this runtime: after each fault a good request is
answered."""

import re
import struct

import pytest
from minrpc import RunningDevice
from minrpc.wire.dtypes import DataType
from minrpc.wire.replies import Return
from minrpc.wire.requests import (
    CallFunc,
    CopyFromRemote,
    CopyToRemote,
    RpcCode,
    Shutdown,
    Syscall,
    alloc_data,
    encode_request,
    free_data,
    free_handle,
)
from minrpc.wire.session import MessageType
from minrpc.wire.values import Dialect, DLTensor, Handle, Module, TypeCode

from tests.device.raw_link import RawLink, text_of

INT8 = DataType(TypeCode.INT, 8, 1)


@pytest.fixture
def link(running_device: RunningDevice) -> RawLink:
    """A session for this test alone."""
    return RawLink(running_device)


def packet(code: int, body: bytes = b"") -> bytes:
    """An RPC packet with any code and body."""
    return struct.pack("<Qi", 4 + len(body), code) + body


def good(link: RawLink) -> bytes:
    """The frame of a request that a device would answer if it accepted it."""
    return link.frame(encode_request(CallFunc(link.global_function("runtime.SystemLib"), ()), Dialect.V0_8_0))


def test_wrong_crc_is_dropped(link: RawLink) -> None:
    frame = good(link)
    link.send(frame[:-1] + bytes([frame[-1] ^ 0x01]))
    assert link.still_serves()


def test_frame_cut_short_is_forgotten(link: RawLink) -> None:
    frame = good(link)
    for end in (1, 2, 5, 9, 20, len(frame) - 1):
        link.send(frame[:end])
        # A restarted sender begins in this way, since its last message may have been cut inside an escape.
        link.send(b"\xfe")
        assert link.still_serves()


def test_noise_is_skipped(link: RawLink) -> None:
    link.send(b"\r\nlogin: \x00\x01\x02\x80\xfd\xfe" * 20 + b"\xfe")
    assert link.still_serves()


def test_log_from_the_client_is_ignored(link: RawLink) -> None:
    link.send_message(MessageType.LOG, b"hello", session_id=0)
    link.send_message(MessageType.LOG, b"", session_id=0)
    assert link.still_serves()


def test_foreign_session_ids_are_ignored(link: RawLink) -> None:
    body = encode_request(CallFunc(link.global_function("runtime.SystemLib"), ()), Dialect.V0_8_0)
    for foreign in (0, link.session_id ^ 0x0100, link.session_id ^ 0x0001):
        link.send_message(MessageType.NORMAL, body, session_id=foreign)
    assert link.still_serves()


@pytest.mark.once
def test_2200_session_starts_without_a_call(link: RawLink) -> None:
    for _ in range(2200):
        link.open()
    assert link.still_serves()


def test_message_over_the_buffer_is_answered_with_an_exception(link: RawLink) -> None:
    size = link.receive_size()
    reply = link.exchange(packet(RpcCode.CALL_FUNC, bytes(size)))
    assert str(size) in text_of(reply)
    assert link.still_serves()


@pytest.mark.parametrize("length", [0x10000, 0x7F7F7F7F, 0xFEFEFEFE])
def test_nonsense_length_is_skipped_and_logged(link: RawLink, length: int) -> None:
    link.send(b"\xff\xfd" + struct.pack("<I", length) + b" " * 100)
    assert link.still_serves()
    assert any(str(length) in line and str(link.receive_size()) in line for line in link.logs), link.logs


@pytest.mark.parametrize("code", [0, 4, 5, 8, 22, -1])
def test_unknown_rpc_code_is_an_exception(link: RawLink, code: int) -> None:
    assert str(code % 2**32) in text_of(link.exchange(packet(code)))
    assert link.still_serves()


@pytest.mark.parametrize("code", [13, 14, 16, 99, -1])
def test_unknown_type_code_is_an_exception(link: RawLink, code: int) -> None:
    inc = link.library_function("inc")
    reply = link.exchange(packet(RpcCode.CALL_FUNC, struct.pack("<QIiQ", inc, 1, code, 1)))
    assert str(code % 2**32) in text_of(reply)
    assert link.still_serves()


@pytest.mark.parametrize(
    "code", [code for code in RpcCode if code.name != "SHUTDOWN"], ids=lambda code: code.name
)
def test_short_body_is_an_exception(link: RawLink, code: RpcCode) -> None:
    for size in (0, 1, 7, 12):
        assert text_of(link.exchange(packet(code, b"\xee" * size)))
    assert link.still_serves()


@pytest.mark.parametrize("said", [5, 0xFFFF, 0xFFFFFFFF, 2**64 - 1])
def test_packet_length_that_lies_is_an_exception(link: RawLink, said: int) -> None:
    assert text_of(link.exchange(struct.pack("<Qi", said, RpcCode.CALL_FUNC) + bytes(12)))
    assert link.still_serves()


def test_allocation_over_the_arena_says_what_was_asked_and_what_is_free(link: RawLink) -> None:
    asked = 1 << 30
    text = link.exception(alloc_data(asked, INT8))
    assert re.search(rf"memory.*{asked}\b.*\d+ of \d+", text), text
    assert link.still_serves()


def test_copy_where_nobody_allocated_is_an_exception(link: RawLink) -> None:
    live = link.values(alloc_data(64, INT8))[0]
    assert isinstance(live, Handle)
    for address, offset, size in (
        (0, 0, 4),
        (0x10, 0, 4),
        (2**64 - 8, 0, 4),
        (live.value + 16, 0, 4),
        (live.value, 61, 4),
        (live.value, 2**64 - 2, 4),
        (live.value, 2**32, 4),
    ):
        tensor = DLTensor(address, INT8, (size,), offset)
        assert link.exception(CopyFromRemote(tensor, size))
        assert link.exception(CopyToRemote(tensor, bytes(size)))
    assert link.values(free_data(live.value)) == [None]
    assert link.exception(free_data(live.value))
    assert link.still_serves()


@pytest.mark.parametrize("count", [2, 1000, 0x3FFFFFFF, 0x40000000, 2**32 - 1])
def test_counts_of_the_wire_are_checked(link: RawLink, count: int) -> None:
    inc = link.library_function("inc")
    arguments = struct.pack("<QIiQ", inc, count, TypeCode.INT, 1)
    dimensions = struct.pack("<QIiQQIIQ", inc, 1, TypeCode.TENSOR, 0, 1, count, 0x00010800, 1)
    text = struct.pack("<QIiQ", inc, 1, TypeCode.STRING, count) + b"x"
    for body in (arguments, dimensions, text):
        assert text_of(link.exchange(packet(RpcCode.CALL_FUNC, body)))
    assert link.still_serves()


def evaluator(link: RawLink, name: str, least_ms: int = 0) -> int:
    """The handle of a time evaluator with one result."""
    create = link.global_function("runtime.RPCTimeEvaluator")
    made = link.call(create, Module(0x8000), name, 1, 0, 5, 1, least_ms, "")
    assert isinstance(made, Handle)
    return made.value


def test_timed_function_that_fails_leaves_the_timer_free(link: RawLink) -> None:
    timed = evaluator(link, "inc")
    assert "inc" in link.exception(CallFunc(timed, ("no number",)))
    result = link.call(timed, 1)
    assert isinstance(result, bytes)
    assert len(result) == 8


def test_bytes_that_come_during_a_measurement_do_not_end_it(link: RawLink) -> None:
    """They wait while the device looks through them for a new session: more than a pty gives at once."""
    timed = evaluator(link, "spin", least_ms=50)
    request = link.frame(encode_request(CallFunc(timed, (1000,)), Dialect.V0_8_0))
    link.send(request + bytes(6_000))
    (result,) = link.values(CallFunc(timed, (1,)))[1:]
    assert isinstance(result, bytes)
    assert len(result) == 8
    link.open()
    assert link.still_serves()


def test_freeing_the_system_library_leaves_it(link: RawLink) -> None:
    module = link.call(link.global_function("runtime.SystemLib"))
    assert isinstance(module, Handle)
    assert link.values(free_handle(module.value, TypeCode.MODULE)) == [None]
    assert link.still_serves()


def test_after_a_shutdown_the_next_session_is_served(link: RawLink) -> None:
    link.send(link.frame(encode_request(Shutdown(), Dialect.V0_8_0)))
    link.open()
    assert link.still_serves()


def test_evaluator_after_evaluator_both_work(link: RawLink) -> None:
    first, second = evaluator(link, "inc"), evaluator(link, "inc")
    assert first != second
    for timed in (first, second, first):
        result = link.call(timed, 1)
        assert isinstance(result, bytes)
        assert len(result) == 8


def test_handles_that_nobody_gave_out_are_exceptions(link: RawLink) -> None:
    for handle in (0, 1, 0x7FFF, 0x80008100, 0xC0001234, 0x180008000, 2**64 - 1):
        assert link.exception(CallFunc(handle, ()))
    reply = link.request(Syscall(RpcCode.FREE_HANDLE, (Handle(0x1234), int(TypeCode.NDARRAY))))
    assert not isinstance(reply, Return)
    assert link.still_serves()
