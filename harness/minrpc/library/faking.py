# SPDX-License-Identifier: Apache-2.0
"""Links functions in Python to compiled sources: finds what the sources lack, and compiles stubs for it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from minrpc.errors import ConfigurationError, LoadError, UndefinedSymbolsError
from minrpc.library.compiling import Compiled, compile_text
from minrpc.library.fake_functions import Answer, Fake, FakeFunction
from minrpc.library.stubs import ASK, stub_source
from minrpc.library.thunks import LayoutError
from minrpc.library.toolset import Toolset, program_facts
from minrpc.names import listed
from minrpc.program import read_program
from minrpc.program.c_types import FunctionDeclaration
from minrpc.program.elf import UNDEFINED, Elf
from minrpc.program.objects import members

FakesGiven: TypeAlias = Mapping[str, Answer | Fake] | Literal["zero"]

ALL_OTHERS: Final = "*"
"""The name that stands for every function which is missing and not named."""


def with_fakes(
    compiled: Compiled, toolset: Toolset, fakes: FakesGiven, missing: Callable[[], Iterable[str]]
) -> tuple[Compiled, Mapping[str, FakeFunction]]:
    """The sources with stubs for functions that they lack, and the functions in Python by the stub's symbol.

    missing: finds the symbols that neither the sources nor the firmware have.

    Raises LoadError for firmware that can't ask, ConfigurationError for a function that can't be a fake.
    """
    given: Mapping[str, Answer | Fake] = {ALL_OTHERS: fakes} if isinstance(fakes, str) else fakes
    require_asking(toolset)
    named = {name: answer for name, answer in given.items() if name != ALL_OTHERS}
    lacking = _undefined(compiled)
    for name in named:
        if name not in lacking:
            raise _no_fake(compiled, name, lacking)
    if ALL_OTHERS in given:
        named |= {name: given[ALL_OTHERS] for name in missing() if name not in named}
    if not named:
        return compiled, {}
    made = {name: made_fake(_declaration(compiled, name), answer) for name, answer in named.items()}
    stubs = compile_stubs([_declaration(compiled, name) for name in named], toolset)
    *objects, thunks = compiled.objects
    key = hashlib.sha256(f"{compiled.key}{stubs.parent.name}".encode()).hexdigest()
    return replace(compiled, objects=(*objects, stubs, thunks), key=key), made


def made_fake(declared: FunctionDeclaration, answer: Answer | Fake) -> FakeFunction:
    """The function in Python behind `declared`. Raises TypeError, ConfigurationError."""
    if not isinstance(answer, Fake):
        return FakeFunction(declared, answer)
    try:
        return FakeFunction(declared, answer.answer, answer.parameters)
    except ValueError as error:
        raise ConfigurationError(
            f"the fake of {declared.name}: {error}", next_step="name each parameter, in the order of C"
        ) from error


def require_asking(toolset: Toolset) -> None:
    """Raise LoadError for firmware whose functions can't ask Python."""
    if ASK not in read_program(toolset.elf).symbols.addresses:
        raise LoadError(
            f"{toolset.elf.name} was built without functions that ask Python: no fakes, no callbacks",
            stage="load",
            next_step="build it with -DMINRPC_ASK=ON, on Zephyr with CONFIG_MINRPC_ASK=y",
        )


def compile_stubs(functions: Sequence[FunctionDeclaration], toolset: Toolset) -> Path:
    """An object with the functions, which ask Python. Raises ConfigurationError for one that can't be."""
    limits = program_facts(toolset.elf).limits
    try:
        return compile_text(stub_source(functions, limits), toolset)
    except LayoutError as error:
        raise ConfigurationError(
            f"{listed([function.prototype for function in functions], 3)}: {error}",
            next_step="write this fake in C, and load it with the sources",
        ) from error


def tell_prototypes(compiled: Compiled, error: UndefinedSymbolsError) -> None:
    """Add what a fake of each undefined function needs to know."""
    declared = compiled.declarations.declared
    known = [declared[name] for name in error.names if name in declared]
    if known:
        error.details += tuple(function.prototype for function in known)
        pairs = ", ".join(f'"{function.name}": ...' for function in known)
        error.next_step = f"{error.next_step}; or give functions in Python: fakes={{{pairs}}}"


def _undefined(compiled: Compiled) -> set[str]:
    """Symbols that an object refers to, and none of them defines."""
    objects = [Elf(member) for path in compiled.objects[:-1] for member in members(path, path.read_bytes())]
    symbols = [symbol for elf in objects for symbol in elf.symbols if symbol.name]
    defined = {symbol.name for symbol in symbols if symbol.section != UNDEFINED}
    return {symbol.name for symbol in symbols if symbol.section == UNDEFINED} - defined


def _no_fake(compiled: Compiled, name: str, lacking: Iterable[str]) -> ConfigurationError:
    if name in compiled.declarations.functions:
        return ConfigurationError(
            f"{name} is defined in {compiled.name}, so it needs no fake",
            next_step="leave this fake out, or load without the file that defines it",
        )
    return ConfigurationError(
        f"{compiled.name} calls no {name}, so nothing would call its fake",
        details=(f"it calls {listed(sorted(lacking), 12)}",) if lacking else (),
        next_step="leave this fake out, or correct its name",
    )


def _declaration(compiled: Compiled, symbol: str) -> FunctionDeclaration:
    found = compiled.declarations.declared.get(symbol) or compiled.declarations.functions.get(symbol)
    if found is None:
        raise ConfigurationError(
            f"the type of {symbol} is not known: the debug information of {compiled.name} lacks it",
            next_step="write this fake in C, and load it with the sources",
        )
    if found.unsupported and not found.type.variadic:
        raise ConfigurationError(
            f"{symbol} can't be a fake: {found.unsupported}",
            next_step="write this fake in C, and load it with the sources",
        )
    return found
