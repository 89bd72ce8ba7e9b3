# SPDX-License-Identifier: Apache-2.0
"""Sections, segments, symbols and relocations of an ELF file, read by numpy: each load reads thousands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from elftools.elf.enums import ENUM_E_MACHINE

from minrpc.errors import ProgramFileError
from minrpc.program.reader_errors import reading, reads

_CLASS: Final = 4
_ENCODING: Final = 5
_BITS_64: Final = b"\2"
_BIG_ENDIAN: Final = b"\2"
_UNUSED: Final = 0
_SYMTAB: Final = 2
_RELA: Final = 4
_NOBITS: Final = 8
_REL: Final = 9
_DYNSYM: Final = 11
_PT_LOAD: Final = 1
_RELOCATED: Final = (b".debug_info", b".debug_types", b".debug_str_offsets")

_SECTION: Final = ("name", "type", "flags", "addr", "offset", "size", "link", "info", "align", "entsize")
_SHORT: Final = ("name", "type", "link", "info")
_SECTION_32: Final = np.dtype([(name, "<u4") for name in _SECTION])
_SECTION_64: Final = np.dtype([(name, "<u4" if name in _SHORT else "<u8") for name in _SECTION])
_SEGMENT: Final = ("offset", "vaddr", "paddr", "filesz", "memsz")
_SEGMENT_32: Final = np.dtype([(name, "<u4") for name in ("type", *_SEGMENT, "flags", "align")])
_SEGMENT_64: Final = np.dtype(
    [("type", "<u4"), ("flags", "<u4"), *((name, "<u8") for name in (*_SEGMENT, "align"))]
)
_SYMBOL_32: Final = np.dtype(
    [("name", "<u4"), ("value", "<u4"), ("size", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2")]
)
_SYMBOL_64: Final = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_REL_32: Final = np.dtype([("offset", "<u4"), ("info", "<u4")])
_REL_64: Final = np.dtype([("offset", "<u8"), ("info", "<u8")])
_RELA_32: Final = np.dtype([("offset", "<u4"), ("info", "<u4"), ("addend", "<i4")])
_RELA_64: Final = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])

_MACHINES: Final = {number: name for name, number in ENUM_E_MACHINE.items() if isinstance(number, int)}
# Sizes in bytes of relocations that store an address, by machine, then type.
_STORES: Final = {
    "EM_X86_64": {1: 8, 10: 4, 11: 4},  # 64, 32, 32S
    "EM_AARCH64": {257: 8, 258: 4},  # ABS64, ABS32
    "EM_RISCV": {1: 4, 2: 8},  # 32, 64
}

# A symbol's binding, STB_*.
LOCAL: Final = 0
GLOBAL: Final = 1
WEAK: Final = 2
# A symbol's kind, STT_*.
NO_TYPE: Final = 0
OBJECT: Final = 1
FUNCTION: Final = 2
SOURCE_FILE: Final = 4
THREAD: Final = 6
CHOSEN_AT_START: Final = 10
"""GNU's indirect function."""
HIDDEN: Final = 2
UNDEFINED: Final = 0
_FIRST_RESERVED: Final = 0xFF00


class Symbol(NamedTuple):
    """bind: LOCAL, GLOBAL, WEAK. kind: FUNCTION, ... section: UNDEFINED if it is defined elsewhere."""

    name: str
    value: int
    size: int
    bind: int
    kind: int
    visibility: int
    section: int

    @property
    def placed(self) -> bool:
        """True if it lies in a section: it is neither absolute nor undefined."""
        return UNDEFINED < self.section < _FIRST_RESERVED


class Section(NamedTuple):
    """`size` bytes at `address` in memory, or 0 in an object. stored: the file has its content."""

    name: str
    address: int
    size: int
    allocated: bool
    stored: bool
    writable: bool
    executable: bool
    thread_local: bool
    alignment: int


class Segment(NamedTuple):
    """A load segment: `size` bytes at `address`, of which the file has `stored`, kept at `loaded_at`."""

    address: int
    loaded_at: int
    size: int
    stored: int
    readable: bool
    writable: bool
    executable: bool


