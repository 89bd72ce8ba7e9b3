# SPDX-License-Identifier: Apache-2.0
"""Declarations of objects and archives, and sizes of their functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from minrpc.errors import ProgramFileError
from minrpc.program.c_types import Declarations
from minrpc.program.debug_info import object_units, read_declarations
from minrpc.program.elf import FUNCTION, Elf
from minrpc.program.merging import merged
from minrpc.program.reader_errors import reads
from minrpc.program.walking import children

_ARCHIVE: Final = b"!<arch>\n"
_MEMBER: Final = 60
_ELF: Final = b"\x7fELF"


def read_objects(paths: Sequence[Path], contents: Sequence[bytes]) -> Declarations:
    """The declarations of objects and archives; the first of a name counts.

    Raises ProgramFileError.
    """
    return merged([read_object(path, content) for path, content in zip(paths, contents, strict=True)])


def read_object(path: Path, content: bytes) -> Declarations:
    """The declarations of an object or archive. Raises ProgramFileError."""
    return merged([read_declarations(elf) for elf in elves_in(path, content)])


def elves_of(path: Path) -> list[Elf]:
    """The objects of a file, as `elves_in` reads them. Raises OSError, ProgramFileError."""
    return elves_in(path, path.read_bytes())


def elves_of_library(path: Path) -> list[Elf]:
    """The objects of a file that the linker searches; a linker script has none.

    Raises OSError, ProgramFileError.
    """
    content = path.read_bytes()
    return elves_in(path, content) if content.startswith((b"!<", _ELF)) else []


@reads
def elves_in(path: Path, content: bytes) -> list[Elf]:
    """The objects in an archive; for another file, its content. Raises ProgramFileError."""
    if path.suffix != ".a":
        if content[:4] != _ELF:
            raise ProgramFileError(f"{path.name} is no object file", next_step="compile its source again")
        return [Elf(content, path.name)]
    if content[:8] != _ARCHIVE:
        raise ProgramFileError(
            f"{path.name} is no archive", next_step="name an archive that `ar` made, not a thin archive"
        )
    elves, at = [], len(_ARCHIVE)
    while at + _MEMBER <= len(content):
        size = int(content[at + 48 : at + 58])
        if size < 0:
            raise ValueError("a member has a negative size")
        member = content[at + _MEMBER : at + _MEMBER + size]
        if member[:4] == _ELF:
            elves.append(Elf(member, path.name))
        at += _MEMBER + size + size % 2
    return elves


@reads
def inlined_functions(elf: Elf) -> set[str]:
    """Names of the functions whose callers do not call their symbol: the compiler has put the code into them
    (DW_AT_inline, DWARF 5, 3.3.8.1), or they call a copy ("f.localalias", "f.constprop.0")."""
    copied = {
        symbol.name.partition(".")[0]
        for symbol in elf.symbols
        if symbol.kind == FUNCTION and "." in symbol.name
    }
    return copied | {
        die.attributes["DW_AT_name"].value.decode()
        for unit in object_units(elf)
        for die in children(unit.get_top_DIE())
        if die.tag == "DW_TAG_subprogram" and {"DW_AT_inline", "DW_AT_name"} <= die.attributes.keys()
    }


def function_sizes(paths: Iterable[Path]) -> dict[str, int]:
    """Size of each function's machine code before linking, in bytes, by symbol.

    A symbol without a size has that of the function at its place.
    """
    by_symbol: dict[str, int] = {}
    for path in paths:
        for elf in elves_of(path):
            functions = [symbol for symbol in elf.symbols if symbol.kind == FUNCTION]
            sizes = {(symbol.section, symbol.value): symbol.size for symbol in functions if symbol.size}
            known = {symbol.name: sizes.get((symbol.section, symbol.value), 0) for symbol in functions}
            by_symbol |= {name: size for name, size in known.items() if size}
    return by_symbol


class SectionSizes(NamedTuple):
    """Bytes as binutils' size counts them: code and constants, initial values, zeros."""

    text: int
    data: int
    bss: int


def section_sizes(path: Path) -> SectionSizes:
    """The sections of an object, or of all objects of an archive."""
    sections = [section for elf in elves_of(path) for section in elf.sections if section.allocated]
    written = [section for section in sections if section.writable]
    return SectionSizes(
        sum(section.size for section in sections if not section.writable),
        sum(section.size for section in written if section.stored),
        sum(section.size for section in written if not section.stored),
    )
