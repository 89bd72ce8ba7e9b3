# SPDX-License-Identifier: Apache-2.0
"""A library's types and variables, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Any, NoReturn, Protocol

import numpy as np

from minrpc.library.pointer_types import Callback
from minrpc.library.scalars import enum_class
from minrpc.library.structs import Place, StructValue, load_value, make_struct, store_value
from minrpc.names import in_files, listed, near_or_all, text_name
from minrpc.program.c_types import (
    CType,
    Enumeration,
    Qualified,
    RecordType,
    Variable,
    declaration,
    flat_fields,
    is_const,
    numpy_dtype,
    size_of,
    strip,
)


def _not_one(kind: str, name: str, known: Iterable[str], shown: Iterable[str]) -> str:
    """Says that the name is none, or that of several: "no type 'pt'; it has point"."""
    several = [f'{kind}s(lib)["{qualified}"]' for qualified in in_files(name, known)]
    if several:
        return f"several {kind}s {name!r}: {listed(several, 6)}"
    return f"no {kind} {name!r}; it has {listed(near_or_all(name, shown), 8)}"


class StructType:
    """The constructor of a struct's values: `fir_instance(taps=8, state=buffer)`, or `point(1, 2)` in the
    order of its members, as in C. Members left out are zero."""

    def __init__(self, name: str, ctype: CType) -> None:
        self.name = name
        self.ctype = ctype

    def __call__(self, /, *ordered: object, **values: object) -> StructValue:
        """A struct. Raises TypeError and ValueError for unknown members and for values that do not fit."""
        return make_struct(self.ctype, self.name, values, ordered)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Numpy's structured type with the C layout, for arrays of the struct."""
        return numpy_dtype(self.ctype)

    @property
    def size(self) -> int:
        """Size of one struct, in bytes."""
        return size_of(self.ctype)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        record = strip(self.ctype)
        members = [field.name for field in flat_fields(record)] if isinstance(record, RecordType) else []
        raise AttributeError(f"{self.name} is a type without {name!r}; its values have {listed(members, 8)}")

    def __repr__(self) -> str:
        record = strip(self.ctype)
        if not isinstance(record, RecordType) or not record.complete:
            return f"<{declaration(self.ctype)}, incomplete>"
        members = "; ".join(
            declaration(field.type, field.name) + (f" : {field.bits}" if field.bits is not None else "")
            for field in flat_fields(record)
        )
        return f"<{declaration(self.ctype)} {{ {members}; }}>"


class Types:
    """Structs and enums by tag or typedef name."""

    def __init__(self, library: str, types: Mapping[str, CType]) -> None:
        self._minrpc_library = library
        self._minrpc_types = types

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - StructType, or an enum
        ctype = self._minrpc_types.get(text_name(name, "type"))
        if ctype is None and name.startswith("__"):  # Python asks for these.
            raise AttributeError(name)
        if ctype is None:
            raise AttributeError(
                f"{self._minrpc_library} has {_not_one('type', name, self._minrpc_types, self)}"
            )
        return _made(name, ctype)

    __getitem__ = __getattr__

    def __iter__(self) -> Iterator[str]:
        return (
            name
            for name, ctype in self._minrpc_types.items()
            if isinstance(strip(ctype), RecordType | Enumeration)
        )

    def __dir__(self) -> list[str]:
        return sorted(self)

    def __repr__(self) -> str:
        return f"<types of {self._minrpc_library}: {', '.join(sorted(self))}>"


def _made(name: str, ctype: CType) -> StructType | type[IntEnum] | np.dtype[Any]:
    stripped = strip(ctype)
    if isinstance(stripped, RecordType):
        return StructType(name, ctype)
    if isinstance(stripped, Enumeration):
        return enum_class(ctype)
    return numpy_dtype(ctype)