class Elf:
    """The tables of the ELF file `name`. It, and each member, raises ProgramFileError for a damaged file."""

    def __init__(self, content: bytes, name: str) -> None:
        if content[:4] != b"\x7fELF":
            raise ProgramFileError(f"{name} is no ELF file")
        self.name = name
        self.content = content
        self._is_64 = content[_CLASS : _CLASS + 1] == _BITS_64
        self.bits = 64 if self._is_64 else 32
        self.little_endian = content[_ENCODING : _ENCODING + 1] != _BIG_ENDIAN
        number = self._number(18, 2)
        self.machine = _MACHINES.get(number, f"machine {number}")
        with reading(name):
            self._read_headers()

    def _read_headers(self) -> None:
        at = (0x28, 8, 0x3C, 0x3E) if self._is_64 else (0x20, 4, 0x30, 0x32)
        if len(self.content) <= at[3]:
            raise ValueError("its header is cut off")
        offset, count, names = (self._number(at[0], at[1]), self._number(at[2], 2), self._number(at[3], 2))
        self._headers = self._table(_SECTION_64 if self._is_64 else _SECTION_32, count, offset)
        self._require_sections()
        strings = self._bytes_of(self._headers[names]) if count else b""
        self._names = [_text(strings, header) for header in self._headers["name"].tolist()]

    def _require_sections(self) -> None:
        """Raise ValueError for a section that ends behind the file, or refers to a missing section."""
        stored = self._headers[~np.isin(self._headers["type"], (_UNUSED, _NOBITS))]
        whole = len(self.content)
        if np.any((stored["offset"] > whole) | (stored["size"] > whole - stored["offset"])):
            raise ValueError("a section ends behind the file")
        count = len(self._headers)
        related = np.isin(stored["type"], (_RELA, _REL))
        if np.any((stored["link"] >= count) | (related & (stored["info"] >= count))):
            raise ValueError("a section refers to a section that is not there")

    @cached_property
    @reads
    def sections(self) -> list[Section]:
        """All sections, in the order of the file."""
        columns = [self._headers[name].tolist() for name in ("addr", "size", "flags", "type", "align")]
        return [
            Section(
                name.decode(errors="replace"),
                address,
                size,
                bool(flags & 2),
                kind != _NOBITS,
                bool(flags & 1),
                bool(flags & 4),
                bool(flags & 0x400),
                alignment,
            )
            for name, address, size, flags, kind, alignment in zip(self._names, *columns, strict=True)
        ]

    @cached_property
    @reads
    def segments(self) -> list[Segment]:
        """The load segments that take memory."""
        at = (0x20, 8, 0x38) if self._is_64 else (0x1C, 4, 0x2C)
        offset, count = self._number(at[0], at[1]), self._number(at[2], 2)
        table = self._table(_SEGMENT_64 if self._is_64 else _SEGMENT_32, count, offset)
        return [
            Segment(
                int(row["vaddr"]),
                int(row["paddr"]),
                int(row["memsz"]),
                int(row["filesz"]),
                readable=bool(row["flags"] & 4),
                writable=bool(row["flags"] & 2),
                executable=bool(row["flags"] & 1),
            )
            for row in table
            if row["type"] == _PT_LOAD and row["memsz"]
        ]

    def writes(self, section: Section) -> bool:
        """True if the program writes the section, which then lies in RAM.

        Code made writable by a linker script, and vectors made writable by an assembler, count as unwritten.
        """
        at_home = any(section.address in addresses for addresses in self._in_flash)
        return section.writable and not section.executable and not at_home

    @cached_property
    def _in_flash(self) -> list[range]:
        """Address ranges of code that runs in flash, in a program that copies its data to RAM."""
        stored = [segment for segment in self.segments if segment.stored]
        if all(segment.address == segment.loaded_at for segment in stored):
            return []
        return [
            range(segment.address, segment.address + segment.stored)
            for segment in stored
            if segment.address == segment.loaded_at and segment.executable
        ]

    @cached_property
    @reads
    def symbols(self) -> list[Symbol]:
        """Named symbols, in the order of the file; of a stripped program, the dynamic symbols."""
        return self._symbols_of(_SYMTAB) or self.dynamic_symbols

    @cached_property
    def statics(self) -> dict[str, Symbol]:
        """Variables with internal linkage by their file, "a.c:count"; none that files of one name share."""
        variables: dict[str, list[Symbol]] = defaultdict(list)
        file = ""
        for symbol in self.symbols:
            if symbol.kind == SOURCE_FILE:
                file = symbol.name.rpartition("/")[2]
            elif (symbol.bind, symbol.kind) == (LOCAL, OBJECT) and symbol.visibility != HIDDEN:
                variables[f"{file}:{symbol.name}"].append(symbol)
        return {name: several[0] for name, several in variables.items() if len(several) == 1}

    @cached_property
    @reads
    def dynamic_symbols(self) -> list[Symbol]:
        """The symbols for dynamic linking."""
        return self._symbols_of(_DYNSYM)

    @property
    def thread_locals(self) -> list[str]:
        """Names of its thread-local variables; "(unnamed)" for those without a symbol."""
        symbols = [symbol for symbol in self.symbols if symbol.kind == THREAD and symbol.section != UNDEFINED]
        defined = {symbol.section for symbol in symbols}
        nameless = any(
            section.thread_local and section.size and index not in defined
            for index, section in enumerate(self.sections)
        )
        return [symbol.name for symbol in symbols if symbol.size] + ["(unnamed)"] * nameless

    @property
    def machine_bit(self) -> int:
        """The bit of a function's address that marks the instruction set: 1 for Thumb on Arm, 0 elsewhere."""
        return 1 if self.machine == "EM_ARM" else 0

    def start_of(self, symbol: Symbol) -> int:
        """Address of the symbol's first byte."""
        return symbol.value & ~self.machine_bit if symbol.kind == FUNCTION else symbol.value

    def section(self, name: str) -> bytes | None:
        """The content of the section `name`; None without it."""
        wanted = name.encode()
        number = next((index for index, own in enumerate(self._names) if own == wanted), None)
        return None if number is None else self._bytes_of(self._headers[number])

    def loaded(self) -> list[tuple[int, bytes]]:
        """Address and bytes of each section that is in memory and has content."""
        return [
            (section.address, self._bytes_of(header))
            for section, header in zip(self.sections, self._headers, strict=True)
            if section.allocated and section.stored and section.size
        ]

    @reads
    def without_reserved(self, address: int) -> bytes:
        """The file, in which a section without content that holds `address` is empty.

        A debugger knows one section for an address: that of code that was loaded into reserved memory must
        not be the reserved memory's.
        """
        made = bytearray(self.content)
        at = (0x28, 8) if self._is_64 else (0x20, 4)
        headers = np.ndarray(self._headers.shape, self._headers.dtype, made, self._number(*at))
        inside = (headers["addr"] <= address) & (address - headers["addr"] < headers["size"])
        headers["size"][(headers["type"] == _NOBITS) & inside] = 0
        return bytes(made)

    @reads
    def relocated(self) -> bytes:
        """The file with its debug information's references resolved, as by the linker."""
        stores = _STORES.get(self.machine)
        if stores is None:  # Other machines have relocations without addends: the values are in place.
            return self.content
        patched = bytearray(self.content)
        for header in self._headers:
            if header["type"] == _RELA and self._names[header["info"]] in _RELOCATED:
                self._apply(patched, header, stores)
        return bytes(patched)

    @reads
    def used(self) -> set[str]:
        """The names of the symbols that an object's code and data refer to."""
        table, strings = self._symbol_table(_SYMTAB)
        numbers: set[int] = set()
        for header, name in zip(self._headers, self._names, strict=True):
            if header["type"] in (_REL, _RELA) and b".debug" not in name:
                numbers.update((self._relocations(header)["info"] >> (32 if self._is_64 else 8)).tolist())
        return {_text(strings, int(table[number]["name"])).decode(errors="replace") for number in numbers}

    @cached_property
    @reads
    def references(self) -> Mapping[int, set[tuple[int, str]]]:
        """For each section of an object, the symbols that its relocations refer to.

        A reference is a section of the object and "", or 0 and the name of a symbol that is defined
        elsewhere.
        """
        table, strings = self._symbol_table(_SYMTAB)
        references: dict[int, set[tuple[int, str]]] = {}
        for header in self._headers:
            owner = int(header["info"])
            if header["type"] not in (_REL, _RELA) or not self.sections[owner].allocated:
                continue
            numbers = np.unique(self._relocations(header)["info"] >> (32 if self._is_64 else 8))
            rows = table[numbers]
            targets = references.setdefault(owner, set())
            for name, section in zip(rows["name"].tolist(), rows["section"].tolist(), strict=True):
                if section == UNDEFINED and name:
                    targets.add((0, _text(strings, name).decode(errors="replace")))
                elif section < _FIRST_RESERVED:
                    targets.add((section, ""))
        return references

    def _apply(self, patched: bytearray, header: Any, stores: dict[int, int]) -> None:  # noqa: ANN401 - a row
        table = self._relocations(header)
        shift = 32 if self._is_64 else 8
        kinds = table["info"] & ((1 << shift) - 1)
        symbols = self._symbol_table(_SYMTAB)[0]["value"]
        values = symbols[table["info"] >> shift].astype(np.int64) + table["addend"]
        base = int(self._headers[header["info"]]["offset"])
        end = base + int(self._headers[header["info"]]["size"])
        for kind, size in stores.items():
            chosen = kinds == kind
            for offset, value in zip(table["offset"][chosen].tolist(), values[chosen].tolist(), strict=True):
                begin = base + offset
                if begin + size > end:
                    raise ValueError("a relocation lies behind its section")
                patched[begin : begin + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")

    def _relocations(self, header: Any) -> Any:  # noqa: ANN401 - numpy's structured arrays
        with_addend = header["type"] == _RELA
        if self._is_64:
            layout = _RELA_64 if with_addend else _REL_64
        else:
            layout = _RELA_32 if with_addend else _REL_32
        return self._table(layout, int(header["size"]) // layout.itemsize, int(header["offset"]))

    def _symbols_of(self, kind: int) -> list[Symbol]:
        table, strings = self._symbol_table(kind)
        info = table["info"]
        rows = zip(
            table["name"].tolist(),
            table["value"].tolist(),
            table["size"].tolist(),
            (info >> 4).tolist(),
            (info & 15).tolist(),
            (table["other"] & 3).tolist(),
            table["section"].tolist(),
            strict=True,
        )
        # Built without a function call for each symbol, since a firmware has thousands.
        ends = strings.index
        return [
            Symbol(strings[name : ends(b"\0", name)].decode(errors="replace"), *rest)
            for name, *rest in rows
            if name
        ]

    def _symbol_table(self, kind: int) -> tuple[Any, bytes]:
        layout = _SYMBOL_64 if self._is_64 else _SYMBOL_32
        for header in self._headers:
            if header["type"] == kind:
                table = self._table(layout, int(header["size"]) // layout.itemsize, int(header["offset"]))
                return table, self._bytes_of(self._headers[header["link"]])
        return np.zeros(0, layout), b""

    def _table(self, layout: np.dtype[Any], count: int, offset: int) -> Any:  # noqa: ANN401 - see above
        order = layout if self.little_endian else layout.newbyteorder(">")
        return np.frombuffer(self.content, order, count, offset)

    def _number(self, at: int, size: int) -> int:
        return int.from_bytes(self.content[at : at + size], "little" if self.little_endian else "big")

    def _bytes_of(self, header: Any) -> bytes:  # noqa: ANN401 - a row of the table
        begin = int(header["offset"])
        return self.content[begin : begin + int(header["size"])]


def _text(strings: bytes, at: int) -> bytes:
    end = strings.find(b"\0", at)
    return strings[at : end if end >= 0 else len(strings)]
