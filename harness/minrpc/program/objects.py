# SPDX-License-Identifier: Apache-2.0
"""What objects and archives declare, and how large their functions are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from minrpc.errors import ConfigurationError
from minrpc.program.c_types import CType, Declarations, FunctionDeclaration, Variable
from minrpc.program.debug_info import UNTYPED, add_function, read_declarations
from minrpc.program.elf import FUNCTION, Elf

_ARCHIVE: Final = b"!<arch>\n"
_MEMBER: Final = 60


def read_objects(paths: Sequence[Path], contents: Sequence[bytes]) -> Declarations:
    """What objects and archives declare together; of one name the first counts.

    Raises ConfigurationError for a file that is no archive though it is called one.
    """
    return merged(
        [
            read_declarations(Elf(member))
            for path, content in zip(paths, contents, strict=True)
            for member in members(path, content)
        ]
    )


def members(path: Path, content: bytes) -> list[bytes]:
    """The objects in an archive; of another file itself."""
    if path.suffix != ".a":
        return [content]
    if content[:8] != _ARCHIVE:
        raise ConfigurationError(
            f"{path.name} is no archive", next_step="name one that `ar` made, not a thin one"
        )
    found, at = [], len(_ARCHIVE)
    while at + _MEMBER <= len(content):
        size = int(content[at + 48 : at + 58])
        member = content[at + _MEMBER : at + _MEMBER + size]
        if member[:4] == b"\x7fELF":
            found.append(member)
        at += _MEMBER + size + size % 2
    return found


def merged(several: Sequence[Declarations]) -> Declarations:
    """All of them; of one name the first counts."""
    functions: dict[str, FunctionDeclaration] = {}
    variables: dict[str, Variable] = {}
    types: dict[str, CType] = {}
    declared: dict[str, FunctionDeclaration] = {}
    for declarations in reversed(several):
        declared.update(declarations.declared)
        variables.update(declarations.variables)
        types.update(declarations.types)
    for function in (function for declarations in several for function in declarations.functions.values()):
        add_function(functions, function)
    for name, function in functions.items():
        # What a C file says of a function that is written in assembler.
        if function.unsupported == UNTYPED:
            functions[name] = declared.get(function.symbol, function)
    return Declarations(functions, variables, types, declared)


def function_sizes(paths: Iterable[Path]) -> dict[str, int]:
    """Bytes of machine code by the function's symbol, before linking."""
    return {
        symbol.name: symbol.size
        for path in paths
        for member in members(path, path.read_bytes())
        for symbol in Elf(member).symbols
        if symbol.kind == FUNCTION and symbol.size
    }
