# SPDX-License-Identifier: Apache-2.0
"""TVM's TCP door without sockets: handshake, packets, and the client's version of TVM."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, strategies as st
from minrpc.wire import ffi, tcp_door
from minrpc.wire.requests import CallFunc, Syscall, encode_request, get_global_func
from minrpc.wire.tcp_door import FFI, V0_7, V0_8, Door, Hello, PacketReceived, Packing, recognize
from minrpc.wire.values import Dialect, MalformedError

from tests.vectors import Row, rows, to_bytes

HELLO = struct.pack("<ii", 0xFF271, 10) + b"client:key"


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=5), st.integers(1, 60))
def test_bytes_may_come_in_any_pieces(bodies: list[bytes], chunk: int) -> None:
    packets = [struct.pack("<Q", len(body)) + body for body in bodies]
    data = HELLO + bytes(8).join(packets)  # A length of 0 has no meaning.
    door = Door()
    events = [event for at in range(0, len(data), chunk) for event in door.feed(data[at : at + chunk])]
    assert events == [Hello("client:key"), *map(PacketReceived, packets)]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"GET / HTTP/1.1\r\n", "the client begins with 0x20544547, TVM's with 0xff271"),
        (struct.pack("<ii", 0xFF271, -1), "a key of -1 bytes"),
        (struct.pack("<ii", 0xFF271, 5000), "a key of 5000 bytes"),
        (HELLO + struct.pack("<Q", 1 << 40), "a packet of 1099511627776 bytes"),
    ],
)
def test_who_is_no_client(data: bytes, text: str) -> None:
    with pytest.raises(MalformedError, match=text):
        list(Door().feed(data))


def test_the_answer_to_a_hello() -> None:
    assert tcp_door.answer_hello("server:x") == struct.pack("<ii", 0xFF271, 8) + b"server:x"
    assert tcp_door.answer_hello("", tcp_door.NO_SUCH_KEY) == struct.pack("<i", 0xFF273)


TELLING = [row for row in rows("ffi_request") if not row.name.startswith(("init", "copy", "call_system_lib"))]


@pytest.mark.parametrize("row", TELLING, ids=lambda row: row.name)
def test_todays_clients_are_recognized_by_any_request_with_arguments(row: Row) -> None:
    packet = to_bytes(row.fields[1])
    assert recognize(packet) == (ffi.decode_request(packet), FFI)


@given(st.text(alphabet="abc._:", min_size=1, max_size=20))
def test_the_first_name_tells(name: str) -> None:
    request = get_global_func(name)
    assert isinstance(request, Syscall)
    assert recognize(ffi.encode_request(request))[1] is FFI
    assert recognize(encode_request(request, Dialect.V0_8_0))[1] is V0_8


@pytest.mark.parametrize(("row", "packing"), [("init_server_0.8.0", None), ("init_server_0.7.0", V0_7)])
def test_the_start_tells_only_of_the_oldest(row: str, packing: Packing | None) -> None:
    (fields,) = (item.fields for item in rows("request") if item.name == row)
    assert recognize(to_bytes(fields[-1]))[1] is packing


def test_a_call_without_arguments_tells_nothing() -> None:
    assert recognize(ffi.encode_request(CallFunc(5, []))) == (CallFunc(5, []), None)


def test_what_is_a_request_in_no_packing() -> None:
    with pytest.raises(MalformedError):
        recognize(struct.pack("<Qi", 9, 9) + b"bytes")
