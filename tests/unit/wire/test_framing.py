# SPDX-License-Identifier: Apache-2.0
"""The frame reader under any input: it never raises, and finds the next good frame."""

from __future__ import annotations

from binascii import crc_hqx
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, strategies as st
from minrpc.wire.framing import (
    START,
    CrcMismatch,
    Deframer,
    Frame,
    FramingEvent,
    InvalidEscape,
    Noise,
    OversizeFrame,
    ShortPacket,
    encode_frame,
)

# Mostly bytes with a meaning for the reader.
AWKWARD = st.one_of(st.sampled_from([0xFF, 0xFD, 0xFE, 0x00, 0x41]), st.integers(0, 255))
PAYLOADS = st.one_of(st.binary(max_size=300), st.lists(AWKWARD, max_size=300).map(bytes))
WIRE = st.lists(AWKWARD, max_size=200).map(bytes)
CUTS = st.lists(st.integers(0, 2000), max_size=30)


def chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def feed(reader: Deframer, data: bytes, cuts: list[int]) -> list[FramingEvent]:
    return [event for chunk in chunks(data, cuts) for event in reader.feed(chunk)]


def noise_joined(events: list[FramingEvent]) -> list[FramingEvent]:
    joined: list[FramingEvent] = []
    for event in events:
        before = joined[-1] if joined else None
        if isinstance(event, Noise) and isinstance(before, Noise):
            joined[-1] = Noise(before.data + event.data)
        else:
            joined.append(event)
    return joined


@given(st.lists(PAYLOADS, max_size=5), CUTS)
def test_frames_survive_any_chunking(payloads: list[bytes], cuts: list[int]) -> None:
    wire = b"".join(encode_frame(payload, first=not i) for i, payload in enumerate(payloads))
    assert feed(Deframer(), wire, cuts) == [Frame(payload) for payload in payloads]


@given(WIRE, CUTS)
def test_events_do_not_depend_on_chunking(wire: bytes, cuts: list[int]) -> None:
    assert noise_joined(feed(Deframer(), wire, cuts)) == noise_joined(Deframer().feed(wire))


@given(WIRE, CUTS, PAYLOADS)
def test_the_next_good_frame_is_found_after_anything(wire: bytes, cuts: list[int], payload: bytes) -> None:
    reader = Deframer()
    feed(reader, wire, cuts)
    # The frame's lone fe ends a 0xff that `wire` may leave dangling.
    assert Frame(payload) in reader.feed(encode_frame(payload, first=True))


def feed_whole(reader: Deframer, data: bytes, cuts: list[int]) -> list[FramingEvent]:
    """Does the same as `feed`, but calls `whole` first."""
    events: list[FramingEvent] = []
    for chunk in chunks(data, cuts):
        payload = reader.whole(chunk)
        events += reader.feed(chunk) if payload is None else [Frame(payload)]
    return events


@given(st.lists(st.one_of(PAYLOADS.map(encode_frame), WIRE), max_size=4), CUTS)
def test_a_whole_frame_is_the_same_by_either_way(parts: list[bytes], cuts: list[int]) -> None:
    """This includes cuts between the parts, where whole frames begin and end."""
    wire = b"".join(parts)
    ends = list(accumulate(len(part) for part in parts))
    item, other = Deframer(max_payload=250), Deframer(max_payload=250)
    assert feed_whole(item, wire, cuts + ends) == feed(other, wire, cuts + ends)
    assert item.counters == other.counters


def test_only_a_whole_plain_frame_is_taken_whole() -> None:
    frame = encode_frame(b"payload")
    reader = Deframer(max_payload=7)
    assert reader.whole(frame) == b"payload"
    assert reader.counters.frames == 1
    damaged = frame[:-1] + bytes([frame[-1] ^ 1])
    others = [b"", frame[:7], frame[:-1], frame + b"\0", damaged, b"\xfe" + frame, encode_frame(b"12345678")]
    others += [encode_frame(b"\xff"), encode_frame(b"")[:-2] + b"\xff\xff"]
    assert [reader.whole(other) for other in others] == [None] * len(others)
    for before in (b"\xff", frame[:9]):
        reader.feed(before)
        assert reader.whole(frame) is None
    assert Deframer().whole(encode_frame(b"")) == b""


