# SPDX-License-Identifier: Apache-2.0
"""The golden table of wire cases, tests/vectors/wire.txt, against the runtime. A new case is a row there."""

from __future__ import annotations

import re
from struct import pack

import pytest
from minrpc.wire.requests import RpcCode
from minrpc.wire.session_layer import MessageType
from minrpc.wire.values import TypeCode

from tests.runtime.door import Door
from tests.runtime.host import Host, Message, message
from tests.vectors import Row, rows, to_bytes, to_pattern
from tests.vectors.replay import replay


def cases(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", rows(kind), ids=lambda row: row.name)


@cases("frame")
def test_frames_are_written(door: Door, row: Row) -> None:
    """first|next PAYLOAD WIRE"""
    order, payload, wire = row.fields
    sent: list[bytes] = []

    def write(_context: int, data: int, size: int, *_: int) -> None:
        sent.append(door.read(data, size & 0xFFFFFFFF))

    writer = door.new("minrpc_writer")
    door.call("minrpc_writer_init", writer, door.memory(16), 16, door.callback(write), 0)
    for content in [b""] * (order == "next") + [to_bytes(payload)]:
        sent.clear()
        door.call("minrpc_writer_begin", writer, len(content))
        door.call("minrpc_writer_put", writer, door.memory(content), len(content))
        assert door.call("minrpc_writer_end", writer) == 0
    assert b"".join(sent) == to_bytes(wire)


def told(door: Door, pieces: list[bytes]) -> list[str]:
    """The events of the runtime's reader for these pieces, as "frame:HEX"."""
    names = {
        door.constant("MINRPC_READER_FRAME"): "frame",
        door.constant("MINRPC_READER_BAD_CRC"): "crc",
        door.constant("MINRPC_READER_SHORT"): "short",
        door.constant("MINRPC_READER_ESCAPE"): "escape",
    }
    reader, payload = door.new("minrpc_reader"), door.memory(1024)
    cursor = door.memory(8 + 4)
    events = []
    for piece in pieces:
        door.write(cursor, pack("<QI", door.memory(piece), len(piece)))
        while int.from_bytes(door.read(cursor + 8, 4), "little"):
            event = door.call("minrpc_reader_feed", reader, cursor, cursor + 8)
            if event == door.constant("MINRPC_READER_LENGTH"):
                door.call("minrpc_reader_sink", reader, payload, 1024)
            elif event in names:
                come = reader.sink - payload if reader.sink else 0
                events.append(f"{names[event]}:{door.read(payload, come).hex()}")
                reader.sink = 0
    return events


@cases("deframe")
def test_frames_are_read(door: Door, row: Row) -> None:
    """WIRE EVENT..., in pieces of every length. The runtime's reader tells no noise between frames."""
    wire = to_bytes(row.fields[0])
    parts = [event.partition(":") for event in row.fields[1:] if not event.startswith("noise:")]
    expected = [f"{kind}:{to_bytes(payload).hex()}" for kind, _, payload in parts]
    for size in range(1, len(wire) + 1):
        assert told(door, [wire[at : at + size] for at in range(0, len(wire), size)]) == expected


@cases("session")
def test_sessions_are_held(host: Host, row: Row) -> None:
    """NONCE STEP..."""
    host.config.nonce_seed = int(row.fields[0], 16)
    host.restart()
    if not row.fields[1].startswith("<"):
        host.take()  # its message at boot
    for step in row.fields[1:]:
        wire = to_bytes(step[1:])
        if step.startswith("<"):
            taken = host.take_next()
            assert message(*taken) == wire.removeprefix(b"\xfe")
        else:
            assert all(left.kind == MessageType.LOG for left in host.messages())
            host.messages().clear()
            host.give(wire)
    assert all(left.kind == MessageType.LOG for left in host.messages())


def exchange(host: Host, packet: bytes) -> list[Message]:
    """The answers to a packet, its u64 included."""
    host.give(message(host.session, MessageType.NORMAL, packet))
    answers = [answer for answer in host.messages() if answer.kind == MessageType.NORMAL]
    host.messages().clear()
    return answers


@cases("rpc")
def test_packets_are_answered(host: Host, row: Row) -> None:
    """>PACKET <PACKET ... in a session of their own"""

    def answer(packet: bytes) -> bytes:
        (one,) = exchange(host, packet)
        return one.body

    replay(row, answer)


@cases("request")
def test_requests_tell_their_dialect(host: Host, row: Row) -> None:
    """DIALECT TEXT PACKET: there is an answer of any kind, and the dialect was recognized."""
    assert len(exchange(host, to_bytes(row.fields[-1]))) == (row.name != "shutdown")
    if row.fields[0] in ("0.7.0", "0.8.0"):
        name = row.fields[0][:3].replace(".", "_")
        assert host.server.dialect == host.door.constant(f"MINRPC_DIALECT_{name}")


HANDLES = {"handle": TypeCode.HANDLE, "function": TypeCode.FUNCTION, "module": TypeCode.MODULE}


def returns(host: Host, text: str) -> None:
    """Makes the function `ret` return the value in Result(...)."""
    functions, memory = host.functions, host.door.memory
    kind, _, rest = text.partition(":")
    if kind in HANDLES:
        functions.type_code, functions.value.v_int64 = HANDLES[kind], int(rest, 16)
    elif kind == "bytes":
        array = host.door.new("TVMByteArray")
        array.data, array.size = memory(bytes.fromhex(rest)), len(rest) // 2
        functions.type_code, functions.value.v_handle = TypeCode.BYTES, array.address
    elif text.startswith('"'):
        functions.type_code = TypeCode.STRING
        functions.value.v_str = memory(text.strip('"').encode() + b"\0")
    elif text == "null":
        functions.type_code = TypeCode.NULL
    elif "." in text:
        functions.type_code, functions.value.v_float64 = TypeCode.FLOAT, float(text)
    else:
        functions.type_code, functions.value.v_int64 = TypeCode.INT, int(text)


@pytest.mark.parametrize(
    "row",
    [row for row in rows("reply") if re.match(r"Result\((?!array:)", row.fields[1])],
    ids=lambda row: row.name,
)
def test_results_are_encoded(host: Host, row: Row) -> None:
    """DIALECT TEXT PACKET"""
    ret = host.function("ret")
    returns(host, row.fields[1].removeprefix("Result(").removesuffix(")"))
    (answer,) = exchange(host, pack("<QIQI", 16, RpcCode.CALL_FUNC, ret, 0))
    assert to_pattern(row.fields[2], {}).fullmatch(answer.body)
