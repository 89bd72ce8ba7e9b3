# SPDX-License-Identifier: Apache-2.0
"""Finds functions that need an undefined symbol, themselves or through code and data that they refer to.

The linker collects sections only if all symbols are defined, and does not name the functions that need a
missing symbol.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from minrpc.host.files import Stamp, stamp_of
from minrpc.library.toolset import Toolset
from minrpc.program import Elf
from minrpc.program.elf import LOCAL
from minrpc.program.objects import elves_of

_DATA: Final = (".data", ".sdata")

Node: TypeAlias = tuple[Elf, int] | str
"""A section of an object, or the name of a symbol that no object has."""


@dataclass(frozen=True)
class Objects:
    """Objects by the global symbols that they define; the first of a name counts."""

    defined: Mapping[str, tuple[Elf, int]] = field(repr=False)

    @classmethod
    def of(cls, paths: Iterable[Path], absent: Collection[str]) -> Objects:
        """The objects and archives at `paths`, without the definitions of `absent`."""
        defined: dict[str, tuple[Elf, int]] = {}
        for path in paths:
            for name, place in _defined(path, stamp_of(path)).items():
                defined.setdefault(name, place)
        return cls({name: place for name, place in defined.items() if name not in absent})

    def targets(self, node: tuple[Elf, int]) -> Iterable[Node]:
        """Sections that the section refers to, and names of symbols that no object has."""
        elf, section = node
        for target, name in elf.references.get(section, ()):
            yield (elf, target) if target else self.defined.get(name, name)


def _elves(path: Path) -> Sequence[Elf]:
    return _read(path, stamp_of(path))


@lru_cache(maxsize=16)
def _read(path: Path, stamp: Stamp) -> Sequence[Elf]:
    return elves_of(path)


@lru_cache(maxsize=16)
def _defined(path: Path, stamp: Stamp) -> Mapping[str, tuple[Elf, int]]:
    defined: dict[str, tuple[Elf, int]] = {}
    for elf in _elves(path):
        for symbol in elf.symbols:
            if symbol.placed and symbol.bind != LOCAL:
                defined.setdefault(symbol.name, (elf, symbol.section))
    return defined


def forget_objects() -> None:
    """Empty the caches of objects and archives."""
    _read.cache_clear()
    _defined.cache_clear()


class Needing(NamedTuple):
    """functions: the symbols that each function lacks. whole_data: sections of data that lack no symbol."""

    functions: Mapping[str, tuple[str, ...]]
    whole_data: tuple[str, ...]


def needing(
    functions: Sequence[str], missing: Collection[str], objects: Sequence[Path], toolset: Toolset
) -> Needing:
    """The functions among `functions`, and the data, that need a symbol of `missing`.

    objects: the objects and archives that have the functions, and the libraries behind them.
    """
    known = Objects.of((*objects, *toolset.library_files()), absent=set(missing))
    data = [(elf, index) for path in objects for elf in _elves(path) for index in _written(elf)]
    users = _users(known, [*(known.defined[name] for name in functions if name in known.defined), *data])
    needed: dict[str, list[str]] = defaultdict(list)
    lacking: set[Node] = set()
    for name in missing:
        reached = _closure(name, users)
        for function in functions:
            if known.defined.get(function) in reached:
                needed[function].append(name)
        lacking |= reached
    whole = dict.fromkeys(elf.sections[index].name for elf, index in data if (elf, index) not in lacking)
    return Needing({function: tuple(names) for function, names in needed.items()}, tuple(whole))


def _written(elf: Elf) -> Sequence[int]:
    """The sections of variables with initial values, and of constants that have addresses."""
    return [index for index, section in enumerate(elf.sections) if section.name.startswith(_DATA)]


def _users(known: Objects, roots: Sequence[tuple[Elf, int]]) -> Mapping[Node, set[Node]]:
    """For each section and name that the roots lead to, the sections that refer to it."""
    users: dict[Node, set[Node]] = defaultdict(set)
    waiting = list(roots)
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        for target in known.targets(node):
            users[target].add(node)
            if not isinstance(target, str) and target not in seen:
                seen.add(target)
                waiting.append(target)
    return users


def _closure(name: str, users: Mapping[Node, set[Node]]) -> set[Node]:
    """All sections that lead to the name."""
    reached: set[Node] = {name}
    waiting: list[Node] = [name]
    while waiting:
        new = users.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached
