# SPDX-License-Identifier: Apache-2.0
"""The frame reader and writer beyond the golden table: cuts, sinks, refusals."""

from __future__ import annotations

from struct import pack
from zlib import crc32

import pytest
from minrpc.wire.framing import RESYNC, START, Deframer, Frame, encode_frame

from tests.runtime.door import Door
from tests.runtime.host import flipped

ANY_SIZE = (1 << 32) - 1


class Writer:
    """A writer with a buffer of this size. refuse_at: the write with this number fails; 0: none."""

    def __init__(self, door: Door, capacity: int, refuse_at: int = 0) -> None:
        self.sent = b""
        self.writes = 0
        self._door = door
        self._refuse_at = refuse_at
        self.state = door.new("minrpc_writer")
        write = door.callback(self._write)
        door.call("minrpc_writer_init", self.state, door.memory(capacity), capacity, write, 0)

    def _write(self, _context: int, data: int, size: int, *_: int) -> int:
        self.writes += 1
        if self.writes == self._refuse_at:
            return -1
        self.sent += self._door.read(data, size & ANY_SIZE)
        return 0

    def begin(self, payload: bytes, size: int) -> None:
        """Begins the frame and puts `size` bytes of it."""
        self._door.call("minrpc_writer_begin", self.state, len(payload))
        self._door.call("minrpc_writer_put", self.state, self._door.memory(payload[:size]), size)

    def frame(self, payload: bytes) -> int:
        """The result of a whole frame; `sent` has its bytes."""
        self.sent = b""
        self.begin(payload, len(payload))
        return int(self._door.call("minrpc_writer_end", self.state))


class Reader:
    """A reader of these bytes."""

    def __init__(self, door: Door, wire: bytes) -> None:
        self.state = door.new("minrpc_reader")
        self._door = door
        self.go_on(wire)

    def go_on(self, wire: bytes) -> None:
        """Reads these bytes next."""
        self._cursor = self._door.memory(pack("<QI", self._door.memory(wire), len(wire)))

    @property
    def left(self) -> int:
        """Bytes that were not read yet."""
        return int.from_bytes(self._door.read(self._cursor + 8, 4), "little")

    def event(self) -> str:
        """The next event, as the end of its name MINRPC_READER_..."""
        event = self._door.call("minrpc_reader_feed", self.state, self._cursor, self._cursor + 8)
        names = ("MORE", "LENGTH", "FULL", "FRAME", "BAD_CRC", "SHORT", "ESCAPE")
        return next(name for name in names if self._door.constant(f"MINRPC_READER_{name}") == event)

    def sink(self, place: int, size: int) -> None:
        self._door.call("minrpc_reader_sink", self.state, place, size)


# ------------------------------------------------------------------ writer


