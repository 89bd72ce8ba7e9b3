# SPDX-License-Identifier: Apache-2.0
"""The golden table against the Python device, so that the client's tests use a device that speaks the
protocol."""

from __future__ import annotations

import pytest
from minrpc.wire.framing import Deframer, Frame, encode_frame
from minrpc.wire.session_layer import HEADER, MessageType, encode_message

from tests.unit.client.device_model import DeviceModel
from tests.vectors import Row, rows, to_bytes
from tests.vectors.replay import replay

# Cases that the Python device does not support: it has no arena, no streams and no strict checks of lengths.
_MODELLED = {
    "unknown_global_function_is_handle_0",
    "system_library",
    "query_imports_as_int_0",
    "query_imports_as_int_1",
    "query_imports_as_bool",
    "unknown_library_function_is_null",
    "max_packet_size",
    "inc",
    "inc_of_a_bool",
    "inc_of_text_is_an_exception",
    "too_few_arguments",
    "add_int8_0.8.0",
    "add_int8_0.7.0",
    "copy_at_offset_0.8.0",
    "copy_at_offset_0.7.0",
    "copy_beyond_the_end_0.8.0",
    "copy_beyond_the_end_0.7.0",
    "copy_from_nowhere_0.8.0",
    "copy_from_nowhere_0.7.0",
    "copy_among_0.8.0",
    "copy_among_0.7.0",
    "freed_twice_is_an_exception",
    "init_server_0.7.0",
    "init_server_0.8.0",
    "code_99_is_no_request",
    "unknown_type_codes",
    "counts_off_the_wire",
    "short_bodies",
    "evaluator_8",
    "evaluator_10",
    "evaluator_11",
    "evaluator_12",
    "evaluator_of_an_unknown_function",
    "evaluator_of_a_failing_call",
    "evaluator_of_9_arguments",
    "streams",
    "set_device_and_get_attr_are_exceptions",
}


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in rows("session")])
def test_session(row: Row) -> None:
    nonce, *steps = row.fields
    model = DeviceModel(nonce=int(nonce, 16))
    sent = model.boot()
    if not steps[0].startswith("<"):
        sent = b""
    for step in steps:
        if step.startswith(">"):
            sent += model.receive(to_bytes(step[1:]))
        else:
            expected = to_bytes(step[1:])
            assert sent[: len(expected)].hex() == expected.hex()
            sent = sent[len(expected) :]
    assert sent == b""


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.name) for row in rows("rpc") if row.name in _MODELLED]
)
def test_rpc(row: Row) -> None:
    model = DeviceModel()
    model.receive(encode_frame(encode_message(0x23, MessageType.START_INIT, b"\x01")))

    def exchange(packet: bytes) -> bytes:
        sent = model.receive(encode_frame(encode_message(0xA623, MessageType.NORMAL, packet)))
        (frame,) = Deframer().feed(sent)
        assert isinstance(frame, Frame)
        return frame.payload[HEADER.size :]

    replay(row, exchange)


def test_all_modelled_rows_exist() -> None:
    assert {row.name for row in rows("rpc")} >= _MODELLED
