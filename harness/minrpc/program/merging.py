# SPDX-License-Identifier: Apache-2.0
"""The declarations of several files as those of one program."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from minrpc.program.c_types import (
    CType,
    Declarations,
    FunctionDeclaration,
    Item,
    Origin,
    RecordType,
    Scalar,
    Variable,
    same_type,
    size_of,
    strip,
)

UNTYPED: Final = (
    "it is written in assembler, which has no prototypes: "
    "give `declare=` a prototype or a header, or call it from a C file beside it"
)
"""Reason why a function without known types can't be called."""

_DIFFERENT: Final = "files declare it in different ways: "

OVERLOADED: Final = 'it is overloaded: call the wanted function by an extern "C" function beside it'
"""Reason why an overloaded C++ function can't be called."""


def merged(several: Sequence[Declarations]) -> Declarations:
    """All declarations. The first function of a name counts; types and variables: see `Declarations`."""
    functions: dict[str, FunctionDeclaration] = {}
    declared: dict[str, FunctionDeclaration] = {}
    statics: dict[str, FunctionDeclaration] = {}
    for declarations in reversed(several):
        for name, function in declarations.declared.items():
            # One without a prototype, `int get();`, tells less than another file's.
            known = declared.get(name)
            if known is None or function.type.has_prototype:
                declared[name] = _of_two(known, function) if known else function
        statics.update(declarations.statics)
    for function in (function for declarations in several for function in declarations.functions.values()):
        add_function(functions, function)
    for name, function in functions.items():
        # A C file's declaration of an assembler function.
        if function.unsupported == UNTYPED:
            functions[name] = declared.get(function.symbol, function)
    variables = _distinct_variables(
        [origin for declarations in several for origin in declarations.every_variable]
    )
    types, named = _distinct_types([origin for declarations in several for origin in declarations.every_type])
    external = [origin for origin in variables if origin.item.external]
    others = [origin for origin in variables if not origin.item.external]
    return Declarations(
        functions,
        _external(external) | _by_name(others, {item.name for item in external}),
        _by_name(named),
        declared,
        statics,
        variables,
        types,
    )


def _of_two(known: FunctionDeclaration, function: FunctionDeclaration) -> FunctionDeclaration:
    """The declaration `function`; it can't be called if another file's passes its values in another way."""
    if known.unsupported.startswith(_DIFFERENT):
        return known
    first, second = known.type, function.type
    alike = len(first.used) == len(second.used) and all(map(_passed_alike, first.used, second.used))
    if alike or not first.has_prototype or known.unsupported or function.unsupported:
        return function
    return replace(function, unsupported=f"{_DIFFERENT}{function.prototype}; {known.prototype}")


def _passed_alike(first: CType, second: CType) -> bool:
    """True unless the values' sizes differ, or one of them is a floating-point number or a struct."""
    one, two = strip(first), strip(second)
    records = [each for each in (one, two) if isinstance(each, RecordType)]
    if not all(record.complete for record in records):
        return True
    floats = [isinstance(each, Scalar) and each.kind in ("float", "complex") for each in (one, two)]
    return size_of(one) == size_of(two) and len(records) != 1 and floats[0] == floats[1]


def add_function(
    functions: dict[str, FunctionDeclaration], function_declaration: FunctionDeclaration
) -> None:
    """Add a function by name. If several C++ functions have one name, only extern "C" functions can be
    called."""
    known = functions.setdefault(function_declaration.name, function_declaration)
    if known.symbol == known.name or (
        known.symbol == function_declaration.symbol and function_declaration.unsupported != OVERLOADED
    ):
        return
    functions[function_declaration.name] = (
        function_declaration
        if function_declaration.symbol == function_declaration.name
        else replace(known, unsupported=OVERLOADED)
    )


