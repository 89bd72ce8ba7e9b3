# SPDX-License-Identifier: Apache-2.0
"""Declarations of objects and archives, and sizes of their functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from minrpc.errors import ConfigurationError
from minrpc.program.c_types import CType, Declarations, FunctionDeclaration, Variable
from minrpc.program.debug_info import UNTYPED, add_function, read_declarations
from minrpc.program.elf import FUNCTION, Elf

_ARCHIVE: Final = b"!<arch>\n"
_MEMBER: Final = 60
_ELF: Final = b"\x7fELF"


def read_objects(paths: Sequence[Path], contents: Sequence[bytes]) -> Declarations:
    """The declarations of objects and archives; the first of a name counts.

    Raises ConfigurationError for a file with an archive's name that is not an archive.
    """
    return merged([read_object(path, content) for path, content in zip(paths, contents, strict=True)])


def read_object(path: Path, content: bytes) -> Declarations:
    """The declarations of an object or archive. Raises as `read_objects` does."""
    return merged([read_declarations(Elf(member)) for member in members(path, content)])


def members(path: Path, content: bytes) -> list[bytes]:
    """The objects in an archive; for another file, its content."""
    if path.suffix != ".a":
        if content[:4] != _ELF:
            raise ConfigurationError(f"{path.name} is no object file", next_step="compile its source again")
        return [content]
    if content[:8] != _ARCHIVE:
        raise ConfigurationError(
            f"{path.name} is no archive", next_step="name an archive that `ar` made, not a thin archive"
        )
    found, at = [], len(_ARCHIVE)
    while at + _MEMBER <= len(content):
        size = int(content[at + 48 : at + 58])
        member = content[at + _MEMBER : at + _MEMBER + size]
        if member[:4] == _ELF:
            found.append(member)
        at += _MEMBER + size + size % 2
    return found


def merged(several: Sequence[Declarations]) -> Declarations:
    """All declarations; the first of a name counts."""
    functions: dict[str, FunctionDeclaration] = {}
    variables: dict[str, Variable] = {}
    types: dict[str, CType] = {}
    declared: dict[str, FunctionDeclaration] = {}
    statics: dict[str, FunctionDeclaration] = {}
    for declarations in reversed(several):
        declared.update(declarations.declared)
        statics.update(declarations.statics)
        variables.update(declarations.variables)
        types.update(declarations.types)
    for function in (function for declarations in several for function in declarations.functions.values()):
        add_function(functions, function)
    for name, function in functions.items():
        # A C file's declaration of an assembler function.
        if function.unsupported == UNTYPED:
            functions[name] = declared.get(function.symbol, function)
    return Declarations(functions, variables, types, declared, statics)


def function_sizes(paths: Iterable[Path]) -> dict[str, int]:
    """Size of each function's machine code before linking, in bytes, by symbol."""
    return {
        symbol.name: symbol.size
        for path in paths
        for member in members(path, path.read_bytes())
        for symbol in Elf(member).symbols
        if symbol.kind == FUNCTION and symbol.size
    }


class SectionSizes(NamedTuple):
    """Bytes as binutils' size counts them: code and constants, initial values, zeros."""

    text: int
    data: int
    bss: int


def section_sizes(path: Path) -> SectionSizes:
    """The sections of an object, or of all objects of an archive."""
    elves = (Elf(member) for member in members(path, path.read_bytes()))
    sections = [section for elf in elves for section in elf.sections if section.allocated]
    written = [section for section in sections if section.writable]
    return SectionSizes(
        sum(section.size for section in sections if not section.writable),
        sum(section.size for section in written if section.stored),
        sum(section.size for section in written if not section.stored),
    )
