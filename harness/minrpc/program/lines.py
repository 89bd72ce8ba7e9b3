# SPDX-License-Identifier: Apache-2.0
"""Source lines of addresses, from the line tables of the debug information (DWARF, 6.2)."""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.lineprogram import LineProgram


class Line(NamedTuple):
    """A line of a source file. file: the whole path that the compiler got."""

    file: str
    number: int


class LineTable:
    """Source lines of the code of compilation units."""

    def __init__(self, units: Iterable[CompileUnit]) -> None:
        # The last of several rows at an address counts, as in binutils. Sorting is stable.
        rows = sorted((row for unit in units for row in _rows(unit)), key=lambda row: row[:2])
        self._starts = [start for start, _, _ in rows]
        self._lines = [line for _, _, line in rows]

    def at(self, address: int) -> Line | None:
        """The source line of the code at `address`; None if unknown."""
        index = bisect_right(self._starts, address) - 1
        return self._lines[index] if index >= 0 else None

    @property
    def starts(self) -> list[tuple[int, Line]]:
        """Start address of each line's code, sorted; several lines may start at the same address."""
        return [
            (start, line) for start, line in zip(self._starts, self._lines, strict=True) if line is not None
        ]


def source_path(root: str, *parts: str) -> str:
    """The whole path of a source. root: the directory in which the compiler ran."""
    return posixpath.normpath(posixpath.join(root, *parts))


def _rows(unit: CompileUnit) -> Iterator[tuple[int, bool, Line | None]]:
    """Each row's address and line. A sequence's end sorts first: it counts only if no row starts there."""
    program = unit.dwarfinfo.line_program_for_CU(unit)
    if program is None:
        return
    root = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
    names = _names(program, _text(root.value) if root else "")
    sequence: list[tuple[int, bool, Line | None]] = []
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if state.end_sequence:
            # A sequence at 0 belongs to code that the linker dropped: address 0 has a vector table, no code.
            if sequence and sequence[0][0] != 0:
                # A row at the end has no code; behind the last sequence it would count for all that follows.
                yield from (row for row in sequence if row[0] < state.address)
                yield state.address, False, None
            sequence = []
        elif state.line:
            sequence.append((state.address, True, Line(names.get(state.file, "?"), state.line)))


def _names(program: LineProgram, root: str) -> dict[int, str]:
    """The files of a line program by number: in DWARF 5 from 0 on, before from 1."""
    header = program.header
    directories = [_text(directory) for directory in header.include_directory]
    first = 0 if header.version >= 5 else 1
    if first:
        directories.insert(0, root)
    names = {}
    for number, entry in enumerate(header.file_entry, first):
        directory = directories[entry.dir_index] if entry.dir_index < len(directories) else ""
        names[number] = source_path(root, directory, _text(entry.name))
    return names


def _text(name: object) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)
