# SPDX-License-Identifier: Apache-2.0
"""The golden table, checked with Python's reader, writer and messages."""

from __future__ import annotations

import pytest
from minrpc.wire.framing import (
    CrcMismatch,
    Deframer,
    Frame,
    FramingEvent,
    InvalidEscape,
    Noise,
    ShortPacket,
    encode_frame,
)
from minrpc.wire.replies import Return, call_result, decode_reply, encode_exception
from minrpc.wire.requests import decode_request, encode_request
from minrpc.wire.values import Dialect

from tests.unit.wire.describe import describe_reply, describe_request, describe_result
from tests.vectors import Row, rows, to_bytes


def cases(kind: str) -> list[object]:
    return [pytest.param(row, id=row.name) for row in rows(kind)]


def dialects(field: str) -> list[Dialect]:
    return list(Dialect) if field == "-" else [Dialect(field)]


@pytest.mark.parametrize("row", cases("frame"))
def test_frame(row: Row) -> None:
    first, payload, wire = row.fields
    assert encode_frame(to_bytes(payload), first=first == "first") == to_bytes(wire)
    assert Deframer().feed(to_bytes(wire)) == [Frame(to_bytes(payload))]


_EVENT_NAMES = {
    "frame": Frame,
    "noise": Noise,
    "crc": CrcMismatch,
    "short": ShortPacket,
    "escape": InvalidEscape,
}


def event_fields(events: list[FramingEvent]) -> list[tuple[type, bytes]]:
    """Class and bytes of each event, noise joined."""
    fields: list[tuple[type, bytes]] = []
    for event in events:
        data = event[0]
        assert isinstance(data, bytes)
        if isinstance(event, Noise) and fields and fields[-1][0] is Noise:
            data = fields.pop()[1] + data
        fields.append((type(event), data))
    return fields


@pytest.mark.parametrize("row", cases("deframe"))
@pytest.mark.parametrize("chunk", [1, 2, 3, 1000])
def test_deframe(row: Row, chunk: int) -> None:
    wire, *expected = row.fields
    data = to_bytes(wire)
    reader = Deframer()
    events = [event for at in range(0, len(data), chunk) for event in reader.feed(data[at : at + chunk])]
    named = [event.split(":", 1) for event in expected]
    assert event_fields(events) == [(_EVENT_NAMES[name], to_bytes(payload)) for name, payload in named]


@pytest.mark.parametrize("row", cases("request"))
def test_request(row: Row) -> None:
    dialect, text, packet = row.fields
    request, found = decode_request(to_bytes(packet))
    assert describe_request(request) == text
    assert found in dialects(dialect)
    for each in dialects(dialect):
        assert encode_request(request, each) == to_bytes(packet)


@pytest.mark.parametrize("row", cases("reply"))
def test_reply(row: Row) -> None:
    dialect, text, packet = row.fields
    for each in dialects(dialect):
        reply = decode_reply(to_bytes(packet), each)
        if text.startswith("Result") and isinstance(reply, Return):
            assert describe_result(call_result(reply.values)) == text
        else:
            assert describe_reply(reply) == text


def test_exception_is_encoded_as_in_the_table() -> None:
    row = next(row for row in rows("reply") if row.name == "exception")
    assert encode_exception("boom") == to_bytes(row.fields[2])


def test_names_are_unique_within_a_kind() -> None:
    for kind in ("frame", "deframe", "session", "request", "reply", "rpc"):
        names = [row.name for row in rows(kind)]
        assert names
        assert len(names) == len(set(names))
