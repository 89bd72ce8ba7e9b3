# SPDX-License-Identifier: Apache-2.0
"""Requests and replies under any input."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st
from minrpc.wire.replies import (
    CopyAck,
    Question,
    RemoteException,
    Return,
    call_result,
    decode_call_reply,
    decode_reply,
    encode_call_result,
    encode_copy_ack,
    encode_exception,
)
from minrpc.wire.requests import (
    CallFunc,
    CopyFromRemote,
    CopyToRemote,
    RpcCode,
    Syscall,
    copy_overhead,
    decode_request,
    encode_call,
    encode_request,
)
from minrpc.wire.values import (
    Dialect,
    DLTensor,
    Function,
    Handle,
    MalformedError,
    Module,
    Value,
    encode_sequence,
)

from tests.unit.wire.test_values import DIALECTS, TENSORS, U64, VALUES
from tests.vectors import rows, to_bytes

PACKETS = [to_bytes(row.fields[2]) for kind in ("request", "reply") for row in rows(kind)]


@given(U64, st.lists(VALUES, max_size=6))
def test_calls_survive(handle: int, args: list[Value]) -> None:
    request = CallFunc(handle, args)
    assert decode_request(encode_request(request, Dialect.V0_8_0)) == (request, Dialect.V0_8_0)


@given(U64, st.lists(st.integers(-(2**63), 2**63 - 1), max_size=12))
def test_a_call_of_integers_has_the_bytes_of_any_call(handle: int, args: list[int]) -> None:
    packet = encode_call(handle, args, Dialect.V0_8_0)
    sequence = encode_sequence(args, Dialect.V0_8_0)
    assert packet == struct.pack("<QiQ", 12 + len(sequence), 3, handle) + sequence


@pytest.mark.parametrize("args", [[2**63], [1, -(2**63) - 1], [1] * 9 + [2**70]])
def test_integers_that_are_too_long_for_the_wire(args: list[int]) -> None:
    with pytest.raises(ValueError, match="does not fit its type on the wire"):
        encode_call(1, args, Dialect.V0_8_0)


@given(
    st.sampled_from([code for code in RpcCode if RpcCode.GET_GLOBAL_FUNC <= code < RpcCode.ASK]),
    st.lists(VALUES, max_size=4),
)
def test_system_calls_survive(code: RpcCode, args: list[Value]) -> None:
    request = Syscall(code, args)
    assert decode_request(encode_request(request, Dialect.V0_8_0)) == (request, Dialect.V0_8_0)


@given(TENSORS, st.binary(max_size=50), DIALECTS)
def test_copies_survive_and_tell_their_dialect(tensor: DLTensor, data: bytes, dialect: Dialect) -> None:
    if dialect is Dialect.V0_7_0:
        tensor = tensor._replace(shape=())
    for request in (CopyToRemote(tensor, data), CopyFromRemote(tensor, len(data))):
        assert decode_request(encode_request(request, dialect)) == (request, dialect)


@given(TENSORS, st.binary(max_size=50), DIALECTS)
def test_the_overhead_of_a_copy_is_what_it_takes(tensor: DLTensor, data: bytes, dialect: Dialect) -> None:
    packet = encode_request(CopyToRemote(tensor, data), dialect)
    (n,) = struct.unpack_from("<Q", packet)
    assert n == len(packet) - 8 == copy_overhead(len(tensor.shape), dialect) + len(data)


@given(
    st.one_of(
        st.binary(max_size=100),
        st.builds(
            lambda code, rest: struct.pack("<Qi", 4 + len(rest), code) + rest,
            st.integers(-1, 25),
            st.binary(),
        ),
        st.tuples(st.sampled_from(PACKETS), st.integers(0, 400), st.integers(0, 255)).map(
            lambda drawn: drawn[0][: drawn[1]] + bytes([drawn[2]]) + drawn[0][drawn[1] + 1 :]
        ),
    )
)
def test_any_packet_is_understood_or_malformed(packet: bytes) -> None:
    for dialect in Dialect:
        with suppress(MalformedError):
            decode_request(packet)
        with suppress(MalformedError):
            reply = decode_reply(packet, dialect)
            if isinstance(reply, Return):
                call_result(reply.values)


@pytest.mark.parametrize(
    "result", [None, 0, -1, 2**63 - 1, 1.5, "text", b"bytes", Handle(7), Function(8), Module(9)]
)
def test_results_survive(result: Value) -> None:
    for dialect in Dialect:
        reply = decode_reply(encode_call_result(result, dialect), dialect)
        assert isinstance(reply, Return)
        assert call_result(reply.values) == result
        assert decode_call_reply(encode_call_result(result, dialect), dialect) == result


@given(st.one_of(st.sampled_from(PACKETS), st.binary(max_size=60)))
def test_a_calls_reply_is_its_result_by_either_way(packet: bytes) -> None:
    def outcome(decode: Callable[[], object]) -> object:
        try:
            return decode()
        except MalformedError as error:
            return str(error)

    def in_two_steps() -> object:
        reply = decode_reply(packet, Dialect.V0_8_0)
        if isinstance(reply, CopyAck | Question):
            return f"{len(reply.data)} bytes came where values were due"
        return call_result(reply.values) if isinstance(reply, Return) else reply

    assert outcome(lambda: decode_call_reply(packet, Dialect.V0_8_0)) == outcome(in_two_steps)


@given(st.binary(max_size=100))
def test_copied_bytes_survive(data: bytes) -> None:
    reply = decode_reply(encode_copy_ack(data), Dialect.V0_8_0)
    assert isinstance(reply, CopyAck)
    assert reply.data == data


def test_an_exceptions_text_can_always_be_printed() -> None:
    packet = encode_exception("\udcff was bad")
    assert decode_reply(packet, Dialect.V0_8_0) == RemoteException("\\xff was bad")


@pytest.mark.parametrize(
    ("packet", "text"),
    [
        (b"", "a reply of 0 bytes holds no code"),
        (struct.pack("<Qi", 5, 4), "the reply announces 5 bytes and has 4"),
        (struct.pack("<Qi", 4, 7), "code 7 is no reply"),
        (struct.pack("<Qii", 8, 5, 0), "an exception without its text"),
    ],
)
def test_what_is_wrong_with_a_reply_is_said(packet: bytes, text: str) -> None:
    with pytest.raises(MalformedError, match=text):
        decode_reply(packet, Dialect.V0_8_0)


@pytest.mark.parametrize(
    ("packet", "text"),
    [
        (b"", "a packet of 0 bytes holds no code"),
        (struct.pack("<Qi", 5, 3), "the packet announces 5 bytes and has 4"),
        (struct.pack("<Qi", 4, 99), "request code 99 is unknown"),
        (struct.pack("<Qi", 4, 4), "RETURN is no request"),
        (struct.pack("<Qi", 4, 3), "the request is too short"),
    ],
)
def test_what_is_wrong_with_a_request_is_said(packet: bytes, text: str) -> None:
    with pytest.raises(MalformedError, match=text):
        decode_request(packet)


def test_a_call_returns_a_type_code_and_a_value() -> None:
    with pytest.raises(MalformedError, match="not 1 values"):
        call_result([4])
