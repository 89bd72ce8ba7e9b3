# SPDX-License-Identifier: Apache-2.0
"""Links Python functions to compiled sources: in place of missing functions, and of the sources' own
functions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from minrpc.errors import ConfigurationError, LoadError, UndefinedSymbolsError
from minrpc.library.compiling import Compiled, compile_text
from minrpc.library.fake_functions import Fake, FakeAnswer, FakeFunction
from minrpc.library.scalars import describe
from minrpc.library.stubs import ASK, declared_fake, spares, stub_source
from minrpc.library.thunks import LayoutError
from minrpc.library.toolset import Toolset, program_facts
from minrpc.names import did_you_mean, listed, near_or_all
from minrpc.program import Elf, read_program
from minrpc.program.c_types import FunctionDeclaration
from minrpc.program.elf import GLOBAL, OBJECT, UNDEFINED
from minrpc.program.objects import elves_of, inlined_functions

FakesGiven: TypeAlias = Mapping[str, FakeAnswer | Fake] | Literal["zero"]

ReplacementsGiven: TypeAlias = Mapping[str, FakeAnswer | Fake]

# The linker itself defines this symbol, for position-independent code.
_TABLE: Final = "_GLOBAL_OFFSET_TABLE_"

ALL_OTHERS: Final = "*"
"""The name that stands for all missing functions that are not named."""


def with_fakes(
    compiled: Compiled,
    toolset: Toolset,
    fakes: FakesGiven,
    replaced: ReplacementsGiven,
    missing: Callable[[], Iterable[str]],
) -> tuple[Compiled, Mapping[str, FakeFunction]]:
    """The sources with stubs for functions that they lack, and the Python functions by the stub's symbol.

    replaced: Python functions in place of functions that the sources define.
    missing: finds the symbols that neither the sources nor the firmware have.

    Raises LoadError for firmware that can't ask, ConfigurationError for a function that can't be a fake.
    """
    given: Mapping[str, FakeAnswer | Fake] = {ALL_OTHERS: fakes} if isinstance(fakes, str) else fakes
    if not isinstance(given, Mapping):
        raise TypeError(f'fakes= takes {{"name": function}} or "zero", not {describe(fakes)}')
    require_asking(toolset)
    named = {name: answer for name, answer in given.items() if name != ALL_OTHERS}
    lacking = _undefined(compiled)
    # A table may serve several libraries: a name that this one does not call is left out, unless it looks
    # like an error.
    for name in [name for name in named if name not in lacking]:
        if (
            len(named) == 1
            or name in compiled.declarations.functions
            or did_you_mean(name, lacking - named.keys())
        ):
            raise _no_fake(compiled, name, lacking)
        del named[name]
    if ALL_OTHERS in given:
        named |= {name: given[ALL_OTHERS] for name in missing() if name not in named}
    if replaced:
        elves = _elves(compiled)
        inlined = {name for elf in elves for name in inlined_functions(elf)}
        for name in replaced:
            _require_replaceable(compiled, elves, inlined, name)
    named |= replaced
    if not named:
        return compiled, {}
    declared = {name: declared_fake(compiled.declarations, compiled.name, name) for name in named}
    made = {name: made_fake(declared[name], answer) for name, answer in named.items()}
    further = spares(declared.values(), compiled.functions.values(), program_facts(toolset.elf).limits)
    made |= {item.symbol: FakeFunction(item, "zero") for item in further}
    stubs = compile_stubs([*declared.values(), *further], toolset, compiled.calling)
    *objects, thunks = compiled.objects
    key = hashlib.sha256(f"{compiled.key}{stubs.parent.name}".encode()).hexdigest()
    return replace(compiled, objects=(*objects, stubs, thunks), key=key, generated=2), made


def made_fake(declared: FunctionDeclaration, answer: FakeAnswer | Fake) -> FakeFunction:
    """The Python function that answers `declared`. Raises TypeError, ConfigurationError."""
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


def compile_stubs(
    functions: Sequence[FunctionDeclaration], toolset: Toolset, flags: Sequence[str] = ()
) -> Path:
    """An object with the functions, which ask Python. flags: of the code that calls them.

    Raises ConfigurationError for a function that can't be a fake.
    """
    limits = program_facts(toolset.elf).limits
    try:
        return compile_text(stub_source(functions, limits), toolset, flags)
    except LayoutError as error:
        raise ConfigurationError(
            f"{listed([function.prototype for function in functions], 3)}: {error}",
            next_step="write this fake in C, and load it with the sources",
        ) from error


def tell_prototypes(compiled: Compiled, error: UndefinedSymbolsError) -> None:
    """Advice: how to give a fake for each undefined function."""
    declared = compiled.declarations.declared
    known = [declared[name] for name in error.names if name in declared]
    if known:
        error.details += tuple(function.prototype for function in known)
        pairs = ", ".join(f'"{function.name}": ...' for function in known)
        error.next_step = f"{error.next_step}; or give functions in Python: fakes={{{pairs}}}"


def _elves(compiled: Compiled) -> Sequence[Elf]:
    return [elf for path in compiled.own_objects for elf in elves_of(path)]


def _undefined(compiled: Compiled) -> set[str]:
    """Symbols that the objects refer to and that none of them defines."""
    symbols = [symbol for elf in _elves(compiled) for symbol in elf.symbols]
    symbols = [symbol for symbol in symbols if symbol.name not in ("", _TABLE)]
    defined = {symbol.name for symbol in symbols if symbol.section != UNDEFINED}
    return {symbol.name for symbol in symbols if symbol.section == UNDEFINED} - defined


def _no_fake(compiled: Compiled, name: str, lacking: Iterable[str]) -> ConfigurationError:
    if name in compiled.declarations.functions:
        return ConfigurationError(
            f"{name} is defined in {compiled.name}, so it needs no fake",
            next_step=f'replace={{"{name}": ...}} takes a function in Python in its place',
        )
    return ConfigurationError(
        f"{compiled.name} calls no {name}, so nothing would call its fake",
        details=(f"it calls {listed(sorted(lacking), 12)}",) if lacking else (),
        next_step="leave this fake out, or correct its name",
    )


def _require_replaceable(
    compiled: Compiled, elves: Sequence[Elf], inlined: Collection[str], name: str
) -> None:
    """Raise ConfigurationError for a function whose calls can't be redirected.

    elves: the sources' objects. inlined: names of functions whose code is in their callers.
    """
    declared = compiled.declarations
    known = declared.functions.get(name)
    if name in declared.statics and (known is None or known.symbol != name):
        raise _not_replaceable(
            f"{name} is static in {compiled.name}: the compiler may have inlined its calls",
            "leave out `static`, for instance by a macro that `defines` sets; or replace its callers",
        )
    if any(
        item.name == name and item.placed and item.bind == GLOBAL and item.kind != OBJECT
        for elf in elves
        for item in elf.symbols
    ):
        raise _not_replaceable(
            f"{name} was not compiled here from C, so calls in its own file may not be redirected",
            "load without the file that defines it, and give the function to fakes=",
        )
    if name in inlined:
        raise _not_replaceable(
            f"{name} is inline in {compiled.name}: callers have a copy of its code, or call it by an alias",
            'leave out `inline`, for instance by defines=["inline="], or the alias; or replace its callers',
        )
    if known is None:
        raise _unknown(compiled, name)
    if known.symbol != name:
        raise _not_replaceable(f"{name} is a function of C++", f'declare it as extern "C": {known.prototype}')


def _not_replaceable(reason: str, next_step: str) -> ConfigurationError:
    return ConfigurationError(f"replace: {reason}", next_step=next_step)


def _unknown(compiled: Compiled, name: str) -> ConfigurationError:
    if name in _undefined(compiled):
        return _not_replaceable(
            f"{compiled.name} calls {name} and does not define it", f'give it to fakes={{"{name}": ...}}'
        )
    near = near_or_all(name, compiled.declarations.functions)
    return _not_replaceable(
        f"{compiled.name} defines no function {name}",
        f"it defines {listed(near, 12)}" if near else "name a function of the sources",
    )
