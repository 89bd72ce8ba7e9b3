# SPDX-License-Identifier: Apache-2.0
"""From addresses to lines of source, as the line tables of an ELF file have them (DWARF, section 6.2)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from elftools.dwarf.lineprogram import LineProgram
from elftools.elf.elffile import ELFFile


class Line(NamedTuple):
    """A line of a source file, as the debug information names it."""

    file: str
    number: int


class LineTable:
    """The lines of the code in an ELF file; none where it has no debug information."""

    def __init__(self, program: BinaryIO) -> None:
        # Of several rows at an address the last one counts, as binutils has it. Sorting is stable.
        rows = sorted(_rows(ELFFile(program)), key=lambda row: row[:2])
        self._starts = [start for start, _, _ in rows]
        self._lines = [line for _, _, line in rows]

    def at(self, address: int) -> Line | None:
        """The line that the code at `address` was made from; None where nothing tells."""
        index = bisect_right(self._starts, address) - 1
        return self._lines[index] if index >= 0 else None

    @property
    def starts(self) -> list[tuple[int, Line]]:
        """Where code of each line begins, by address: several lines may begin at one."""
        return [
            (start, line) for start, line in zip(self._starts, self._lines, strict=True) if line is not None
        ]


def _rows(file: ELFFile) -> Iterator[tuple[int, bool, Line | None]]:
    """Where each row begins, and its line. An end counts only where no other row begins: it sorts first."""
    if not file.has_dwarf_info():
        return
    dwarf = file.get_dwarf_info()
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        root = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
        names = _names(program, root.value.decode() if root else "")
        for entry in program.get_entries():
            state = entry.state
            # A sequence at 0 that the linker dropped has no code; one that is code there has a vector table.
            if state is None:
                continue
            if state.end_sequence:
                yield state.address, False, None
            elif state.line:
                yield state.address, True, Line(names.get(state.file, "?"), state.line)


def _names(program: LineProgram, root: str) -> dict[int, str]:
    """The files of a line program by number: in DWARF 5 from 0 on, before from 1."""
    header = program.header
    directories = [_text(one) for one in header.include_directory]
    first = 0 if header.version >= 5 else 1
    if first:
        directories.insert(0, root)
    names = {}
    for number, entry in enumerate(header.file_entry, first):
        directory = directories[entry.dir_index] if entry.dir_index < len(directories) else ""
        whole = Path(root) / directory / entry.name.decode()
        names[number] = str(whole)
    return names


def _text(directory: object) -> str:
    return directory.decode() if isinstance(directory, bytes) else str(directory)
