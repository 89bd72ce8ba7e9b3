# SPDX-License-Identifier: Apache-2.0
"""Converts C's numbers and addresses to Python values and bytes, and describes them in messages.

Errors name the place by `where`, such as "fir_q15: taps", the expected type, and the given value.
"""

from __future__ import annotations

import math
import struct
from enum import EnumType, IntEnum
from functools import lru_cache
from typing import Any, Final, NoReturn

import numpy as np

from minrpc.library.lent_pointers import Lent
from minrpc.names import kind_of, listed, near_or_all
from minrpc.program.c_types import (
    VOID,
    ArrayType,
    CType,
    Enumeration,
    Pointer,
    Qualified,
    Scalar,
    Typedef,
    declaration,
    numpy_dtype,
    size_of,
    strip,
    value_range,
)

_FLOATS: Final = {2: "<e", 4: "<f", 8: "<d"}


_ANY_POINTER: Final = Pointer(VOID, 8)


class Shown:
    """A value with a descriptive repr."""

    __slots__ = ()


class Address(int):
    """An address on the device, such as a pointer that a function returns. Pointer parameters take it.

    `Address(0x40000000)`, without a type, is a `void *`: it fits any pointer, as in C.
    """

    ctype: CType
    lent: Lent | None = None
    _NEXT = "it is an address, minrpc.read(lib, address) gives the value there"

    def __new__(cls, value: int, ctype: CType = _ANY_POINTER) -> Address:
        """`ctype`: the pointer's type. Raises ValueError for a negative number, TypeError for a value that is
        not an integer."""
        if not isinstance(value, int | np.integer):
            raise TypeError(f"an address is a whole number, not {value!r}")
        if value < 0:
            raise ValueError(f"an address is not negative: {value:#x}")
        made = super().__new__(cls, value)
        made.__dict__["ctype"] = ctype
        return made

    def lend(self, lent: Lent) -> None:
        """Note that it points into the memory of a call that is over."""
        self.__dict__["lent"] = lent
        lent.noted = True

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self!r} has no member {name!r}: {self._NEXT}")

    def __setattr__(self, name: str, value: object) -> None:
        self.__getattr__(name)

    def __repr__(self) -> str:
        return f"({declaration(self.ctype)})0x{int(self):x}"

    __str__ = __repr__


def describe(value: object) -> str:
    """A short description of the value: "int16[64]", "300", "'abc'"."""
    if isinstance(value, np.ndarray):
        order = "big-endian " if value.dtype.newbyteorder("<") != value.dtype else ""
        return f"{order}{value.dtype.name}[{','.join(map(str, value.shape))}]"
    if isinstance(value, Shown):
        return repr(value)
    if isinstance(value, int | float | np.generic | bytes | str | None):
        text = repr(value.item() if isinstance(value, np.generic) else value)
        return f"{text if len(text) <= 40 else text[:37] + '...'} ({type(value).__name__})"
    return kind_of(value)


def wrong(where: str, ctype: CType, value: object, reason: str = "") -> TypeError:
    """The error for a value of the wrong kind."""
    because = f": {reason}" if reason else ""
    return TypeError(f"{where}: expected {declaration(ctype)}, got {describe(value)}{because}")


