# SPDX-License-Identifier: Apache-2.0
"""The packing of TVM from v0.21 on: golden requests of a real client, round trips, any bytes."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given, strategies as st
from minrpc.wire import ffi
from minrpc.wire.dtypes import DataType
from minrpc.wire.replies import Result, ReturnedArray
from minrpc.wire.requests import CallFunc, Syscall
from minrpc.wire.values import (
    Argument,
    Bool,
    DLDevice,
    DLTensor,
    Function,
    Handle,
    MalformedError,
    Module,
    Object,
)

from tests.unit.wire.describe import describe_request, describe_result
from tests.vectors import Row, rows, to_bytes

I64 = st.integers(-(2**63), 2**63 - 1)
U64 = st.integers(0, 2**64 - 1)
TENSORS = st.builds(
    DLTensor,
    U64,
    st.builds(DataType, st.integers(0, 4), st.sampled_from([1, 8, 32]), st.integers(1, 4)),
    st.lists(I64, max_size=4).map(tuple),
    U64,
    st.just(DLDevice(1, 0)),
)
VALUES = st.lists(
    st.one_of(
        st.none(),
        I64,
        st.booleans().map(Bool),
        st.floats(allow_nan=False),
        st.text(max_size=20).filter(lambda text: text.isprintable()),
        st.binary(max_size=20),
        st.builds(Handle, U64),
        st.builds(Function, U64),
        st.builds(Module, U64),
        st.builds(DLDevice, st.integers(0, 20), st.integers(0, 20)),
        st.builds(DataType, st.integers(0, 4), st.integers(1, 64), st.integers(1, 4)),
        TENSORS,
    ),
    max_size=6,
)

RESULTS: dict[str, Result] = {
    "nothing": None,
    "int": -2,
    "float": 1.5,
    "text": "hi",
    "bytes": b"\0\xff",
    "module": Module(0x8000),
    "function": Function(0x80008000),
    "array": ReturnedArray(DLTensor(0x100, DataType(0, 8), (2,)), 0x140),
    "handle": Handle(0x10),
}


@pytest.mark.parametrize("row", rows("ffi_request"), ids=lambda row: row.name)
def test_what_a_client_sends(row: Row) -> None:
    text, packet = row.fields
    request = ffi.decode_request(to_bytes(packet))
    assert describe_request(request) == text
    if isinstance(request, CallFunc | Syscall):
        assert ffi.encode_request(request) == to_bytes(packet)


def test_every_result_has_its_row() -> None:
    assert RESULTS.keys() == {row.name for row in rows("ffi_result")}


@pytest.mark.parametrize("row", rows("ffi_result"), ids=lambda row: row.name)
def test_what_a_client_is_answered(row: Row) -> None:
    text, packet = row.fields
    result = RESULTS[row.name]
    assert describe_result(result) == text
    assert ffi.encode_call_result(result) == to_bytes(packet)


@given(VALUES)
def test_values_survive(values: list[Argument]) -> None:
    assert ffi.decode_sequence(ffi.encode_sequence(values)) == values


@given(st.binary(max_size=80))
def test_any_bytes_give_values_or_a_malformed_error(data: bytes) -> None:
    with contextlib.suppress(MalformedError):
        ffi.decode_sequence(data)


@given(VALUES.filter(bool), st.data())
def test_a_cut_sequence_is_malformed(values: list[Argument], data: st.DataObject) -> None:
    packed = ffi.encode_sequence(values)
    cut = packed[: data.draw(st.integers(0, len(packed) - 1))]
    with pytest.raises(MalformedError):
        ffi.decode_sequence(cut)


@pytest.mark.parametrize("index", [10, 13, 63, -1])
def test_an_index_that_nobody_defined(index: int) -> None:
    with pytest.raises(MalformedError, match=f"type index {index} is unknown"):
        ffi.decode_sequence(struct.pack("<ii", 1, index) + bytes(16))


@pytest.mark.parametrize("index", [11, 65])
def test_text_that_was_an_object(index: int) -> None:
    data = struct.pack("<iiIQ", 1, index, 65, 2) + b"hi"
    assert ffi.decode_sequence(data) == ["hi"]


@pytest.mark.parametrize("index", [12, 66])
def test_bytes_that_were_an_object(index: int) -> None:
    data = struct.pack("<iiIQ", 1, index, 66, 2) + b"hi"
    assert ffi.decode_sequence(data) == [b"hi"]


def test_a_reference_to_an_object_of_ours() -> None:
    assert ffi.decode_sequence(struct.pack("<iiIQ", 1, 75, 64, 9)) == [Object(64, 9)]


def test_bytes_after_the_end_are_malformed() -> None:
    with pytest.raises(MalformedError, match="1 bytes too many after 1 values"):
        ffi.decode_sequence(ffi.encode_sequence([1]) + b"x")


def test_a_value_that_its_type_does_not_hold() -> None:
    with pytest.raises(ValueError, match="does not fit its type"):
        ffi.encode_sequence([1 << 70])


def test_text_that_is_no_utf_8_has_its_bytes() -> None:
    """A device's own text may contain such bytes after a fault."""
    assert ffi.encode_exception("\udcff!") == ffi.encode_exception("??").replace(b"??", b"\xff!")
