# SPDX-License-Identifier: Apache-2.0
"""Accesses of C to registers: those that it made, and those that a test expects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple


class Field(NamedTuple):
    """Some bits of a register. shift, width: in bits. names: of values, as an SVD file has them."""

    name: str
    shift: int
    width: int
    names: Mapping[int, str] = MappingProxyType({})

    @property
    def mask(self) -> int:
        """Its bits of the register."""
        return ((1 << self.width) - 1) << self.shift

    def of(self, value: int) -> int:
        """The field's value in a register's value."""
        return (value & self.mask) >> self.shift

    def shown(self, value: int) -> str:
        """The field in a register's value as text: "UE=1", "STOP=TwoBits"."""
        return f"{self.name}={self.names.get(self.of(value), self.of(value))}"


def decoded(fields: Iterable[Field], value: int) -> str:
    """The fields of a register's value that aren't 0, as text: "UE=1, STOP=TwoBits"; "" for none."""
    return ", ".join(field.shown(value) for field in fields if field.of(value))


class Access(NamedTuple):
    """One access of C to a register.

    size: in bytes. value: as an unsigned number. line: "file.c:12"; "" if unknown. fields: those that aren't
    0, as text; "" if unknown.
    """

    kind: Literal["read", "write"]
    name: str
    value: int
    address: int
    size: int
    line: str = ""
    fields: str = ""

    def __str__(self) -> str:
        where = f" at {self.line}" if self.line else ""
        width = "" if self.size == 4 else f" ({self.size} bytes)"
        return f"{self.kind} {self.name} 0x{self.value:x}{width}{where}{_in_brackets(self.fields)}"


class Expected(NamedTuple):
    """An access that a test expects. value: None for any value. fields: as those of `Access`."""

    kind: Literal["read", "write"]
    name: str
    value: int | None = None
    fields: str = ""

    def fits(self, access: Access) -> bool:
        """True if the access is the expected access."""
        return (self.kind, self.name) == access[:2] and self.value in (None, access.value)

    def __str__(self) -> str:
        value = "(any value)" if self.value is None else f"0x{self.value:x}"
        return f"{self.kind} {self.name} {value}{_in_brackets(self.fields)}"


def _in_brackets(fields: str) -> str:
    return f" ({fields})" if fields else ""
