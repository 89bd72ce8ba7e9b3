# SPDX-License-Identifier: Apache-2.0
"""Writes a candidate for a build: a header, a file for CMake's cache, or an entry of minrpc.toml."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Final

from minrpc.errors import ConfigurationError
from minrpc.host.files import check_writable
from minrpc.tuning.candidates import Candidate
from minrpc.tuning.kernel import Kernel

_KINDS: Final = (".h", ".cmake", ".toml")


def check_applicable(path: Path, function: str) -> None:
    """Raise ConfigurationError if `applied` could not be written there; call it before the measuring."""
    if path.suffix not in _KINDS:
        step = "name a header, a file for CMake's -C, or minrpc.toml"
        raise ConfigurationError(f"--apply {path}: it ends in none of {', '.join(_KINDS)}", next_step=step)
    if path.suffix == ".toml" and path.is_file():
        try:
            known = tomllib.loads(path.read_text(encoding="utf-8")).get("libraries", {})
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"--apply {path}: it is no TOML: {error}") from error
        if function in known:
            raise ConfigurationError(
                f"--apply {path}: it has [libraries.{function}]", next_step="take that entry out first"
            )
    check_writable(path)


def applied(candidate: Candidate, kernel: Kernel, path: Path) -> str:
    """The text of the file `path` with the candidate's parameters, and its flags where the format has them.

    An entry of minrpc.toml is added at the file's end.
    """
    match path.suffix:
        case ".h":
            return _header(candidate, kernel.function)
        case ".cmake":
            return _cmake(candidate, kernel.function)
    before = path.read_text(encoding="utf-8").rstrip() if path.is_file() else ""
    return (f"{before}\n\n" if before else "") + _entry(candidate, kernel, path)


def _header(candidate: Candidate, function: str) -> str:
    flags = f"; flags: {' '.join(candidate.flags)}" if candidate.flags else ""
    lines = [f"/* The best parameters of {function}{flags} */", "#pragma once", ""]
    lines += [f"#ifndef {name}\n#define {name} {value}\n#endif" for name, value in candidate.defines]
    return "\n".join(lines) + "\n"


def _cmake(candidate: Candidate, function: str) -> str:
    values = [*candidate.defines]
    if candidate.flags:
        values.append((f"{function.upper()}_FLAGS", " ".join(candidate.flags)))
    return "".join(
        f'set({name} {json.dumps(value)} CACHE STRING "of {function}" FORCE)\n' for name, value in values
    )


def _entry(candidate: Candidate, kernel: Kernel, path: Path) -> str:
    def placed(file: Path) -> str:
        return os.path.relpath(file.absolute(), path.absolute().parent)

    lines = [f"[libraries.{kernel.function}]", f"sources = {json.dumps([placed(kernel.source)])}"]
    if kernel.include:
        lines.append(f"include = {json.dumps([placed(item) for item in kernel.include])}")
    lines.append(f"flags = {json.dumps(list(candidate.flags))}")
    defines = ", ".join(f"{name} = {json.dumps(value)}" for name, value in candidate.defines)
    return "\n".join([*lines, f"defines = {{ {defines} }}"]) + "\n"
