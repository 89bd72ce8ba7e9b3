# SPDX-License-Identifier: Apache-2.0
"""Options of a compiler that name files: their relative paths start where the user's other paths start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

_DIRECTORIES: Final = ("-I", "-Wa,-I", "-iquote", "-isystem", "-idirafter", "-isysroot", "--sysroot=")
# The compiler also finds these in directories of headers, or reads the word as it is.
_FILES: Final = ("-include", "-imacros", "@")


def flags_at(flags: Sequence[str], directory: Path) -> list[str]:
    """The flags, with absolute paths; relative ones start at `directory`, as the compiler works elsewhere.

    A path may be a word of its own: ["-I", "inc"].
    """
    placed: list[str] = []
    waiting = ""
    for word in flags:
        option = waiting or next((name for name in (*_DIRECTORIES, *_FILES) if word.startswith(name)), "")
        path = word if waiting else word.removeprefix(option)
        waiting = option if not waiting and not path and option.startswith(("-I", "-i")) else ""
        placed.append(word.removesuffix(path) + _at(directory, path, option) if option and path else word)
    return placed


def _at(directory: Path, path: str, option: str) -> str:
    absolute = (directory / path).absolute()
    # Words that begin with "=" start at the compiler's own root.
    return path if path[0] in "=$" or (option in _FILES and not absolute.exists()) else str(absolute)
