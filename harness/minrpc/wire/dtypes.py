# SPDX-License-Identifier: Apache-2.0
"""DLPack's data types: their four bytes on the wire, their names, and the numpy types that hold them.

Names are TVM's: a kind and its bits, then `x` and the lanes for several lanes: "int8", "float32x4",
"bfloat16", "bool", "handle". TVM from v0.21 on has a boolean of its own, of eight bits: "bool8" here.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import cache
from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

_DTYPE = Struct("<BBH")
# Widths of lanes that share a byte, in bits.
_PACKED: Final = frozenset({1, 2, 4})
_NAME = re.compile(r"(int|uint|float|handle|bfloat|bool)(\d+)(?:x(\d+))?")


class TypeKind(IntEnum):
    """DLPack's type code."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    BFLOAT = 4
    BOOL = 6


_KIND_NAMES = {int(kind): kind.name.lower() for kind in TypeKind}


class DataType(NamedTuple):
    """An element's type: `code` a `TypeKind`, `bits` of one lane, `lanes` values in one element.

    A boolean is an unsigned integer of one bit, as in TVM before v0.21, and takes a byte.
    """

    code: int
    bits: int
    lanes: int = 1

    @property
    def itemsize(self) -> int:
        """Bytes that one element takes in memory: each is rounded up to whole bytes."""
        return (self.bits * self.lanes + 7) // 8

    def pack(self) -> bytes:
        """u8 code, u8 bits, u16 lanes."""
        return _DTYPE.pack(self.code, self.bits, self.lanes)

    @classmethod
    def unpack_from(cls, data: bytes | memoryview, offset: int = 0) -> DataType:
        return cls(*_DTYPE.unpack_from(data, offset))

    def __str__(self) -> str:
        lanes = f"x{self.lanes}" if self.lanes != 1 else ""
        if self[:2] == (TypeKind.UINT, 1):
            return f"bool{lanes}"
        if self[:2] == (TypeKind.HANDLE, 64):
            return f"handle{lanes}"
        return f"{_KIND_NAMES.get(self.code, f'code{self.code}_')}{self.bits}{lanes}"


BOOLEAN: Final = DataType(TypeKind.BOOL, 8)
"""The boolean type of code that TVM generates from v0.21 on."""


def parse_dtype(name: str) -> DataType:
    """The type of that name. Raises TypeError for a name that the wire does not know."""
    spelled = re.sub(r"^handle(?=x|$)", "handle64", re.sub(r"^bool(?=x|$)", "uint1", name))
    match = _NAME.fullmatch(spelled)
    if not match:
        raise TypeError(
            f"{name!r} is no type that the wire carries: int, uint, float, bfloat, handle or bool"
        )
    kind, bits, lanes = match[1], int(match[2]), int(match[3] or 1)
    if not 1 <= bits <= 255 or not 1 <= lanes <= 65535:
        raise TypeError(f"{name!r}: bits are 1..255 and lanes 1..65535")
    if bits not in _PACKED and bits % 8:
        raise TypeError(f"{name!r}: bits are 1, 2, 4, or a multiple of 8")
    return DataType(TypeKind[kind.upper()], bits, lanes)


DTypeLike = str | DataType | npt.DTypeLike


def to_dtype(dtype: DTypeLike) -> DataType:
    """The wire's type for a numpy type, a name or a `DataType`. Raises TypeError when the wire has none."""
    if isinstance(dtype, DataType):
        return dtype
    if isinstance(dtype, str) and not _is_numpy_name(dtype):
        return parse_dtype(dtype)
    if dtype is None:
        raise TypeError("a type of elements is needed, not None, which numpy takes for float64")
    return _from_numpy(np.dtype(dtype))


# Names of machine-dependent types in numpy before 2.0; their digits are not a number of bits.
_ONCE_NUMPYS: Final = frozenset({"int0", "uint0"})


def _is_numpy_name(name: str) -> bool:
    """Names that only numpy knows ("f4", "<i2", "double"): the wire's own spelling comes first."""
    try:
        parse_dtype(name)
    except TypeError:
        return _numpy_knows(name)
    return False


def _numpy_knows(name: str) -> bool:
    if name in _ONCE_NUMPYS:
        return False
    try:
        np.dtype(name)
    except TypeError:
        return False
    return True


@cache
def _from_numpy(dtype: np.dtype[Any]) -> DataType:
    if dtype.kind == "b":
        return DataType(TypeKind.UINT, 1)
    if dtype.name == "bfloat16":
        return DataType(TypeKind.BFLOAT, 16)
    kind = {"i": TypeKind.INT, "u": TypeKind.UINT, "f": TypeKind.FLOAT}.get(dtype.kind)
    if kind is None or dtype.isbuiltin == 2 or dtype.itemsize > 8:
        raise TypeError(f"numpy's {dtype.name} has no type on the wire: int, uint, float, bool or bfloat16")
    return DataType(kind, dtype.itemsize * 8)


def to_numpy(dtype: DataType) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The numpy type that holds one element, little-endian, and the shape within an element (its lanes).

    Numpy has no bfloat16: `ml_dtypes` adds it once imported, else the bits are held as uint16. Types of other
    widths are held as raw bytes (numpy's void).
    """
    inner = (dtype.lanes,) if dtype.lanes > 1 else ()
    single = _single(dtype)
    return (single, inner) if single is not None else (np.dtype(f"V{dtype.itemsize}"), ())


_LETTERS: dict[int, str] = {TypeKind.INT: "i", TypeKind.UINT: "u", TypeKind.FLOAT: "f", TypeKind.HANDLE: "u"}


def _single(dtype: DataType) -> np.dtype[Any] | None:
    if (dtype.code, dtype.bits) == (TypeKind.UINT, 1):
        return np.dtype(np.bool_) if dtype.lanes == 1 else None
    if (dtype.code, dtype.bits) == (TypeKind.BFLOAT, 16):
        return np.dtype("bfloat16" if _numpy_knows("bfloat16") else "<u2")
    if (dtype.code, dtype.bits) == (TypeKind.BOOL, 8):
        return np.dtype(np.bool_)
    letter = _LETTERS.get(dtype.code)
    widths = (16, 32, 64) if letter == "f" else (8, 16, 32, 64)
    return np.dtype(f"<{letter}{dtype.bits // 8}") if letter and dtype.bits in widths else None
