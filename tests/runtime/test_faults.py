# SPDX-License-Identifier: Apache-2.0
"""Input that stops TVM's own device runtime must not stop ours: after each it answers a good request."""

from __future__ import annotations

from struct import pack

import pytest
from minrpc.wire.framing import START, encode_frame
from minrpc.wire.replies import RemoteException, decode_reply
from minrpc.wire.requests import (
    CallFunc,
    CopyFromRemote,
    CopyToRemote,
    RpcCode,
    Shutdown,
    alloc_data,
    free_data,
)
from minrpc.wire.session_layer import MessageType
from minrpc.wire.values import CPU, Dialect, TypeCode

from tests.runtime.host import (
    I8,
    SYSTEM_LIB,
    V7,
    V8,
    Host,
    flipped,
    message,
    numbered,
    packet,
    tensor,
)

U32_MAX, U64_MAX = (1 << 32) - 1, (1 << 64) - 1
LOG = message(0, MessageType.LOG, b"x")


def calling(host: Host, session: int | None = None) -> bytes:
    """The frame of a call of tick."""
    tick = host.function("tick")
    return message(
        host.session if session is None else session, MessageType.NORMAL, packet(CallFunc(tick, ()))
    )


def ignores(host: Host, wire: bytes) -> bool:
    """True if the bytes get no answer, and do no harm."""
    host.give(wire)
    host.silent()
    return host.serves()


def refuses(host: Host, wire: bytes) -> bool:
    """True if the bytes are answered by an exception, before anything else."""
    host.give(wire)
    return isinstance(decode_reply(host.take().body, V8), RemoteException) and host.serves()


def test_a_wrong_crc_is_dropped_and_not_carried_out(host: Host) -> None:
    assert ignores(host, flipped(calling(host), -1))
    assert host.functions.calls == 0
    assert host.count("MINRPC_CRC_ERRORS") == 1


def test_a_corrupt_session_start_changes_nothing(host: Host) -> None:
    start, end = message(0x44, MessageType.START_INIT, b"\1"), message(0, MessageType.TERMINATE)
    assert ignores(host, flipped(start, -1) + flipped(end, -1))


def test_a_frame_cut_anywhere_costs_only_itself(host: Host) -> None:
    """Cut after each of its bytes, a frame is forgotten when the next begins. A byte ff at the cut waits for
    its second: a restarted writer sends fe first."""
    frame = calling(host)
    for cut in range(len(frame)):
        host.give(frame[:cut])
        host.give(b"\xfe")
        assert host.serves()
    assert host.functions.calls == 0


def test_a_log_from_the_client_is_ignored(host: Host) -> None:
    logs = [(0, b"hello"), (host.session, b"hello"), (0, b"")]
    assert ignores(host, b"".join(message(session, MessageType.LOG, text) for session, text in logs))


def test_foreign_session_ids_are_ignored(host: Host) -> None:
    sessions = [host.session + 1, 0, host.session & 0xFF]
    assert ignores(host, b"".join(calling(host, session) for session in sessions))
    assert host.functions.calls == 0
    assert host.count("MINRPC_STALE_MESSAGES") == 3


def test_a_request_of_the_last_session_is_not_answered(host: Host) -> None:
    old = host.session
    host.open(0x23)
    assert host.session != old
    assert ignores(host, calling(host, old))


def test_a_thousand_session_starts_without_a_call(host: Host) -> None:
    for i in range(1000):
        host.open(1 + i % 255)
    assert host.serves()
    assert host.arena.used == 0


def test_a_length_over_the_buffer_is_skipped_and_answered(host: Host) -> None:
    text = host.error(pack("<IQ", RpcCode.CALL_FUNC, 0) + (bytes(range(256)) * 79)[:20000])
    assert "20023 bytes" in text
    assert "8192" in text
    assert host.count("MINRPC_OVERSIZE_FRAMES") == 1
    assert host.serves()


@pytest.mark.parametrize("length", [8193, 0x10000, 0x7F7F7F7F, 0x80000000, 0xFEFEFEFE])
def test_a_nonsense_length_is_skipped_and_said_in_the_log(host: Host, length: int) -> None:
    wire = START + pack("<I", length) + b"\x20" * (494 if length == 8193 else 10000)
    host.give(wire + LOG)
    host.take_log("8192")
    host.silent()
    assert host.serves()


@pytest.mark.parametrize(
    "kind",
    [
        MessageType.START_INIT,
        MessageType.TERMINATE,
        MessageType.START_REPLY,
        MessageType.NORMAL,
        MessageType.NUMBERED,
        MessageType.PROBE,
    ],
)
def test_an_oversize_session_start_without_a_good_crc_changes_nothing(host: Host, kind: int) -> None:
    """Bytes like a session start at the front of a frame that never ends well must not end the session."""
    host.give(flipped(message(host.session, kind, b"\1" * 9000), -1))
    host.take_log("9003 bytes")
    host.silent()
    assert host.serves()


def test_an_oversize_frame_is_told_once(host: Host) -> None:
    cut = START + b"\1" + LOG  # before its length is known
    assert "9015 bytes" in host.error(pack("<I", RpcCode.CALL_FUNC) + b"\1" * 9000)
    assert ignores(host, cut)
    # The same holds for a frame after a damaged frame that was too long, and was reported.
    host.give(flipped(message(host.session, MessageType.NORMAL, b"\1" * 9000), -1))
    host.take_log("skipped 9003 bytes")
    assert ignores(host, cut)


