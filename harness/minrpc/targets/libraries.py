# SPDX-License-Identifier: Apache-2.0
"""C libraries of minrpc.toml: their sources, and whether they are linked into the firmware.

[libraries.dsp]
sources = ["dsp/*.c"]               # C, C++, assembler, objects, archives
include = ["include"]
flags = ["-O3"]
defines = { TILE = 8 }
headers = ["config.h"]              # included before each source
libraries = ["libm4.a"]             # only linked with
linked = false                      # loaded when it is used; left out it is in the image of each platform
fakes = ["hal_millis"]              # undefined functions, which Python answers
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from minrpc.errors import ConfigurationError
from minrpc.names import instead_of
from minrpc.targets.flags import flags_at
from minrpc.targets.project import define_list, paths_of


class NamedLibrary(NamedTuple):
    """A library of C by its name. Paths are absolute.

    linked: it is part of the firmware; else it is loaded into the device's memory when it is used.
    fakes: functions that it calls and that are not defined: Python answers them.
    """

    name: str
    sources: tuple[str, ...]
    include: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    linked: bool = True
    fakes: tuple[str, ...] = ()


_NAME: Final = re.compile(r"[A-Za-z]\w*")
_SYMBOL: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_KEYS: Final = NamedLibrary._fields[1:]
_KINDS: Final = ("C", "cc", "cpp", "cxx", "c", "S", "s", "o", "a")


def named_library(name: str, table: object, directory: Path, origin: str) -> NamedLibrary:
    """Reads the table `[libraries.NAME]`. Raises ConfigurationError.

    directory: of the file; paths are relative to it. origin: the file, for messages.
    """
    where = f"{origin}: libraries.{name}"
    if not _NAME.fullmatch(name):
        step = "a name is of letters, digits and _, and begins with a letter"
        raise ConfigurationError(f"{origin}: {name!r} is no name for a library", next_step=step)
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{where} must be a table, [libraries.{name}]")
    for key in table:
        if key not in _KEYS:
            raise ConfigurationError(f"{where}.{key}: unknown key", next_step=instead_of(key, _KEYS))
    if not table.get("sources"):
        raise ConfigurationError(f"{where}: sources is missing", next_step='write sources = ["dsp/*.c"]')
    linked = table.get("linked", True)
    if not isinstance(linked, bool):
        raise ConfigurationError(f"{where}.linked: must be true or false, not {linked!r}")
    lists = {key: _texts(table.get(key, []), key, f"{where}.{key}") for key in _KEYS if key != "linked"}
    for fake in lists["fakes"]:
        if not _SYMBOL.fullmatch(fake):
            raise ConfigurationError(f"{where}.fakes: {fake!r} is no name of a C function")
    sources = paths_of("sources", lists["sources"], directory, f"{where}.sources")
    for source in sources:
        if Path(source).suffix[1:] not in _KINDS:
            kinds = ", ".join(f".{kind}" for kind in _KINDS)
            step = f"name files that end in {kinds}; of a header, a C file that includes it"
            raise ConfigurationError(f"{where}.sources: {source}: unknown kind of file", next_step=step)
    return NamedLibrary(
        name,
        sources,
        paths_of("include_dirs", lists["include"], directory, f"{where}.include"),
        tuple(flags_at([_flag(flag, f"{where}.flags") for flag in lists["flags"]], directory)),
        define_list(table.get("defines", []), f"{where}.defines"),
        paths_of("sources", lists["headers"], directory, f"{where}.headers"),
        paths_of("libraries", lists["libraries"], directory, f"{where}.libraries"),
        linked,
        tuple(lists["fakes"]),
    )


def merged(before: tuple[NamedLibrary, ...], more: tuple[NamedLibrary, ...]) -> tuple[NamedLibrary, ...]:
    """Both groups; of two libraries with the same name, the later."""
    return tuple({item.name: item for item in (*before, *more)}.values())


def find_library(libraries: tuple[NamedLibrary, ...], name: str) -> NamedLibrary:
    """The library `name`. Raises ConfigurationError with the known names."""
    for library in libraries:
        if library.name == name:
            return library
    known = ", ".join(library.name for library in libraries)
    step = f"known are {known}" if known else f"write [libraries.{name}] into minrpc.toml"
    raise ConfigurationError(f"there is no library {name!r}", next_step=step)


def _texts(value: object, key: str, where: str) -> list[str]:
    if key == "defines":
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigurationError(f"{where}: must be a list of strings, not {value!r}")
    return value


def _flag(text: str, where: str) -> str:
    if not text.startswith("-") or ";" in text:
        step = 'write each as the compiler takes it: ["-O3", "-ffast-math"]'
        raise ConfigurationError(f"{where}: {text!r} is no option of a compiler", next_step=step)
    return text
