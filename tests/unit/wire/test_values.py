# SPDX-License-Identifier: Apache-2.0
"""Packed sequences of every type, and without values."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st
from minrpc.wire.dtypes import DataType, to_dtype
from minrpc.wire.values import (
    Bool,
    Dialect,
    DLDevice,
    DLTensor,
    Function,
    Handle,
    MalformedError,
    Module,
    Object,
    PackedTensor,
    UInt,
    Value,
    decode_sequence,
    decode_tensor,
    decode_whole_sequence,
    encode_sequence,
)

U64 = st.integers(0, 2**64 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
I32 = st.integers(-(2**31), 2**31 - 1)
DTYPES = st.builds(DataType, st.integers(0, 255), st.integers(0, 255), st.integers(0, 65535))
DEVICES = st.builds(DLDevice, I32, I32)
SHAPES = st.lists(I64, max_size=5).map(tuple)
TENSORS = st.builds(DLTensor, U64, DTYPES, SHAPES, U64, DEVICES)
VALUES: st.SearchStrategy[Value] = st.one_of(
    st.none(),
    I64,
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.builds(UInt, U64),
    st.builds(Bool, st.booleans()),
    st.builds(Handle, U64),
    st.builds(Module, U64),
    st.builds(Function, U64),
    st.builds(Object, st.integers(0, 2**32 - 1), U64),
    DEVICES,
    DTYPES,
    TENSORS,
)
DIALECTS = st.sampled_from(Dialect)


@given(st.lists(VALUES, max_size=10))
def test_every_value_survives(values: list[Value]) -> None:
    packed = encode_sequence(values, Dialect.V0_8_0)
    assert decode_whole_sequence(packed, 0, Dialect.V0_8_0) == values


@given(st.lists(TENSORS, min_size=1, max_size=4))
def test_tensors_survive_in_the_0_7_0_dialect_without_their_offset(tensors: list[DLTensor]) -> None:
    tensors = [tensor._replace(byte_offset=0) for tensor in tensors]
    packed = encode_sequence(tensors, Dialect.V0_7_0)
    assert decode_whole_sequence(packed, 0, Dialect.V0_7_0) == tensors
    assert len(encode_sequence(tensors, Dialect.V0_8_0)) == len(packed) + 8 * len(tensors)


@given(st.binary(max_size=200), DIALECTS)
def test_any_bytes_give_values_or_a_malformed_error(data: bytes, dialect: Dialect) -> None:
    try:
        values, end = decode_sequence(data, 0, dialect)
    except MalformedError:
        return
    assert end <= len(data)
    assert len(values) == struct.unpack_from("<i", data)[0]


@given(
    st.lists(st.tuples(st.integers(-2, 20), st.binary(max_size=24)), max_size=6),
    st.integers(-2, 2),
    DIALECTS,
)
def test_any_codes_and_counts(pairs: list[tuple[int, bytes]], wrong_by: int, dialect: Dialect) -> None:
    codes = [code for code, _ in pairs]
    data = struct.pack(f"<{len(codes) + 1}i", len(codes) + wrong_by, *codes) + b"".join(b for _, b in pairs)
    with suppress(MalformedError):
        decode_whole_sequence(data, 0, dialect)


@given(st.lists(VALUES, min_size=1, max_size=4), st.data())
def test_a_cut_sequence_is_malformed(values: list[Value], data: st.DataObject) -> None:
    packed = encode_sequence(values, Dialect.V0_8_0)
    cut = packed[: data.draw(st.integers(0, len(packed) - 1))]
    with pytest.raises(MalformedError):
        decode_whole_sequence(cut, 0, Dialect.V0_8_0)


def test_bytes_after_the_last_value_are_malformed() -> None:
    with pytest.raises(MalformedError, match="1 bytes too many after 1 values"):
        decode_whole_sequence(encode_sequence([1], Dialect.V0_8_0) + b"x", 0, Dialect.V0_8_0)


@pytest.mark.parametrize("code", [13, 14, 16, 99, -1])
def test_unknown_type_codes_are_named(code: int) -> None:
    with pytest.raises(MalformedError, match=f"type code {code} is unknown"):
        decode_sequence(struct.pack("<ii", 1, code) + bytes(64), 0, Dialect.V0_8_0)


@pytest.mark.parametrize("length", [5, 2**31, 2**63, 2**64 - 1])
def test_a_text_longer_than_the_message_is_malformed(length: int) -> None:
    with pytest.raises(MalformedError, match="announced"):
        decode_sequence(struct.pack("<iiQ", 1, 11, length) + b"text", 0, Dialect.V0_8_0)


@pytest.mark.parametrize("ndim", [-1, 2, 2**31 - 1])
def test_more_dimensions_than_the_message_holds_are_malformed(ndim: int) -> None:
    head = struct.pack("<iiQiii", 1, 7, 0, 1, 0, ndim)
    with pytest.raises(MalformedError, match=f"{ndim} dimensions"):
        decode_sequence(head + bytes(12), 0, Dialect.V0_8_0)


def test_a_bool_is_sent_as_an_int() -> None:
    assert decode_whole_sequence(encode_sequence([True], Dialect.V0_8_0), 0, Dialect.V0_8_0) == [1]


def test_text_that_is_not_utf_8_survives() -> None:
    packed = encode_sequence([b"\xff\xfe"], Dialect.V0_8_0).replace(b"\x0c\0\0\0", b"\x0b\0\0\0", 1)
    (text,) = decode_whole_sequence(packed, 0, Dialect.V0_8_0)
    assert encode_sequence([text], Dialect.V0_8_0) == packed


def test_a_packed_tensor_is_the_tensor() -> None:
    tensor = DLTensor(1, DataType(0, 8), (2,))
    for dialect in Dialect:
        packed = PackedTensor(tensor.pack(dialect))
        assert encode_sequence([packed], dialect) == encode_sequence([tensor], dialect)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, UInt(-1), Handle(2**64), DataType(0, 256)])
def test_a_number_that_does_not_fit_is_refused(value: Value) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        encode_sequence([value], Dialect.V0_8_0)


def test_a_byte_offset_in_the_old_dialect_is_refused() -> None:
    with pytest.raises(ValueError, match="no byte offset"):
        encode_sequence([DLTensor(1, DataType(0, 8), (2,), 1)], Dialect.V0_7_0)


def test_a_class_without_a_type_code_is_refused() -> None:
    with pytest.raises(TypeError, match="a list has no type code"):
        encode_sequence([[]], Dialect.V0_8_0)  # type: ignore[list-item]


def test_a_tensor_of_more_dimensions_than_bytes_is_refused_with_both() -> None:
    packed = DLTensor(0x2000, to_dtype("int8"), (1, 2, 3)).pack(Dialect.V0_8_0)
    for left in (0, 8, 23):
        with pytest.raises(MalformedError, match=f"a tensor of 3 dimensions in {left} bytes"):
            decode_tensor(b"..." + packed[: 24 + left], 3, Dialect.V0_8_0)