@given(PAYLOADS, st.data())
def test_a_flipped_bit_is_never_delivered(payload: bytes, data: st.DataObject) -> None:
    wire = bytearray(encode_frame(payload))
    bit = data.draw(st.integers(0, 8 * len(wire) - 1))
    wire[bit // 8] ^= 1 << bit % 8
    reader = Deframer()
    events = reader.feed(bytes(wire)) + reader.feed(encode_frame(b"next", first=True))
    frames = [event for event in events if isinstance(event, Frame)]
    assert frames == [Frame(b"next")]


@given(PAYLOADS, st.data())
def test_a_cut_frame_is_reported_and_the_next_one_comes(payload: bytes, data: st.DataObject) -> None:
    wire = encode_frame(payload)
    cut = data.draw(st.integers(2, len(wire) - 1))
    reader = Deframer()
    first = reader.feed(wire[:cut])
    assert [event for event in first if isinstance(event, Frame)] == []
    # The lone fe before the frame may be taken for the last byte of the length or of the CRC, or be that
    # byte.
    damage, *_, following = reader.feed(encode_frame(b"next", first=True))
    assert isinstance(damage, ShortPacket | CrcMismatch | OversizeFrame) or damage == Frame(payload)
    assert following == Frame(b"next")


@given(PAYLOADS, st.binary(min_size=1, max_size=8), st.data())
def test_inserted_bytes_lose_at_most_that_frame(payload: bytes, extra: bytes, data: st.DataObject) -> None:
    wire = encode_frame(payload)
    at = data.draw(st.integers(0, len(wire)))
    reader = Deframer()
    events = reader.feed(wire[:at] + extra + wire[at:]) + reader.feed(encode_frame(b"next", first=True))
    assert events[-1] == Frame(b"next")
    assert {type(event) for event in events} <= {
        Frame,
        Noise,
        CrcMismatch,
        ShortPacket,
        InvalidEscape,
        OversizeFrame,
    }


@given(WIRE)
def test_counters_count_the_events(wire: bytes) -> None:
    reader = Deframer(max_payload=100)
    events = reader.feed(wire)
    counted = reader.counters
    by_class = [
        (counted.frames, Frame),
        (counted.crc_errors, CrcMismatch),
        (counted.short_packets, ShortPacket),
        (counted.invalid_escapes, InvalidEscape),
        (counted.oversize_frames, OversizeFrame),
    ]
    for count, event_class in by_class:
        assert count == sum(isinstance(event, event_class) for event in events)
    assert counted.noise_bytes == sum(len(event.data) for event in events if isinstance(event, Noise))
    assert counted.errors == sum(not isinstance(event, Frame | Noise) for event in events)


def test_a_frame_over_the_limit_is_named_and_given_up() -> None:
    reader = Deframer(max_payload=4)
    events = reader.feed(encode_frame(b"12345") + encode_frame(b"1234"))
    assert events[0] == OversizeFrame(5)
    assert events[-1] == Frame(b"1234")


def test_errors_read_as_sentences() -> None:
    reader = Deframer()
    events = reader.feed(
        b"\xff\xfd\x01\0\0\0\xff\x00" + b"\xff\xfd\x01\0\0\0a\0\0" + b"\xff\xfd\x09\0\0\0a\xff\xfd"
    )
    assert [str(event) for event in events] == [
        "invalid escape ff 00 after 0 bytes of payload",
        "CRC of a frame of 1 bytes is 0000, its bytes give 5d96",
        "a frame was cut short after 1 bytes of payload",
    ]


def test_a_payload_of_nothing_but_escapes_is_read_in_pieces_of_any_size() -> None:
    payload = b"\xff" * 70000
    wire = encode_frame(payload)
    for size in (1000, 4095, 65536):
        reader = Deframer()
        events = [event for at in range(0, len(wire), size) for event in reader.feed(wire[at : at + size])]
        assert events == [Frame(payload)]


@pytest.mark.parametrize(("size", "too_long"), [(1 << 26, 0), ((1 << 26) + 1, 1)])
def test_what_is_longer_than_any_message_is_not_waited_for(size: int, too_long: int) -> None:
    """A damaged length must not reserve memory: the default limit is 64 MiB."""
    deframer = Deframer()
    deframer.feed(bytes.fromhex("fffd") + size.to_bytes(4, "little"))
    assert deframer.counters.oversize_frames == too_long


def test_a_frame_with_a_byte_that_should_be_escaped_is_not_whole() -> None:
    """Its length and its CRC are right, but no sender writes it."""
    body = START + (2).to_bytes(4, "little") + b"\xff\x41"
    data = body + crc_hqx(body, 0xFFFF).to_bytes(2, "little")
    assert Deframer().whole(data) is None
    assert InvalidEscape(b"", 0x41) in Deframer().feed(data)