def names_of(items: Sequence[tuple[Path, str]], taken: Collection[str] = ()) -> Sequence[str]:
    """The names of things in files, for their users: "clamp", or "pid.c:clamp" if several files have it.

    taken: names that others have.
    """
    count = Counter(name for _, name in items)
    several = {name for name in count if count[name] > 1 or name in taken}
    files = _short({file for file, name in items if name in several})
    return [f"{files[file]}:{name}" if name in several else name for file, name in items]


def _short(files: Collection[Path]) -> Mapping[Path, str]:
    """The files' names, with as many directories as needed to make them differ."""
    names: dict[Path, str] = {}
    for file in files:
        parts = 1
        while any(other.parts[-parts:] == file.parts[-parts:] for other in files if other != file):
            parts += 1
        names[file] = "/".join(file.parts[-parts:])
    return names


def _by_name(origins: Sequence[Origin[Item]], taken: Collection[str] = ()) -> dict[str, Item]:
    """The items by the names for their users. Those of one name in one file, as in C++, have none."""
    names = names_of([(origin.file, origin.name) for origin in origins], taken)
    count = Counter(names)
    return {name: origin.item for name, origin in zip(names, origins, strict=True) if count[name] == 1}


def _external(origins: Sequence[Origin[Variable]]) -> dict[str, Variable]:
    """The variables by name: "n", or "pid::n" if several namespaces of C++ have it."""
    count = Counter(origin.name for origin in origins)
    return {
        _qualified(origin.item) if count[origin.name] > 1 else origin.name: origin.item for origin in origins
    }


def _qualified(variable: Variable) -> str:
    """The name with its namespaces, from the linker's name: "_ZN3pid1nE" (Itanium C++ ABI, 5.1)."""
    rest, parts = variable.symbol.removeprefix("_ZN"), []
    while (size := re.match(r"\d+", rest)) is not None:
        end = size.end() + int(size[0])
        parts.append(rest[size.end() : end])
        rest = rest[end:]
    return "::".join(parts) if rest == "E" else variable.name


def _distinct_variables(origins: Iterable[Origin[Variable]]) -> Sequence[Origin[Variable]]:
    """Each variable with external linkage once, and all others."""
    distinct: dict[object, Origin[Variable]] = {}
    for origin in origins:
        distinct.setdefault(origin.item.symbol if origin.item.external else id(origin), origin)
    return list(distinct.values())


def _distinct_types(
    origins: Iterable[Origin[CType]],
) -> tuple[Sequence[Origin[CType]], Sequence[Origin[CType]]]:
    """Each type of a name once, and structs of which only the name is known; and those that have a name.

    A struct of which only the name is known gets the members that another file defines, if it is one struct
    for all files: pointers to either are pointers to the same type.
    """
    by_name: dict[str, list[Origin[CType]]] = defaultdict(list)
    for origin in origins:
        by_name[origin.name].append(origin)
    kept, named = [], []
    same: set[tuple[int, int]] = set()
    for several in by_name.values():
        whole: list[Origin[CType]] = []
        for origin in several:
            if _is_complete(origin.item) and not any(same_type(one.item, origin.item, same) for one in whole):
                whole.append(origin)
        if len(whole) > 1:
            files = _short({origin.file for origin in several})
            for origin in several:
                record = strip(origin.item)
                if isinstance(record, RecordType) and record.names[1] == origin.name:
                    record.file = files[origin.file]
        opaque = [origin for origin in several if not _is_complete(origin.item)]
        if len(whole) == 1:
            for origin in opaque:
                _complete(strip(origin.item), strip(whole[0].item))
        kept += [*whole, *(origin for origin in opaque if not _is_complete(origin.item))]
        named += whole or opaque[:1]
    return kept, named


def _is_complete(ctype: CType) -> bool:
    record = strip(ctype)
    return not isinstance(record, RecordType) or record.complete


def _complete(record: CType, other: CType) -> None:
    """Give a struct of which only the name is known the members of the same struct."""
    if isinstance(record, RecordType) and isinstance(other, RecordType) and same_type(record, other):
        record.size, record.trivial, record.fields = other.size, other.trivial, other.fields
        record.complete = True
