# SPDX-License-Identifier: Apache-2.0
"""Finds the source of a function or an object by its address, from debug information."""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from collections.abc import Iterator

from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE
from elftools.dwarf.ranges import BaseAddressEntry

from minrpc.program.elf import LOCAL, SOURCE_FILE, Elf
from minrpc.program.lines import source_path
from minrpc.program.program import Program
from minrpc.program.reader_errors import reading
from minrpc.program.walking import children


class Origins:
    """The sources of a program.

    Definitions of file scope are found by address. A variable inside a function is a local symbol: the symbol
    table has it after the name of its source, without a directory. That name is used if only one source of
    the program has it.
    """

    def __init__(self, program: Program) -> None:
        self._at: dict[int, str] = {}
        with reading(program.name):
            self._read(program)

    def _read(self, program: Program) -> None:
        units: list[tuple[int, int, str]] = []
        by_name: dict[str, set[str]] = {}
        size = program.elf.bits // 8
        for unit in program.units():
            top = unit.get_top_DIE()
            path = _path(top)
            if not path:
                continue
            by_name.setdefault(posixpath.basename(path), set()).add(path)
            low, high = _range(top)
            if high > low:
                units.append((low, high, path))
            self._at.update((address, path) for address in _addresses(unit, size))
        self._units = sorted(units)
        single = {name: paths.pop() for name, paths in by_name.items() if len(paths) == 1}
        self._local = _locals(program.elf, single)

    def file_of(self, address: int, symbol: str) -> str | None:
        """The source; None if unknown."""
        return self._at.get(address) or self._local.get((address, symbol)) or self._unit_at(address)

    def _unit_at(self, address: int) -> str | None:
        index = bisect_right(self._units, (address, 1 << 64, "")) - 1
        if index < 0:
            return None
        low, high, path = self._units[index]
        return path if low <= address < high else None


def _path(top: DIE) -> str:
    name, directory = (top.attributes.get(key) for key in ("DW_AT_name", "DW_AT_comp_dir"))
    if name is None or not isinstance(name.value, bytes):
        return ""
    where = directory.value.decode(errors="replace") if directory else ""
    return source_path(where, name.value.decode(errors="replace"))


def _range(die: DIE) -> tuple[int, int]:
    """Begin and end of code in one piece; else 0 and 0."""
    low, high = die.attributes.get("DW_AT_low_pc"), die.attributes.get("DW_AT_high_pc")
    if low is None or high is None:
        return 0, 0
    return low.value, high.value if high.form == "DW_FORM_addr" else low.value + high.value


def _addresses(unit: CompileUnit, size: int) -> Iterator[int]:
    """Addresses of a source's functions and of its variables outside functions."""
    for die in children(unit.get_top_DIE()):
        if die.tag == "DW_TAG_subprogram":
            yield from _starts(die, unit)
        elif die.tag == "DW_TAG_variable":
            where = die.attributes.get("DW_AT_location")
            if where is None or where.form != "DW_FORM_exprloc":
                continue
            match where.value:
                case [0x03, *address] if len(address) == size:  # DW_OP_addr
                    yield int.from_bytes(bytes(address), "little")
                case [0xA1, *index]:  # DW_OP_addrx, of Clang: an index in LEB128
                    number = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(index))
                    yield unit.dwarfinfo.get_addr(unit, number)


def _starts(function: DIE, unit: CompileUnit) -> Iterator[int]:
    """Start of the function's code, and of its cold part if the compiler has split it."""
    low, ranges = (function.attributes.get(name) for name in ("DW_AT_low_pc", "DW_AT_ranges"))
    lists = unit.dwarfinfo.range_lists() if ranges is not None else None
    if ranges is not None and lists is not None:
        base = _range(unit.get_top_DIE())[0]
        for entry in lists.get_range_list_at_offset(ranges.value, unit):
            if isinstance(entry, BaseAddressEntry):
                base = entry.base_address
            else:
                yield entry.begin_offset + (0 if entry.is_absolute else base)
    elif low is not None:
        yield low.value


def _locals(elf: Elf, paths: dict[str, str]) -> dict[tuple[int, str], str]:
    """Sources of local symbols by address and name: the symbols follow their source's (STT_FILE)."""
    sources: dict[tuple[int, str], str] = {}
    source = None
    for symbol in elf.symbols:
        if symbol.kind == SOURCE_FILE:
            source = paths.get(posixpath.basename(symbol.name))
        elif source and symbol.bind == LOCAL:
            sources[elf.start_of(symbol), symbol.name] = source
    return sources
