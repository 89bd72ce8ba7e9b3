# SPDX-License-Identifier: Apache-2.0
"""Symbols, sections and relocations of an ELF file as arrays: each load reads some thousand of them."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

_CLASS: Final = 4
_BITS_64: Final = 2
_SYMTAB: Final = 2
_RELA: Final = 4
_NOBITS: Final = 8
_ALLOC: Final = 2
_TLS: Final = 0x400
_RELOCATED: Final = (b".debug_info", b".debug_types", b".debug_str_offsets")

_SECTION: Final = ("name", "type", "flags", "addr", "offset", "size", "link", "info", "align", "entsize")
_SHORT: Final = ("name", "type", "link", "info")
_SECTION_32: Final = np.dtype([(name, "<u4") for name in _SECTION])
_SECTION_64: Final = np.dtype([(name, "<u4" if name in _SHORT else "<u8") for name in _SECTION])
_SYMBOL_32: Final = np.dtype(
    [("name", "<u4"), ("value", "<u4"), ("size", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2")]
)
_SYMBOL_64: Final = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_RELA_32: Final = np.dtype([("offset", "<u4"), ("info", "<u4"), ("addend", "<i4")])
_RELA_64: Final = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])

# Relocations that store an address, and how many bytes: by machine, then type.
_STORES: Final = {
    62: {1: 8, 10: 4, 11: 4},  # x86-64: 64, 32, 32S
    183: {257: 8, 258: 4},  # AArch64: ABS64, ABS32
    243: {1: 4, 2: 8},  # RISC-V: 32, 64
}

LOCAL: Final = 0
GLOBAL: Final = 1
WEAK: Final = 2
FUNCTION: Final = 2
THREAD: Final = 6
HIDDEN: Final = 2
UNDEFINED: Final = 0


class Symbol(NamedTuple):
    """bind: LOCAL, GLOBAL, WEAK; kind: FUNCTION, ...; section: UNDEFINED where it is only needed."""

    name: str
    value: int
    size: int
    bind: int
    kind: int
    visibility: int
    section: int


class Elf:
    """A little-endian ELF file's tables. Raises ValueError for another file."""

    def __init__(self, content: bytes) -> None:
        if content[:4] != b"\x7fELF" or content[5] != 1:
            raise ValueError("no little-endian ELF file")
        self.content = content
        self._is_64 = content[_CLASS] == _BITS_64
        self.machine = int.from_bytes(content[18:20], "little")
        at = (0x28, 8, 0x3C, 0x3E) if self._is_64 else (0x20, 4, 0x30, 0x32)
        offset, count, names = (
            int.from_bytes(content[begin : begin + size], "little")
            for begin, size in ((at[0], at[1]), (at[2], 2), (at[3], 2))
        )
        self.sections = np.frombuffer(content, _SECTION_64 if self._is_64 else _SECTION_32, count, offset)
        strings = self._bytes_of(self.sections[names])
        self.names = [_text(strings, one) for one in self.sections["name"].tolist()]

    @cached_property
    def symbols(self) -> list[Symbol]:
        """Those with a name, as they stand in the file."""
        table, strings = self._symbol_table
        names = table["name"].tolist()
        info = table["info"]
        rows = zip(
            names,
            table["value"].tolist(),
            table["size"].tolist(),
            (info >> 4).tolist(),
            (info & 15).tolist(),
            (table["other"] & 3).tolist(),
            table["section"].tolist(),
            strict=True,
        )
        return [Symbol(_text(strings, name).decode(), *rest) for name, *rest in rows if name]

    def loaded(self) -> list[tuple[int, bytes]]:
        """Address and bytes of each section that takes room in memory and has content."""
        return [
            (int(one["addr"]), self._bytes_of(one))
            for one in self.sections
            if int(one["flags"]) & _ALLOC and one["type"] != _NOBITS and one["size"]
        ]

    @property
    def thread_locals(self) -> list[str]:
        """Names of its thread-local variables; "(unnamed)" for what no symbol names."""
        defined = {one.section for one in self.symbols if one.kind == THREAD and one.section != UNDEFINED}
        names = [
            one.name for one in self.symbols if one.kind == THREAD and one.section != UNDEFINED and one.size
        ]
        nameless = any(
            int(one["flags"]) & _TLS and one["size"] and index not in defined
            for index, one in enumerate(self.sections)
        )
        return names + ["(unnamed)"] * nameless

    def relocated(self) -> bytes:
        """The file with the references in what says types filled in, as the linker would."""
        stores = _STORES.get(self.machine)
        if stores is None:  # Elsewhere they are in place: relocations without addends.
            return self.content
        patched = bytearray(self.content)
        for section in self.sections:
            if section["type"] == _RELA and self.names[section["info"]] in _RELOCATED:
                self._apply(patched, section, stores)
        return bytes(patched)

    def _apply(self, patched: bytearray, section: Any, stores: dict[int, int]) -> None:  # noqa: ANN401 - a row
        layout = _RELA_64 if self._is_64 else _RELA_32
        table = np.frombuffer(
            self.content, layout, int(section["size"]) // layout.itemsize, int(section["offset"])
        )
        shift = 32 if self._is_64 else 8
        kinds = table["info"] & ((1 << shift) - 1)
        values = self._symbol_table[0]["value"][table["info"] >> shift].astype(np.int64) + table["addend"]
        base = int(self.sections[section["info"]]["offset"])
        for kind, size in stores.items():
            chosen = kinds == kind
            for offset, value in zip(table["offset"][chosen].tolist(), values[chosen].tolist(), strict=True):
                begin = base + offset
                patched[begin : begin + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")

    @cached_property
    def _symbol_table(self) -> tuple[Any, bytes]:
        layout = _SYMBOL_64 if self._is_64 else _SYMBOL_32
        for one in self.sections:
            if one["type"] == _SYMTAB:
                count = int(one["size"]) // layout.itemsize
                table = np.frombuffer(self.content, layout, count, int(one["offset"]))
                return table, self._bytes_of(self.sections[one["link"]])
        return np.zeros(0, layout), b""

    def _bytes_of(self, section: Any) -> bytes:  # noqa: ANN401 - a row of the table
        begin = int(section["offset"])
        return self.content[begin : begin + int(section["size"])]


def _text(strings: bytes, at: int) -> bytes:
    return strings[at : strings.index(b"\0", at)]