class ProgramMemory(Protocol):
    """Protocol: the symbols and memory of the library that has the variables."""

    name: str
    callback: Callback | None

    def require_there(self) -> None:
        """Raise ValueError if its memory is no longer its own."""

    @property
    def symbols(self) -> Any:  # noqa: ANN401 - Symbols, whose module this one is below of
        """Addresses of the linked symbols."""

    def read(self, address: int, size: int, /) -> bytes | memoryview:
        """Bytes of the device's memory."""

    def write(self, address: int, data: bytes, /) -> None:
        """Overwrite bytes of the device's memory."""


class VariableOnDevice:
    """A variable on the device; it can be an argument for a pointer to its type.

    address: its address. pointee: its type.
    """

    def __init__(self, library: ProgramMemory, variable: Variable, address: int) -> None:
        self.name = variable.name
        self.pointee = variable.type
        self._address = address
        self._library = library

    @property
    def address(self) -> int:
        """Its address. Raises ValueError when its library is no longer loaded."""
        self._library.require_there()
        return self._address

    def read(self) -> Any:  # noqa: ANN401 - number, numpy array, struct
        """The current value: a number, a read-only numpy array, a struct whose members can be set."""
        place = Place(self._library, self.address, is_const(self.pointee), self._library.callback)
        return load_value(self.pointee, self._library.read(self.address, size_of(self.pointee)), place)

    def write(self, value: object) -> None:
        """Overwrite the variable. Raises TypeError, ValueError."""
        where = f"{self._library.name}: {self.name}"
        if is_const(self.pointee):
            raise TypeError(f"{where}: {declaration(self.pointee, self.name)} can't be written")
        self._library.write(self.address, store_value(self.pointee, where, value, self._library.callback))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<{declaration(self.pointee, self.name)} at 0x{self._address:x}>"


class Variables:
    """Variables of file scope: an attribute reads and writes the value; `[name]` is the variable itself."""

    def __init__(self, library: ProgramMemory, variables: Mapping[str, Variable]) -> None:
        object.__setattr__(self, "_minrpc_library", library)
        object.__setattr__(self, "_minrpc_variables", variables)

    _minrpc_library: ProgramMemory
    _minrpc_variables: Mapping[str, Variable]

    def __getitem__(self, name: str) -> VariableOnDevice:
        """The variable itself. Raises AttributeError when there is none."""
        variable = self._minrpc_variables.get(text_name(name, "variable"))
        if variable is None:
            reason = _not_one("variable", name, self._minrpc_variables, self._minrpc_variables)
            raise AttributeError(f"{self._minrpc_library.name} has {reason}")
        address = self._minrpc_library.symbols.addresses.get(variable.symbol)
        if address is None:
            why = "" if variable.external else ", or several files have the name of its file"
            raise AttributeError(
                f"{self._minrpc_library.name}: {name} was left out, since nothing uses it{why}"
            )
        record = strip(variable.type)
        size = self._minrpc_library.symbols.sizes.get(variable.symbol)
        if isinstance(record, RecordType) and record.is_flexible and size:  # Its size tells the elements.
            each = size_of(record.with_tail(1).types[-1])
            count = max(0, size - record.fields[-1].offset) // max(each, 1)
            whole = record.with_tail(count)
            variable = replace(variable, type=Qualified(whole, "const") if is_const(variable.type) else whole)
        return VariableOnDevice(self._minrpc_library, variable, address)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - number, numpy array, struct
        if name.startswith("__") and name not in self._minrpc_variables:
            raise AttributeError(name)
        return self[name].read()

    def __setattr__(self, name: str, value: object) -> None:
        self[name].write(value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._minrpc_variables)

    def __dir__(self) -> list[str]:
        return sorted(self._minrpc_variables)

    def __repr__(self) -> str:
        shown = "; ".join(
            declaration(variable.type, variable.name) for variable in self._minrpc_variables.values()
        )
        return f"<variables of {self._minrpc_library.name}: {shown}>"
