# SPDX-License-Identifier: Apache-2.0
"""The client's session, message by message."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given, strategies as st
from minrpc.wire.framing import CrcMismatch, Deframer, Frame, Noise, encode_frame
from minrpc.wire.session_layer import (
    ClientSession,
    Established,
    Ignored,
    Log,
    MessageType,
    Numbered,
    Packet,
    Resend,
    SessionEvent,
    SessionState,
    SessionStateError,
    Terminated,
    encode_message,
    next_nonce,
)

REPLY = b"\x01"


def message(session_id: int, kind: int, body: bytes = b"") -> bytes:
    return encode_frame(encode_message(session_id, MessageType(kind), body))


def session(*nonces: int) -> ClientSession:
    return ClientSession(iter(nonces or (0x23, 0x24, 0x25)).__next__)


def started() -> ClientSession:
    client = session()
    client.start()
    return client


def established() -> ClientSession:
    client = started()
    assert client.receive(message(0x2123, 1, REPLY)) == [Established(0x2123)]
    return client


def payloads(wire: bytes) -> list[bytes]:
    return [event.payload for event in Deframer().feed(wire) if isinstance(event, Frame)]


def test_start_is_terminate_then_init_and_a_lone_fe_comes_first() -> None:
    wire = session().start()
    assert wire.hex() == "fefffd030000000000026677" + "fffd0400000023000001b975"


def test_only_the_first_start_begins_with_a_lone_fe() -> None:
    client = started()
    assert client.start().startswith(b"\xff\xfd")


def test_after_a_failed_write_the_lone_fe_comes_again() -> None:
    client = established()
    client.write_failed()
    assert client.start().startswith(b"\xfe\xff\xfd")


def test_a_second_start_has_another_nonce_and_its_answer_counts() -> None:
    client = started()
    client.start()
    (late,) = client.receive(message(0x2123, 1, REPLY))
    assert late == Ignored(bytes.fromhex("23210101"), "answers another start of a session")
    assert client.receive(message(0x2124, 1, REPLY)) == [Established(0x2124)]


@pytest.mark.parametrize("body", [b"", b"\x02", b"\x01\x01"])
def test_another_protocol_version_is_not_taken(body: bytes) -> None:
    client = started()
    assert isinstance(client.receive(message(0x2123, 1, body))[0], Ignored)
    assert client.state is SessionState.START_SENT


def test_a_reply_without_the_devices_nonce_is_not_taken() -> None:
    client = started()
    assert isinstance(client.receive(message(0x0023, 1, REPLY))[0], Ignored)


def test_packets_carry_the_sessions_id_both_ways() -> None:
    client = established()
    assert payloads(client.encode(b"request")) == [b"\x23\x21\x10request"]
    assert client.receive(message(0x2123, 0x10, b"answer")) == [Packet(memoryview(b"answer"))]


def test_a_packet_alone_is_taken_as_it_is() -> None:
    client = established()
    assert client.receive_packet(message(0x2123, 0x10, b"answer")) == b"answer"
    late, log = message(0x2223, 0x10, b"late"), message(0x2123, 3, b"x")
    assert isinstance(client.receive_packet(late)[0], Ignored)
    assert client.receive_packet(log) == [Log("x")]
    assert client.receive_packet(log + message(0x2123, 0x10, b"2")) == [Log("x"), Packet(memoryview(b"2"))]
    assert client.receive_packet(message(0, 2)) == [Terminated(True)]
    assert isinstance(client.receive_packet(message(0x2123, 0x10, b"late"))[0], Ignored)


def numbered(sequence: int, body: bytes) -> bytes:
    """The payload of a numbered message."""
    return encode_message(0x2123, MessageType.NUMBERED, bytes([sequence]) + body)


def test_a_numbered_message_has_a_check_of_its_own() -> None:
    client = established()
    whole = numbered(7, b"answer")
    check = zlib.crc32(whole).to_bytes(4, "little")
    assert client.receive(encode_frame(whole + check)) == [Numbered(7, memoryview(b"answer"))]
    empty = numbered(8, b"")
    wire = encode_frame(empty + zlib.crc32(empty).to_bytes(4, "little"))
    assert client.receive(wire) == [Numbered(8, memoryview(b""))]


@given(st.binary(max_size=20), st.data())
def test_a_numbered_message_that_fails_its_check_is_damaged(body: bytes, data: st.DataObject) -> None:
    """This holds even if the frame's CRC is right: a CRC of 16 bits lets one in 65,536 damaged frames
    pass."""
    payload = bytearray(numbered(7, body))
    payload += zlib.crc32(payload).to_bytes(4, "little")
    at = data.draw(st.integers(3, len(payload) - 1))
    payload[at] ^= data.draw(st.integers(1, 255))
    (event,) = established().receive(encode_frame(bytes(payload)))
    assert isinstance(event, CrcMismatch)
    assert event.payload == bytes(payload)


@pytest.mark.parametrize("size", range(5))
def test_a_numbered_message_that_is_too_short_for_its_check(size: int) -> None:
    (event,) = established().receive(message(0x2123, 0x11, bytes(size)))
    assert isinstance(event, Ignored)
    assert event.reason == "shorter than a numbered message"


def test_a_wish_for_a_request_again() -> None:
    client = established()
    assert client.receive(message(0x2123, 0x12, b"\x05")) == [Resend(5)]
    for other in (message(0x2123, 0x12), message(0x2123, 0x12, b"\5\5"), message(0x2223, 0x12, b"\5")):
        assert isinstance(client.receive(other)[0], Ignored)


def test_what_is_sent_has_its_checks() -> None:
    client = established()
    (sent,) = payloads(client.encode_numbered(5, b"request"))
    assert sent == numbered(5, b"request") + zlib.crc32(numbered(5, b"request")).to_bytes(4, "little")
    (sent,) = payloads(client.encode_checked(b"front data", 6))
    assert sent == b"\x23\x21\x14" + zlib.crc32(b"front ").to_bytes(4, "little") + b"front data"
    assert payloads(client.probe(9)) == [b"\x23\x21\x13\x09"]
    client.terminate()
    with pytest.raises(SessionStateError, match="no session"):
        client.encode_numbered(1, b"")
    with pytest.raises(SessionStateError, match="no session"):
        client.encode_checked(b"", 0)
    with pytest.raises(SessionStateError, match="no session"):
        client.probe(1)


def test_no_packet_without_a_session() -> None:
    with pytest.raises(SessionStateError, match="no session"):
        session().encode(b"x")
    client = started()
    with pytest.raises(SessionStateError, match="not answered"):
        client.encode(b"x")


def test_stale_packets_are_ignored() -> None:
    client = established()
    (event,) = client.receive(message(0x2223, 0x10, b"late"))
    assert isinstance(event, Ignored)
    assert event.reason == "of session 2223, the running one is 2123"


def test_a_packet_before_the_session_is_ignored() -> None:
    client = started()
    assert isinstance(client.receive(message(0x2123, 0x10, b"late"))[0], Ignored)


def test_terminate_ends_the_session() -> None:
    client = established()
    assert client.receive(message(0, 2)) == [Terminated(True)]
    with pytest.raises(SessionStateError):
        client.encode(b"x")
    client.start()
    assert client.receive(message(0x3024, 1, REPLY)) == [Established(0x3024)]


def test_terminate_at_boot_does_not_disturb_the_start() -> None:
    client = started()
    assert client.receive(message(0, 2)) == [Terminated(False)]
    assert client.receive(message(0x2123, 1, REPLY)) == [Established(0x2123)]


def test_a_repeated_reply_changes_nothing() -> None:
    client = established()
    assert isinstance(client.receive(message(0x2123, 1, REPLY))[0], Ignored)
    assert client.state is SessionState.ESTABLISHED


def test_a_second_session_from_a_doubled_start_ends_the_first() -> None:
    client = established()
    assert client.receive(message(0x2223, 1, REPLY)) == [Terminated(True)]


@pytest.mark.parametrize("session_id", [0, 0x2123])
def test_logs_of_the_session_and_of_none_are_taken(session_id: int) -> None:
    assert established().receive(message(session_id, 3, b"hot\n")) == [Log("hot")]


def test_logs_of_another_session_and_unreadable_ones() -> None:
    client = established()
    assert isinstance(client.receive(message(0x1111, 3, b"x"))[0], Ignored)
    assert client.receive(message(0, 3, b"\xc3\x28")) == [Log("\\xc3(")]


@pytest.mark.parametrize("payload", [b"", b"\x23", b"\x23\x21", b"\x23\x21\x77x", b"\x23\x00\x00\x01"])
def test_what_means_nothing_is_ignored(payload: bytes) -> None:
    (event,) = established().receive(encode_frame(payload))
    assert isinstance(event, Ignored)


def test_text_between_frames_is_handed_on() -> None:
    assert established().receive(b"booting\r\n" + message(0, 3, b"x")) == [Noise(b"booting\r\n"), Log("x")]


@pytest.mark.parametrize("nonce", [0, 256, -1])
def test_a_nonce_is_one_byte_and_not_zero(nonce: int) -> None:
    with pytest.raises(ValueError, match="nonce"):
        session(nonce).start()


def test_nonces_follow_each_other_as_in_tvm() -> None:
    row = [0xA5]
    for _ in range(5):
        row.append(next_nonce(row[-1]))
    assert bytes(row[1:]).hex() == "a6c6c7e7e8"
    assert all(1 <= next_nonce(nonce) <= 255 for nonce in range(256))


MESSAGES = st.builds(
    lambda session_id, kind, body: encode_frame(session_id.to_bytes(2, "little") + bytes([kind]) + body),
    st.sampled_from([0, 0x2123, 0x2223, 0x23]),
    st.sampled_from([0, 1, 2, 3, 0x10, 0x77]),
    st.sampled_from([b"", b"\x01", b"\x02", b"text"]),
)


@given(st.lists(st.one_of(MESSAGES, st.binary(max_size=20)), max_size=20))
def test_any_messages_leave_a_session_that_can_be_started_again(wires: list[bytes]) -> None:
    client = started()
    events: list[SessionEvent] = []
    for wire in wires:
        events += client.receive(wire)
    client.start()
    client.receive(b"\xfe")
    assert client.receive(message(0x2124, 1, REPLY))[-1] == Established(0x2124)
