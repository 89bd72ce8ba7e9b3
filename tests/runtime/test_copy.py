# SPDX-License-Identifier: Apache-2.0
"""Memory: allocation, copies in both dialects and longer than the receive buffer, tensors as arguments."""

from __future__ import annotations

from struct import pack
from zlib import crc32

import pytest
from minrpc.wire.dtypes import DataType
from minrpc.wire.replies import CopyAck, Return, decode_reply
from minrpc.wire.requests import (
    CallFunc,
    CopyFromRemote,
    CopyToRemote,
    RpcCode,
    Syscall,
    alloc_data,
    alloc_data_with_scope,
    free_data,
)
from minrpc.wire.session_layer import MessageType
from minrpc.wire.values import CPU, Dialect, DLTensor, Handle

from tests.runtime.host import F32, I8, V7, V8, Host, flipped, message, packet, tensor

U64_MAX = (1 << 64) - 1
FRONT = 6 + 3 + 4 + 12 + 48
both_dialects = pytest.mark.parametrize("dialect", [V7, V8])


def filled(size: int) -> bytes:
    return bytes((i * 7 + i // 251) & 0xFF for i in range(size))


def give_in_pieces(host: Host, wire: bytes, size: int) -> None:
    for at in range(0, len(wire), size):
        host.give(wire[at : at + size])


def normal(host: Host, request: CopyToRemote, dialect: Dialect = V8) -> bytes:
    """The frame of a copy."""
    return message(host.session, MessageType.NORMAL, packet(request, dialect))


def with_damaged_end(frame: bytes) -> bytes:
    """The frame after a flip in the last byte that is not part of an escape, before or after the flip."""
    escape = 0xFF
    at = len(frame) - 1
    while escape in (frame[at], frame[at] ^ 4, frame[at - 1]):
        at -= 1
    return flipped(frame, at, 2)


def checked(host: Host, request: CopyToRemote) -> bytes:
    """The frame of a checked message: the CRC-32 of the packet up to its data, the packet."""
    whole = packet(request)
    front = whole[: len(whole) - len(request.data)]
    return message(host.session, MessageType.CHECKED, pack("<I", crc32(front)) + whole)


def among(source: int, source_at: int, target: int, target_at: int, size: int) -> Syscall:
    """A copy on the device in v0.7's form: addresses and offsets."""
    numbers = [number - (1 << 64) if number >> 63 else number for number in (source_at, target_at, size)]
    places = (Handle(source), numbers[0], Handle(target), numbers[1], numbers[2])
    return Syscall(RpcCode.COPY_AMONG_REMOTE, (*places, CPU, CPU, I8, Handle(0)))


def among_tensors(source: DLTensor, target: DLTensor) -> Syscall:
    """The same in v0.8's form."""
    return Syscall(RpcCode.COPY_AMONG_REMOTE, (source, target, None))


@both_dialects
@pytest.mark.parametrize("size", [0, 1, 7, *range(8140, 8147), 8160, 8191, 8192, 8193, 16384, 60000])
def test_copies_of_every_size_arrive_in_both_dialects(host: Host, size: int, dialect: Dialect) -> None:
    """Sizes around the receive buffer of 8192, and sizes of every kind above it."""
    place, data = tensor(host.alloc(size), size), filled(size)
    assert host.result(CopyToRemote(place, data), dialect) is None
    assert host.result(CopyFromRemote(place, size), dialect) == data
    assert host.serves()


@pytest.mark.parametrize("piece", [1, 2, 3, 63, 1000, 8191])
def test_a_streamed_copy_in_any_chunking(host: Host, piece: int) -> None:
    place, data = tensor(host.alloc(9000), 9000), filled(9000)
    give_in_pieces(host, normal(host, CopyToRemote(place, data)), piece)
    host.take()
    assert host.result(CopyFromRemote(place, 9000)) == data


@both_dialects
def test_a_streamed_copy_that_does_not_fit_writes_nothing(host: Host, dialect: Dialect) -> None:
    small, beside = host.alloc(10000), host.alloc(10000)
    zeros, data = bytes(10000), filled(10001)
    host.write(small, zeros)
    host.write(beside, zeros)
    # Only in a session of v0.7 the destination of the copy is looked up, and the reason for the refusal told.
    assert "skipped" in host.error(CopyToRemote(tensor(small, 10001), data), dialect)
    host.server.dialect = host.door.constant("MINRPC_DIALECT_0_7")
    text = host.error(CopyToRemote(tensor(small, 10001), data), V7)
    assert "10001 bytes at 0 in an allocation of 10000" in text
    assert "no live tensor" in host.error(CopyToRemote(tensor(small + 16, 10001), data), V7)
    assert host.read(small, 10000) == host.read(beside, 10000) == zeros


def test_a_streamed_copy_with_a_wrong_crc_is_not_answered(host: Host) -> None:
    copy = CopyToRemote(tensor(host.alloc(20000), 20000), filled(20000))
    host.give(with_damaged_end(normal(host, copy)))
    host.take_log("damaged copy of 20063 bytes")
    host.silent()
    assert host.serves()


@both_dialects
@pytest.mark.parametrize("known", ["MINRPC_DIALECT_UNKNOWN", "MINRPC_DIALECT_0_8"])
def test_a_long_copy_to_a_damaged_address_writes_nothing(host: Host, known: str, dialect: Dialect) -> None:
    """The address in it is damaged and is another array's. Its CRC shows that, but comes last: in a session
    other than v0.7's nothing is written before."""
    host.alloc(20000)
    other, ones = host.alloc(20000), b"\1" * 20000
    host.write(other, ones)
    host.server.dialect = host.door.constant(known)
    copy = CopyToRemote(tensor(other, 20000), filled(20000))
    host.give(with_damaged_end(normal(host, copy, dialect)))
    host.take_log("skipped")
    host.silent()
    assert host.read(other, 20000) == ones


@pytest.mark.parametrize("piece", [1, 7, 63, 8192])
def test_a_checked_copy_in_any_chunking(host: Host, piece: int) -> None:
    place, data = tensor(host.alloc(19000), 19000, 10000), filled(9000)
    give_in_pieces(host, checked(host, CopyToRemote(place, data)), piece)
    assert isinstance(decode_reply(host.take().body, V8), Return)
    assert host.result(CopyFromRemote(place, 9000)) == data
    assert host.count("MINRPC_OVERSIZE_FRAMES") == 0
    assert host.serves()


def test_a_checked_copy_with_a_damaged_front_writes_nothing(host: Host) -> None:
    """Any byte of its destination may be damaged: nothing is written, here or elsewhere."""
    size = 16384
    zeros, data = bytes(size), filled(size)
    for at in range(6, FRONT):
        host.open()
        arrays = [host.alloc(size) for _ in range(3)]
        for array in arrays:
            host.door.write(array, zeros)
        copy = checked(host, CopyToRemote(tensor(arrays[1], size), data))
        host.give(flipped(copy, at, at % 8))
        host.messages().clear()
        host.give(b"\xfe")
        for array in arrays:
            assert host.door.read(array, size) == zeros


def test_pieces_by_byte_offset(host: Host) -> None:
    """Pieces in the form of TVM's clients of v0.8 and later: the whole's shape, the piece's offset."""
    place, data = tensor(host.alloc(4000), 1000, dtype=F32), filled(4000)
    for at in range(0, 4000, 700):
        piece = data[at : at + 700]
        assert host.result(CopyToRemote(place._replace(byte_offset=at), piece)) is None
    assert host.result(CopyFromRemote(place._replace(byte_offset=123), 3000)) == data[123:3123]


def test_a_copy_of_more_than_its_tensor_holds_is_malformed(host: Host) -> None:
    place = tensor(host.alloc(100), 10)
    assert isinstance(host.request(CopyFromRemote(place, 10)), CopyAck)
    host.error(CopyFromRemote(place, 11))


def test_copies_of_no_bytes_need_a_live_address_too(host: Host) -> None:
    place = tensor(host.alloc(0), 0)
    assert host.result(CopyFromRemote(place, 0)) == b""
    assert host.result(CopyToRemote(place, b"")) is None
    elsewhere = place._replace(data=place.data + 64)
    host.error(CopyFromRemote(elsewhere, 0))
    host.error(CopyToRemote(elsewhere, b""))


def test_copies_on_the_device(host: Host) -> None:
    source, target = host.alloc(8), host.alloc(8)
    host.write(source, b"abcdefgh")
    host.write(target, b"--------")
    assert host.result(among(source, 2, target, 1, 3)) is None
    assert host.read(target, 8) == b"-cde----"
    # Overlapping, and in v0.8's form.
    assert host.result(among_tensors(tensor(source, 4, 4), tensor(source, 4, 2))) is None
    assert host.read(source, 8) == b"abefghgh"


@pytest.mark.parametrize(("source", "target"), [(0, 1), (1, 0), (0, 7), (9, 0), (3, 3), (100, 50), (50, 100)])
def test_overlapping_copies_on_the_device(host: Host, source: int, target: int) -> None:
    """Overlaps by less than a word and by much, up and down: the same as with a copy through other memory."""
    data = host.alloc(600)
    content = bytearray(j * j & 0xFF for j in range(600))
    host.write(data, bytes(content))
    assert host.result(among(data, source, data, target, 500)) is None
    content[target : target + 500] = content[source : source + 500]
    assert host.read(data, 600) == content


def test_what_is_the_devices_own_is_no_memory_of_clients(host: Host) -> None:
    """An object, a result and the memory for replies are the device's own, though in the arena."""
    host.evaluator("tick")
    result = host.door.constant("MINRPC_ARENA_RESULT")
    for own in (
        host.server.objects,
        host.door.call("minrpc_arena_alloc", host.arena, 64, 1, result, result="P"),
    ):
        for request in (
            CopyFromRemote(tensor(own, 4), 4),
            CopyToRemote(tensor(own, 4), b"ZZZZ"),
            among(own, 0, own, 0, 4),
            free_data(own),
            CallFunc(host.function("tick"), (tensor(own, 4),)),
        ):
            assert "no live tensor" in host.error(request)
    assert host.functions.calls == 0


def test_copies_on_the_device_stay_inside(host: Host) -> None:
    source, target = host.alloc(8), host.alloc(16)
    for request in (
        among(source, 0, target, 0, 9),
        among(target, 0, source, 0, 9),
        among(source, 1, target, 0, 8),
        among(source, U64_MAX, target, 0, 2),
        among(source, 0, target, 1 << 32, 2),
        among(source, 0, target, 0, U64_MAX),
        among(source, 0, target, 0, (1 << 32) + 1),
        among(source + 8, 0, target, 0, 0),
        among_tensors(tensor(source, 8), tensor(target, 9)),
    ):
        host.error(request)
    assert host.serves()


def test_tensors_are_allocated_by_shape_and_dtype(host: Host) -> None:
    floats = DataType(2, 32, 4)
    data = host.handle_of(host.result(alloc_data_with_scope(DLTensor(0, floats, (3, 5)))))
    assert data % 64 == 0
    assert isinstance(host.request(CopyFromRemote(tensor(data, 240), 240)), CopyAck)
    host.error(CopyFromRemote(tensor(data, 241), 241))
    # A scalar; and bits that do not fill a byte.
    assert host.handle_of(host.result(alloc_data_with_scope(DLTensor(0, floats, ()))))
    assert host.handle_of(host.result(alloc_data_with_scope(tensor(0, 10, dtype=DataType(1, 1)))))


@pytest.mark.parametrize(
    "shape",
    [
        (65536, 65536, 1, 1),
        (65536, 65536, 65536, 65536),
        (-1, 1, 1, 1),
        (-(1 << 63), 1, 1, 1),
        ((1 << 63) - 1, 2, 1, 1),
        (2147483648, 1, 1, 1),
        (2147483647, 2147483647, 4, 1),
        (1 << 32, 1 << 32, 1, 1),
        (0, -1, 1, 1),
    ],
)
def test_shapes_that_overflow_are_exceptions(host: Host, shape: tuple[int, ...]) -> None:
    place = DLTensor(host.alloc(64), I8, shape)
    host.error(alloc_data_with_scope(place._replace(data=0)))
    host.error(CopyFromRemote(place, 4))
    host.fails(host.function("tick"), place)
    assert host.functions.calls == 0
    assert host.serves()


def test_dtypes_of_no_size_are_exceptions(host: Host) -> None:
    """Any number of elements without size fits anywhere."""
    tick = host.function("tick")
    place = tensor(0x1234, 1000000, dtype=DataType(0, 0))
    assert "dtype" in host.error(alloc_data_with_scope(place))
    assert "dtype" in host.fails(tick, place)
    assert "dtype" in host.fails(tick, place._replace(dtype=DataType(0, 8, 0)))
    assert host.functions.calls == 0


@pytest.mark.parametrize("alignment", [0, 3, 12, 65536, 1 << 32, -1])
def test_alignments_that_are_none_are_exceptions(host: Host, alignment: int) -> None:
    host.error(alloc_data(16, I8, alignment))


F64X2, F64X7 = DataType(2, 64, 2), DataType(2, 64, 7)


def test_tensor_arguments_are_checked(host: Host) -> None:
    """A call argument's tensor must lie inside its allocation, to the byte. An offset between elements is a
    fault on some cores."""
    tick, data = host.function("tick"), host.alloc(64)
    for dtype, shape, offset in [
        (I8, (64,), 0),
        (F32, (), 60),
        (I8, (0,), 64),
        (F64X2, (2, 2), 0),
        (F64X7, (), 8),
    ]:
        assert host.call(tick, DLTensor(data, dtype, shape, offset)) is None
    for bad in [
        *[tensor(data, 65), tensor(data, 64, 1), tensor(data, 0, 65), tensor(0, 0), tensor(data, 2, U64_MAX)],
        *[DLTensor(data + 1, I8, ()), DLTensor(data, I8, (), 1 << 32)],
        *[DLTensor(data, F32, (), offset) for offset in (64, 1)],
        DLTensor(data, DataType(2, 64), (), 4),
    ]:
        host.fails(tick, bad)
    assert host.functions.calls == 5


def test_a_session_takes_its_memory_with_it(host: Host) -> None:
    data = host.alloc(1000)
    assert host.arena.used
    host.open(0x24)
    assert host.arena.used == 0
    host.error(CopyFromRemote(tensor(data, 1000), 1000))


def test_a_terminate_frees_the_memory(host: Host) -> None:
    host.alloc(1000)
    host.give(message(0, MessageType.TERMINATE))
    assert host.arena.used == 0
