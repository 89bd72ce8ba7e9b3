# SPDX-License-Identifier: Apache-2.0
"""Packed values: every code, both dialects, cut at every byte.

The buffer ends where its block does, so that the sanitizer sees a byte too many."""

from __future__ import annotations

from struct import pack, unpack

import pytest
from minrpc.wire.dtypes import DataType
from minrpc.wire.values import (
    CPU,
    Argument,
    Bool,
    Dialect,
    DLTensor,
    Function,
    Handle,
    Module,
    Object,
    UInt,
    encode_sequence,
)

from tests.runtime.door import Door, Place
from tests.runtime.host import F32, I8, V7, V8

U64_MAX = (1 << 64) - 1
NAMES = (
    "int uint float handle null dtype device tensor object module function string bytes ndarray rvalue bool"
)
both_dialects = pytest.mark.parametrize("dialect", [V7, V8])


def every_code(dialect: Dialect) -> bytes:
    values: list[Argument] = [
        *(-5, UInt(U64_MAX), 1.5, Handle(0x80008000), None, DataType(2, 32, 4), CPU),
        DLTensor(0x1234, F32, (2, 3, 5), 8 if dialect is V8 else 0),
        *(Object(9, 77), Module(0x8000), Function(0x80008001), "text", b"\0b", "", Bool(True)),
    ]
    return encode_sequence(values, dialect)


class Decoded:
    """A decode of `wire` in a buffer of `room` bytes."""

    def __init__(self, door: Door, wire: bytes, room: int = 2048) -> None:
        self.door = door
        buffer = door.memory(wire.ljust(room, b"\xa5"))
        self.packed = door.new("minrpc_packed")
        args = door.new("minrpc_args")
        self.packed.args = args.address
        self.packed.wire.at = buffer
        self.packed.wire.end = self.packed.scratch.at = buffer + len(wire)
        self.packed.scratch.end = buffer + room
        self.status = door.call("minrpc_packed_decode", self.packed)
        self.args = args

    def has(self, name: str) -> bool:
        """True for the status MINRPC_PACKED_..."""
        return bool(self.status == self.door.constant(f"MINRPC_PACKED_{name}"))

    def value(self, index: int) -> Place:
        return self.door.at(self.args.values + 8 * index, "TVMValue")

    def tensor(self, index: int) -> Place:
        return self.door.at(self.value(index).v_handle, "DLTensor")

    def text(self, index: int) -> str:
        return self.door.text(self.value(index).v_str)


def check_every_value(decoded: Decoded, dialect: Dialect) -> None:
    door, value = decoded.door, decoded.value
    integers = {0: -5, 1: -1, 3: 0x80008000, 4: 0, 8: 77, 9: 0x8000, 10: 0x80008001, 14: 1}
    assert decoded.args.count == 15
    assert {index: value(index).v_int64 for index in integers} == integers
    assert value(2).v_float64 == 1.5
    assert unpack("<BBH", value(5).content()[:4]) == (2, 32, 4)
    assert unpack("<ii", value(6).content()) == CPU
    tensor = decoded.tensor(7)
    assert (tensor.data, tensor.byte_offset, tensor.strides) == (0x1234, 8 if dialect is V8 else 0, 0)
    assert unpack("<3q", door.read(tensor.shape, 8 * tensor.ndim)) == (2, 3, 5)
    assert unpack("<BBH", tensor.dtype.content()) == F32
    assert decoded.text(11) == "text"
    array = door.at(value(12).v_handle, "TVMByteArray")
    assert door.read(array.data, array.size) == b"\0b"
    assert decoded.text(13) == ""


@both_dialects
def test_every_code_in_both_dialects(door: Door, dialect: Dialect) -> None:
    decoded = Decoded(door, every_code(dialect))
    assert decoded.has("OK")
    name = "MINRPC_DIALECT_0_8" if dialect is V8 else "MINRPC_DIALECT_0_7"
    assert decoded.packed.dialect == door.constant(name)
    check_every_value(decoded, dialect)


@both_dialects
def test_cut_at_every_byte(door: Door, dialect: Dialect) -> None:
    whole = every_code(dialect)
    for size in range(len(whole)):
        assert Decoded(door, whole[:size]).has("SHORT")


def test_bytes_too_many(door: Door) -> None:
    for more in range(1, 20):
        assert Decoded(door, encode_sequence([1], V8) + bytes(more)).has("SHORT")


def test_every_amount_of_room(door: Door) -> None:
    """For any room: the whole result, or an error. A size that fits also fits in a larger buffer."""
    wire = every_code(V8)
    fits = False
    for room in range(len(wire), len(wire) + 600):
        decoded = Decoded(door, wire, room)
        assert decoded.has("OK") or (decoded.has("SCRATCH") and not fits)
        if decoded.has("OK") and (not fits or room % 50 == 0):
            check_every_value(decoded, V8)
        fits = decoded.has("OK")
    assert fits


@pytest.mark.parametrize("code", [13, 14, 16, 17, 255, 256, (1 << 31) - 1, 1 << 31, (1 << 32) - 1])
def test_codes_without_a_form(door: Door, code: int) -> None:
    decoded = Decoded(door, pack("<IIQ", 1, code, 0), 256)
    assert decoded.has("TYPE")
    assert decoded.packed.culprit == code


def test_no_arguments(door: Door) -> None:
    decoded = Decoded(door, encode_sequence([], V8), 64)
    assert decoded.has("OK")
    assert decoded.args.count == 0
    assert decoded.packed.dialect == door.constant("MINRPC_DIALECT_UNKNOWN")


@both_dialects
def test_a_tensor_without_dimensions(door: Door, dialect: Dialect) -> None:
    decoded = Decoded(door, encode_sequence([DLTensor(1, I8, ())], dialect), 256)
    assert decoded.has("OK")
    assert decoded.tensor(0).ndim == 0


def test_addresses_that_do_not_fit_are_nobodys(door: Door) -> None:
    far = U64_MAX - 15
    decoded = Decoded(door, encode_sequence([DLTensor(far, I8, ())], V8), 256)
    assert decoded.has("OK")
    assert decoded.tensor(0).data == (far if door.bits == 64 else 0xFFFFFFFF)


def test_every_type_has_a_name(door: Door) -> None:
    names = dict(enumerate(NAMES.split())) | dict.fromkeys((16, -1, -(1 << 31)), "unknown")
    for code, name in names.items():
        assert door.text(door.call("minrpc_type_name", code, result="P")) == name


def test_an_extent_has_31_bits(door: Door) -> None:
    tensor = door.at(door.memory(64), "DLTensor")
    tensor.ndim = 1
    tensor.dtype.bits, tensor.dtype.lanes = 8, 1
    sizes = [
        door.call("minrpc_tensor_size", tensor, door.memory(pack("<Q", extent)), result="I")
        for extent in (0, 5, (1 << 31) - 1, 1 << 31)
    ]
    assert sizes == [0, 5, (1 << 31) - 1, 0xFFFFFFFF]