@pytest.mark.parametrize("code", [0, 4, 5, 8, 22, 23, 255, 0x80000003, U32_MAX])
def test_unknown_rpc_codes_are_exceptions(host: Host, code: int) -> None:
    assert str(code) in host.error(pack("<I", code))
    assert host.serves()


@pytest.mark.parametrize("code", [13, 14, 16, 99, 0x80000000, U32_MAX])
def test_unknown_type_codes_are_exceptions(host: Host, code: int) -> None:
    assert str(code) in host.error(pack("<IQIIQ", RpcCode.CALL_FUNC, host.function("inc"), 1, code, 1))
    assert host.serves()


@pytest.mark.parametrize("code", range(RpcCode.INIT_SERVER, RpcCode.DEV_GET_CURRENT_STREAM + 1))
def test_every_short_body_is_an_exception(host: Host, code: int) -> None:
    for size in range(24):
        host.error(pack("<I", code) + b"\xee" * size)
    assert host.serves()


@pytest.mark.parametrize("length", [15, 17, U32_MAX, 0x100000010, U64_MAX])
def test_a_packet_length_that_lies_is_an_exception(host: Host, length: int) -> None:
    body = pack("<QIQI", length, RpcCode.CALL_FUNC, 0x80008000, 0)
    assert refuses(host, message(host.session, MessageType.NORMAL, body))


def test_messages_too_short_for_a_packet(host: Host) -> None:
    for size in range(8):
        assert refuses(host, message(host.session, MessageType.NORMAL, bytes(size)))
    assert ignores(host, message(host.session, MessageType.NORMAL, bytes(8)))
    for size in range(3):
        assert ignores(host, encode_frame(bytes(size)))


def test_an_allocation_over_the_arena_says_what_was_asked_and_what_is_free(host: Host) -> None:
    # An earlier error, whose text must not come back.
    assert "0x7000" in host.fails(0x7000)
    for size, asked in [
        (1 << 30, "asked for 1073741824 bytes, largest free 65512"),
        (65513, "asked for 65513 bytes"),
        (-1, "asked for 4294967295 bytes"),
        (1 << 40, "asked for"),
    ]:
        text = host.error(alloc_data(size, I8))
        assert asked in text
        assert "of 65536" in text
        assert "enlarge the arena" in text
    assert host.serves()
    host.free(host.alloc(60000))


@pytest.mark.parametrize("dialect", [V7, V8])
def test_copies_outside_of_what_was_allocated_are_exceptions(host: Host, dialect: Dialect) -> None:
    data = host.alloc(100)
    for address, offset, size in [
        *[(address, 0, 1) for address in (0, 1, U64_MAX, data - 16, data + (1 << 32))],
        *[(address, 0, 8) for address in (host.is_.address, host.config.receive_buffer)],
        *[(data + 16, 0, 16), (data, 0, 101), (data, 100, 1), (data, 99, 2), (data, 101, 1)],
        *[(data, U64_MAX, 1), (data, U64_MAX, 2), (data, 1 << 32, 1), (data, (1 << 32) - 1, 2)],
    ]:
        place = tensor(address, size, offset)
        host.error(CopyFromRemote(place, size), dialect)
        host.error(CopyToRemote(place, b"\x77" * size), dialect)
        assert host.serves()
    host.free(data)


def test_a_copy_to_freed_memory_is_an_exception(host: Host) -> None:
    place = tensor(host.alloc(100), 100)
    host.free(place.data)
    assert "0x" in host.error(CopyToRemote(place, bytes(100)))
    assert "0x" in host.error(CopyFromRemote(place, 100))
    assert "0x" in host.error(free_data(place.data))
    assert host.serves()


@pytest.mark.parametrize(
    "count",
    # 2^29 times 8 bytes are 2^32.
    [2, 3, 1000, 0x1FFFFFFF, 0x20000000, 0x20000001, 0x3FFFFFFF, 0x40000000, 0x80000000, U32_MAX],
)
def test_counts_of_the_wire_are_checked_before_they_are_used(host: Host, count: int) -> None:
    call = pack("<IQ", RpcCode.CALL_FUNC, host.function("inc"))
    # The count says several arguments, but there is one argument.
    host.error(call + pack("<IIQ", count, TypeCode.INT, 1))
    # A tensor with this number of dimensions.
    several = pack("<QIIIIQ", 0, *CPU, count, 0x00010800, 1)
    assert "malformed arguments" in host.error(call + pack("<II", 1, TypeCode.TENSOR) + several)
    # A string with this number of bytes.
    for size in (count, count + (U32_MAX << 32)):
        host.error(call + pack("<IIQ", 1, TypeCode.STRING, size) + b"x")
    assert host.serves()


@pytest.mark.parametrize("kind", [TypeCode.MODULE, TypeCode.OBJECT])
def test_freeing_the_system_library_leaves_it(host: Host, kind: int) -> None:
    host.free_handle(SYSTEM_LIB.handle, kind)
    assert host.serves()


def test_after_a_shutdown_the_next_session_is_served(host: Host) -> None:
    host.send(Shutdown())
    host.silent()
    host.open(0x31)
    assert host.serves()


def test_a_shutdown_ends_the_session(host: Host) -> None:
    """The dead session sends nothing more: neither for a damaged frame nor for a numbered message."""
    host.alloc(100)
    host.give(encode_frame(numbered(host.session, 1, packet(Shutdown()))))
    host.silent()
    assert host.blocks() == 0
    host.give(flipped(message(host.session, MessageType.NORMAL, bytes(8)), -1))
    host.silent()
    host.open(0x31)
    assert host.serves()
