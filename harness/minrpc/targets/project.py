# SPDX-License-Identifier: Apache-2.0
"""A user's own files in a firmware: named in minrpc.toml by relative paths, checked, and made absolute."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from minrpc.errors import ConfigurationError
from minrpc.host.files import utf8

FILE: Final = "minrpc.toml"
PATHS: Final = frozenset({"sources", "include_dirs", "libraries"})
OWN: Final = ("sources", "include_dirs", "defines", "libraries", "cmake_options")
"""The fields that the table [firmware] can add to every platform."""

_PROJECT: Final = "{project}"
_DEFINE: Final = re.compile(r"[A-Za-z_]\w*(?:=[^;]*)?")


def find_project_file(*starts: Path) -> Path | None:
    """The nearest minrpc.toml at or above one of the directories `starts`; the first directory that has it
    decides."""
    for start in starts:
        for directory in (start, *start.parents):
            if (directory / FILE).is_file():
                return directory / FILE
    return None


def own_value(key: str, value: object, directory: Path, where: str) -> tuple[str, ...]:
    """The value of one of `OWN`, as `Platform` has it. Raises ConfigurationError.

    directory: of the file; paths are relative to it, and "{project}" in an option stands for it.
    """
    if key == "defines":
        return define_list(value, where)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigurationError(f"{where}: must be a list of strings, not {value!r}")
    if key in PATHS:
        return paths_of(key, value, directory, where)
    return tuple(_option(item, directory, where) for item in value)


def define_list(value: object, where: str) -> tuple[str, ...]:
    """Definitions, each "NAME" or "NAME=VALUE", from a list or a table. Raises ConfigurationError."""
    if isinstance(value, Mapping):
        value = [_define(name, given, where) for name, given in value.items()]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigurationError(f"{where}: must be a list of strings, not {value!r}")
    return tuple(_checked_define(item, where) for item in value)


def paths_of(key: str, patterns: Sequence[str], directory: Path, where: str) -> tuple[str, ...]:
    """The files, or for the key "include_dirs" the directories, that `patterns` name.

    Raises ConfigurationError.
    """
    return tuple(path for pattern in patterns for path in _paths(key, pattern, directory, where))


def _paths(key: str, pattern: str, directory: Path, where: str) -> Iterator[str]:
    """The files, or the directories, that `pattern` names; each must be there."""
    # The directory's own name may have a pattern's letters.
    wanted = Path(glob.escape(str(utf8(directory)))) / Path(pattern).expanduser()
    matches = sorted(glob.glob(str(wanted), recursive=True))
    right = [
        path for path in matches if (Path(path).is_dir() if key == "include_dirs" else Path(path).is_file())
    ]
    kind = "directory" if key == "include_dirs" else "file"
    if not right:
        step = f"paths are relative to {directory}"
        raise ConfigurationError(f"{where}: there is no {kind} {pattern}", next_step=step)
    for path in right:
        if ";" in utf8(path):
            raise ConfigurationError(f"{where}: {path}: CMake can't take a path with a semicolon")
        yield path


def define_text(name: str, value: object) -> str:
    """A definition as a compiler takes it after -D: None and True define the name alone, False as 0."""
    if value is None or value is True:
        return name
    return f"{name}={0 if value is False else value}"


def _define(name: str, value: object, where: str) -> str:
    if isinstance(value, int | float | str):
        return define_text(name, value)
    raise ConfigurationError(f"{where}.{name}: must be a number, a string or true, not {value!r}")


def _checked_define(text: str, where: str) -> str:
    if not _DEFINE.fullmatch(text):
        step = "write NAME or NAME=VALUE, without -D"
        raise ConfigurationError(f"{where}: {text!r} is no definition", next_step=step)
    return text


def _option(text: str, directory: Path, where: str) -> str:
    if not text.startswith("-"):
        step = f'write "-D{text}"' if "=" in text else "write it as CMake's command line has it: -DNAME=VALUE"
        raise ConfigurationError(f"{where}: {text!r} is no option", next_step=step)
    return text.replace(_PROJECT, str(directory))