def test_the_buffers_size_changes_nothing_on_the_wire(door: Door) -> None:
    payload = bytes([0xFF, 0xFD, 0xFE, 0xFF, 0x00, 0xFF])
    expected = encode_frame(payload, first=True)
    for capacity in range(1, 40):
        door.ready()
        writer = Writer(door, capacity)
        assert writer.frame(payload) == 0
        assert writer.sent == expected
        assert writer.writes == -(-len(expected) // capacity)


@pytest.mark.parametrize("size", range(1, 7))
def test_bytes_ff_at_any_places_are_doubled_and_taken_back(door: Door, size: int) -> None:
    """Bytes are sent and taken by twos: each pattern of bytes ff meets both places of a two."""
    for pattern in range(1 << size):
        payload = bytes(0xFF if pattern >> at & 1 else 0x31 + at for at in range(size))
        wire = encode_frame(payload)
        door.ready()
        writer = Writer(door, 64)
        assert writer.frame(b"") == 0
        assert writer.frame(payload) == 0
        assert writer.sent == wire
        for cut in range(len(wire)):
            door.ready()
            got = door.memory(size)
            reader = Reader(door, wire[:cut])
            events = [reader.event()]
            if events[-1] == "LENGTH":
                reader.sink(got, ANY_SIZE)
                events.append(reader.event())
            reader.go_on(wire[cut:])
            while events[-1] != "FRAME":
                events.append(reader.event())
                if events[-1] == "LENGTH":
                    reader.sink(got, ANY_SIZE)
            assert [event for event in events if event != "MORE"] == ["LENGTH", "FRAME"]
            assert door.read(got, size) == payload


def test_a_frame_that_fits_goes_out_in_one_write(door: Door) -> None:
    writer = Writer(door, 64)
    assert writer.frame(bytes(48)) == 0
    assert writer.writes == 1


@pytest.mark.parametrize("refused", range(1, 8))
def test_a_refused_frame_fails_and_the_next_starts_afresh(door: Door, refused: int) -> None:
    """At each byte that the port refuses the frame fails, and the next starts with the byte that ends the cut
    frame."""
    payload = bytes([1, 2, 3, 0xFF]).ljust(20, b"\0")
    writer = Writer(door, 4, refused)
    assert writer.frame(payload) == -1
    # Once the port has refused bytes of a frame, it gets no more of it.
    assert writer.writes == refused
    assert writer.frame(payload) == 0
    assert writer.sent == RESYNC + encode_frame(payload)
    assert writer.frame(payload) == 0
    assert writer.sent == encode_frame(payload)


def test_an_abandoned_frame_does_not_spoil_the_next(door: Door) -> None:
    """A device that dies while it sends: at any place, and with any part sent by the port, the next frame
    arrives."""
    payload = bytes([0xFF, 1, 0xFF, 0xFF, 2, 0xFD, 0xFF, 3, 0xFE, 0xFF])
    words = b"end\xff"
    for capacity in range(1, 17):
        for size in range(len(payload) + 1):
            door.ready()
            writer = Writer(door, capacity)
            writer.begin(payload, size)
            door.call("minrpc_writer_abandon", writer.state)
            assert not writer.state.open
            cut = writer.sent
            assert writer.frame(words) == 0
            *_, last = Deframer(max_payload=100).feed(cut + writer.sent)
            assert last == Frame(words)


# ------------------------------------------------------------------ reader


def test_a_payload_in_several_sinks(door: Door) -> None:
    payload = bytes([0, 1, 2, 3, 4, 0xFF, 6, 7, 0xFF, 9])
    for first in range(1, len(payload) + 1):
        reader, got = Reader(door, encode_frame(payload)), door.memory(len(payload))
        assert reader.event() == "LENGTH"
        assert reader.state.length == len(payload)
        reader.sink(got, first)
        if first < len(payload):
            assert reader.event() == "FULL"
            reader.sink(got + first, ANY_SIZE)
        assert reader.event() == "FRAME"
        assert reader.left == 0
        assert door.read(got, len(payload)) == payload


def test_a_payload_without_a_sink_is_counted_and_checked(door: Door) -> None:
    reader = Reader(door, encode_frame(bytes(i * 13 & 0xFF for i in range(5000))))
    assert [reader.event(), reader.event()] == ["LENGTH", "FRAME"]


def test_no_flipped_bit_goes_unseen(door: Door) -> None:
    """Every single bit of a frame, flipped: never the same frame again."""
    wire = encode_frame(bytes([0x10, 0xFF, 0x00, 0xFD, 0x55]))
    for bit in range(8 * len(wire)):
        reader = Reader(door, flipped(wire, bit // 8, bit % 8))
        while reader.left:
            assert reader.event() != "FRAME"


@pytest.mark.parametrize(
    "length",
    [
        *(1, 254, 255, 256, 0xFF00, 0xFFFF, 0x10000, 0xFFFFFF),
        *(0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF),
    ],
)
def test_every_length_up_to_four_gibibytes_is_read(door: Door, length: int) -> None:
    reader = Reader(door, START + pack("<I", length).replace(b"\xff", b"\xff\xff"))
    assert reader.event() == "LENGTH"
    assert reader.state.length == length


def test_crc_32_of_known_bytes(door: Door) -> None:
    """The check value that catalogues of CRCs give; the table of wire cases has CRC-16's values."""
    digits = b"123456789"
    whole = door.call("minrpc_crc32", 0, door.memory(digits), 9, result="I")
    front = door.call("minrpc_crc32", 0, door.memory(digits[:4]), 4, result="I")
    assert whole == crc32(digits) == 0xCBF43926
    assert door.call("minrpc_crc32", front, door.memory(digits[4:]), 5, result="I") == whole
