# SPDX-License-Identifier: Apache-2.0
"""Functions with internal linkage, made callable: each gets a global symbol beside its own."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from minrpc.firmware.cache import kept, objects_home
from minrpc.library.stack_bound import static_places
from minrpc.library.toolset import Toolset, run_tool
from minrpc.program import Elf
from minrpc.program.c_types import FunctionDeclaration
from minrpc.program.elf import FUNCTION, LOCAL, Symbol
from minrpc.program.merging import names_of

KEEP_STATICS: Final = ("-fkeep-static-functions", "-fkeep-inline-functions")
"""The compiler then keeps the code of each function, with the calling convention of its declaration."""
KEEP_INLINE: Final = ("-Dalways_inline=unused", "-D__always_inline__=__unused__", "-fgnu89-inline")
"""No option keeps the code of functions with this attribute: they get another one, which exists, too. Inline
functions without `static` have code by the rule of before C99."""
_HEADERS: Final = (".h", ".hh", ".hpp", ".hxx", ".H")
_SYMBOL: Final = "minrpc.static"


class StaticFunction(NamedTuple):
    """A function with internal linkage. file: that defines it. symbol: in the object."""

    declared: FunctionDeclaration
    file: Path
    symbol: Symbol


def static_functions(
    elf: Elf | None,
    graph: str,
    declared: Mapping[str, FunctionDeclaration],
    headers: Collection[Path] = (),
) -> Sequence[StaticFunction]:
    """An object's functions with internal linkage that no header defines but `headers`; none of an archive's.

    graph: GCC's call graph. declared: the functions that its debug information has, by name.
    """
    files = static_places(graph)
    return [
        StaticFunction(declared[symbol.name], files[symbol.name], symbol)
        for symbol in (elf.symbols if elf else ())
        if symbol.kind == FUNCTION
        and symbol.bind == LOCAL
        and symbol.placed
        and symbol.name in declared
        and symbol.name in files
        and (files[symbol.name] in headers if headers else files[symbol.name].suffix not in _HEADERS)
    ]


def callable_statics(
    objects: Sequence[Sequence[StaticFunction]], external: Collection[str]
) -> Sequence[Sequence[FunctionDeclaration]]:
    """Each object's functions by the names for their callers: "clamp", or "pid.c:clamp" if there are several.

    external: names of functions with external linkage, which keep their names.
    """
    items = [(function.file, function.declared.name) for functions in objects for function in functions]
    names = iter(enumerate(names_of(items, external)))
    by_object: list[list[FunctionDeclaration]] = []
    for functions in objects:
        by_object.append([])
        for function in functions:
            number, called = next(names)
            symbol = f"{_SYMBOL}{number}.{function.declared.name}"
            by_object[-1].append(replace(function.declared, name=called, symbol=symbol))
    return by_object


def with_global_symbols(
    path: Path,
    elf: Elf | None,
    functions: Sequence[StaticFunction],
    symbols: Sequence[str],
    toolset: Toolset,
) -> Path:
    """A copy of the object in which each function has the global symbol in `symbols`, too."""
    if elf is None or not functions:
        return path
    sections = elf.sections
    return _copied(
        path,
        elf,
        [
            f"--add-symbol={symbol}={sections[function.symbol.section].name}:{function.symbol.value},function,global"
            for function, symbol in zip(functions, symbols, strict=True)
        ],
        toolset,
    )


def weakened(path: Path, toolset: Toolset) -> Path:
    """A copy of the object whose definitions give way to others: a source may define a header's functions."""
    return _copied(path, Elf(path.read_bytes(), path.name), ["--weaken"], toolset)


def _copied(path: Path, elf: Elf, options: Sequence[str], toolset: Toolset) -> Path:
    """The copy of an object that objcopy makes."""
    key = hashlib.sha256(b"\0".join([elf.content, *(word.encode() for word in options)])).hexdigest()[:32]

    def fill(directory: Path) -> None:
        run_tool([toolset.program("objcopy"), *options, str(path), str(directory / "source.o")])

    return kept(objects_home() / key, fill) / "source.o"