class _Constants(EnumType):
    """An enum that names its constants where one is asked for that it lacks."""

    def __getitem__(cls, name: str) -> Any:  # noqa: ANN401 - as typeshed has it
        member = cls.__members__.get(name)
        if member is None:
            raise KeyError(
                f"enum {cls.__name__} has no constant {name!r}; it has {listed(cls.__members__, 8)}"
            )
        return member

    def __getattr__(cls, name: str) -> Any:  # noqa: ANN401 - a constant
        if name.startswith("__") and name not in cls.__members__:
            raise AttributeError(name)
        try:
            return cls[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None


class Constant(IntEnum, metaclass=_Constants):
    """A constant of a C enum."""


def enum_class(ctype: CType) -> type[Constant]:
    """The IntEnum for values of a C enum, which has its tag's name, or else its typedef's."""
    enumeration = strip(ctype)
    assert isinstance(enumeration, Enumeration)
    while isinstance(ctype, Qualified):
        ctype = ctype.type
    return _enum_class(enumeration, enumeration.tag or (ctype.name if isinstance(ctype, Typedef) else "enum"))


@lru_cache(maxsize=256)
def _enum_class(enumeration: Enumeration, title: str) -> type[Constant]:
    # Python's enums refuse some names: these are set afterwards.
    marked = [(f" {n}" if n == "mro" or n[0] == "_" else n, value) for n, value in enumeration.constants]
    made: type[Constant] = Constant(title, marked)  # type: ignore
    made._member_names_[:] = [name.lstrip() for name in made._member_names_]
    for name, member in list(made.__members__.items()):
        if name[0] == " ":
            member._name_ = member._name_.lstrip()
            name = name.lstrip()
            made._member_map_[name] = made._member_map_.pop(f" {name}")
            if name == "mro" or not hasattr(made, name):
                type.__setattr__(made, name, member)
    return made


def to_int(where: str, ctype: CType, value: object) -> int:
    """An integer, bool or enum of the type. Raises TypeError, and ValueError for a value out of its range."""
    stripped = strip(ctype)
    if isinstance(stripped, Enumeration) and isinstance(value, str):
        constants = dict(stripped.constants)
        if value not in constants:
            near = near_or_all(value, constants)
            raise ValueError(
                f"{where}: {declaration(ctype)} has no constant {value!r}; it has {listed(near, 6)}"
            )
        return constants[value]
    if isinstance(stripped, Scalar) and stripped.kind == "char" and isinstance(value, str | bytes):
        value = _character(where, ctype, value)
    limits = value_range(stripped)
    if limits is None or not isinstance(value, int | np.integer | np.bool_):
        raise wrong(where, ctype, value)
    if isinstance(value, Address):
        raise wrong(where, ctype, value, "a pointer is no number; int(pointer) is one")
    constant = (value._name_, int(value)) if isinstance(value, Constant) else None
    if constant and isinstance(stripped, Enumeration) and constant not in stripped.constants:
        raise wrong(where, ctype, value, "it is a constant of another enum")
    number = int(value)
    least, most = limits
    if isinstance(stripped, Scalar) and stripped.name == "char":
        least = -(most + 1) // 2 if least == 0 else least  # The compiler chooses the sign of plain char.
        most = max(most, 255)
    if not least <= number <= most:
        raise ValueError(
            f"{where}: expected {declaration(ctype)}, {least} to {most}, "
            f"got {number}, which is out of its range"
        )
    return number


def _character(where: str, ctype: CType, value: str | bytes) -> int:
    data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    if len(data) != 1:
        raise wrong(where, ctype, value, "one character is expected")
    return data[0]


def to_float(where: str, ctype: CType, value: object) -> float:
    """A floating-point number. Raises TypeError, and ValueError for a finite number that is too large."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise wrong(where, ctype, value)
    try:
        number = float(value)
        struct.pack(_FLOATS[size_of(ctype)], number)
        if math.isinf(number) and not np.isinf(value):  # A long double.
            raise OverflowError
    except OverflowError:
        shown = f"an integer of {value.bit_length()} bits" if isinstance(value, int) else f"{value:g}"
        raise ValueError(
            f"{where}: expected {declaration(ctype)}, got {shown}, which is out of its range"
        ) from None
    return number


def is_number(ctype: CType) -> bool:
    """True if a value is sent as a plain integer or float."""
    stripped = strip(ctype)
    if isinstance(stripped, Scalar):
        return stripped.kind not in ("complex", "other") and stripped.size <= 8
    return isinstance(stripped, Enumeration)


def is_float(ctype: CType) -> bool:
    """True for a floating-point type that Python's float can hold."""
    stripped = strip(ctype)
    return isinstance(stripped, Scalar) and stripped.kind == "float"


def number_bytes(where: str, ctype: CType, value: object) -> bytes:
    """A scalar's bytes in memory. Raises TypeError, ValueError."""
    size = size_of(ctype)
    if is_float(ctype):
        return struct.pack(_FLOATS[size], to_float(where, ctype, value))
    if value_range(ctype) is not None:
        return (to_int(where, ctype, value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    match strip(ctype):
        case Scalar(_, _, "complex"):
            part = Scalar(declaration(ctype), size // 2, "float")
            parts: tuple[object, ...] = (value, 0)
            if isinstance(value, complex | np.complexfloating):
                parts = value.real, value.imag
            return b"".join(number_bytes(where, part, item) for item in parts)
        case ArrayType(element, count):  # A vector.
            items = value.tolist() if isinstance(value, np.ndarray) else value
            if not isinstance(items, list | tuple) or len(items) != count:
                raise wrong(where, ctype, value, f"{count} elements are expected")
            each = (number_bytes(f"{where}[{index}]", element, item) for index, item in enumerate(items))
            return b"".join(each)
    raise TypeError(f"{where}: numpy has no type for {declaration(ctype)}")


def number_from(ctype: CType, data: bytes | bytearray | memoryview) -> Any:  # noqa: ANN401 - int, float, enum
    """The value of a scalar's bytes."""
    if is_float(ctype):
        return struct.unpack(_FLOATS[size_of(ctype)], data)[0]
    if not is_number(ctype) and value_range(ctype) is None:
        return np.frombuffer(data, numpy_dtype(ctype))[0]
    limits = value_range(ctype)
    signed = limits is not None and limits[0] < 0
    return int_value(ctype, int.from_bytes(data, "little", signed=signed))


def number_of_word(ctype: CType, word: int) -> Any:  # noqa: ANN401 - int, enum
    """The integer in the low bytes of a word of 64 bits: on the wire all words are signed."""
    return number_from(ctype, word.to_bytes(8, "little", signed=True)[: size_of(ctype)])


def int_value(ctype: CType, number: int) -> int:
    """An integer as a bool, an IntEnum member if the enum has the value, or an int, by its type."""
    stripped = strip(ctype)
    if isinstance(stripped, Scalar) and stripped.kind == "bool":
        return bool(number)
    if isinstance(stripped, Enumeration) and any(number == value for _, value in stripped.constants):
        return enum_class(ctype)(number)
    return number
