# SPDX-License-Identifier: Apache-2.0
"""Data types of the wire, their names, and numpy's."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from minrpc.wire.dtypes import DataType, DTypeLike, TypeKind, parse_dtype, to_dtype, to_numpy

NATIVE = [
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
]


@pytest.mark.parametrize("name", NATIVE)
def test_numpys_types_go_there_and_back(name: str) -> None:
    dtype = to_dtype(np.dtype(name))
    assert str(dtype) == name
    assert dtype == to_dtype(name) == parse_dtype(name)
    assert to_numpy(dtype) == (np.dtype(name), ())
    assert dtype.itemsize == np.dtype(name).itemsize


@pytest.mark.parametrize(
    ("name", "dtype", "itemsize"),
    [
        ("bool", DataType(TypeKind.UINT, 1), 1),
        ("boolx8", DataType(TypeKind.UINT, 1, 8), 1),
        ("bool8", DataType(TypeKind.BOOL, 8), 1),
        ("handle", DataType(TypeKind.HANDLE, 64), 8),
        ("bfloat16", DataType(TypeKind.BFLOAT, 16), 2),
        ("float32x4", DataType(TypeKind.FLOAT, 32, 4), 16),
        ("int4", DataType(TypeKind.INT, 4), 1),
        ("int24", DataType(TypeKind.INT, 24), 3),
        ("uint1x12", None, 2),
    ],
)
def test_names(name: str, dtype: DataType | None, itemsize: int) -> None:
    parsed = parse_dtype(name)
    assert parsed.itemsize == itemsize
    if dtype is not None:
        assert parsed == dtype
        assert str(parsed) == name


def test_a_type_nobody_defined_has_a_name_too() -> None:
    assert str(DataType(9, 16, 2)) == "code9_16x2"


def test_four_bytes_on_the_wire() -> None:
    assert DataType(2, 32, 4).pack() == bytes.fromhex("02200400")
    assert DataType.unpack_from(bytes.fromhex("0002200400"), 1) == DataType(2, 32, 4)


@pytest.mark.parametrize(
    ("name", "host", "lanes"),
    [
        ("bool", "bool", ()),
        ("bool8", "bool", ()),
        ("bool8x2", "bool", (2,)),
        ("handle", "<u8", ()),
        ("float32x4", "<f4", (4,)),
        ("int8x3", "i1", (3,)),
        ("int4", "V1", ()),
        ("int24", "V3", ()),
        ("boolx12", "V2", ()),
        ("float128", "V16", ()),
    ],
)
def test_what_holds_an_element_on_the_host(name: str, host: str, lanes: tuple[int, ...]) -> None:
    assert to_numpy(parse_dtype(name)) == (np.dtype(host), lanes)


def test_bfloat16_is_held_as_bits_unless_numpy_knows_it() -> None:
    host, lanes = to_numpy(parse_dtype("bfloat16"))
    assert host.itemsize == 2
    assert host.name in ("uint16", "bfloat16")
    assert lanes == ()


def test_numpys_own_spellings() -> None:
    assert str(to_dtype("<f4")) == "float32"
    assert str(to_dtype(">i2")) == "int16"
    assert str(to_dtype(float)) == "float64"
    assert str(to_dtype("bool")) == "bool"
    assert str(to_dtype(np.dtype(bool))) == "bool"


@pytest.mark.parametrize("dtype", ["text", "int0", "int256", "int8x0", "int8x65536", "U4", "complex64"])
def test_what_is_no_type_of_the_wire_is_refused(dtype: str) -> None:
    with pytest.raises(TypeError):
        to_dtype(dtype)


@pytest.mark.parametrize("dtype", [np.complex64, np.dtype("M8[s]"), object, np.longdouble, np.dtype("i4,f4")])
def test_numpys_types_that_do_not_travel_are_refused(dtype: npt.DTypeLike) -> None:
    with pytest.raises(TypeError, match="no type on the wire"):
        to_dtype(dtype)


def test_a_data_type_stays_what_it_is() -> None:
    dtype: DTypeLike = DataType(0, 3)
    assert to_dtype(dtype) is dtype


@pytest.mark.parametrize("dtype", ["int9", "int3", "uint12", "float17", "int9x8"])
def test_bits_that_nobody_packs_are_refused(dtype: str) -> None:
    with pytest.raises(TypeError, match="bits are 1, 2, 4, or a multiple of 8"):
        to_dtype(dtype)


def test_none_is_no_type() -> None:
    """Numpy takes None for float64."""
    with pytest.raises(TypeError, match="a type of elements is needed, not None"):
        to_dtype(None)  # type: ignore[arg-type]
