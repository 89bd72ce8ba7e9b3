# SPDX-License-Identifier: Apache-2.0
"""Builds a core's RTL as a program, once: Verilator makes C++ of it, and the files here are the rest."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from minrpc.errors import BuildError, ConfigurationError, ToolchainMissingError
from minrpc.firmware.cache import bound_at_times, cache_home, filled, locked, mark_used, writable
from minrpc.host.process import ask_tool
from minrpc.targets.rtl import Rtl

HERE: Final = Path(__file__).parent
EXTRA: Final = "pip install 'minrpc-harness[rtl]'"

_PROGRAM: Final = "core"
_OWN: Final = ("top.cpp", "system.cpp")
_LANGUAGE: Final = (".sv", ".svh", ".v", ".vh")
_BUILD_S: Final = 1200.0
_ERROR_LINES: Final = 6
_FLAGS: Final = (
    *("--cc", "--exe", "--build", "-O3", "-j", "2", "--prefix", "Vcore", "-o", _PROGRAM),
    *("--noassert", "--x-assign", "fast", "--x-initial", "fast"),
    *("-Wno-fatal", "-Wno-lint", "-Wno-style", "-Wno-BLKANDNBLK", "-Wno-ENUMVALUE"),
    *("-MAKEFLAGS", "OPT_FAST=-O3 OPT_SLOW=-O1 OPT_GLOBAL=-O3"),
)
_ERROR: Final = re.compile(r"^(?:%Error(?:-\w+)?: (?!make|Command)|\S+: error: )(.*)", re.MULTILINE)
_NO_PORT: Final = re.compile(r"'class Vcore' has no member named '(\w+)'")


def sources_of(rtl: Rtl) -> Path:
    """The directory that the paths of `rtl` are relative to.

    Raises ToolchainMissingError if its package is not installed.
    """
    if not rtl.package:
        return Path("/")
    spec = importlib.util.find_spec(rtl.package)
    if spec is None or not spec.submodule_search_locations:
        raise ToolchainMissingError(
            f"Python has no {rtl.package}, the package with the RTL", next_step=f"run `{EXTRA}`"
        )
    package = Path(spec.submodule_search_locations[0])
    directories = [path for name in ("system_verilog", "verilog") if (path := package / name).is_dir()]
    return directories[0] if directories else package


def model_of(rtl: Rtl, *, wave: bool = False) -> Path:
    """The program of the core; built if it is not in the cache.

    wave: it can write waveforms, and is slower.

    Raises ToolchainMissingError without Verilator or the RTL, BuildError with the first errors, and
    ConfigurationError for a top without the ports of its bus.
    """
    root = sources_of(rtl)
    flags = (*_FLAGS, "--trace-fst") if wave else _FLAGS
    directory = cache_home() / "rtl" / _name(rtl, root, flags)
    if not (directory / _PROGRAM).is_file():
        directory = writable(directory)
        with locked(directory.with_suffix(".lock")):
            if not (directory / _PROGRAM).is_file():
                with filled(directory) as partial:
                    _build(rtl, root, flags, partial)
                bound_at_times(keep=[directory])
    mark_used(directory)
    return directory / _PROGRAM


def _words(rtl: Rtl, root: Path) -> list[str]:
    """Verilator's arguments for this core."""
    searched = [word for path in rtl.search for word in ("-y", str(root / path), f"+incdir+{root / path}")]
    return [
        *("--top-module", rtl.top),
        *(f"+define+{define}" for define in rtl.defines),
        *(f"-G{name}={value}" for name, value in rtl.parameters),
        *searched,
        *(str(root / path.replace("{here}", str(HERE))) for path in rtl.sources),
    ]


def _name(rtl: Rtl, root: Path, flags: Sequence[str]) -> str:
    """The name of the model in the cache: the hash of all that it is built from."""
    key = hashlib.sha256(repr((verilator_version(), flags, rtl)).encode())
    directories = [root / path for path in rtl.search]
    paths = (path for directory in directories for path in directory.iterdir())
    files = {path for path in paths if path.suffix in _LANGUAGE and path.is_file()}
    files |= {root / path.replace("{here}", str(HERE)) for path in rtl.sources}
    files |= {path for path in HERE.iterdir() if path.suffix in (".cpp", ".hpp")}
    for path in sorted(files):
        key.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return key.hexdigest()[:16]


@cache
def verilator_version() -> str:
    """Verilator's version. Raises ToolchainMissingError without Verilator."""
    program = shutil.which("verilator")
    if program is None:
        raise ToolchainMissingError(
            "verilator is not installed", next_step="run `sudo apt-get install verilator`"
        )
    return ask_tool([program, "--version"]).stdout.strip()


def _build(rtl: Rtl, root: Path, flags: Sequence[str], directory: Path) -> None:
    (directory / "core.h").write_text(_header(rtl))
    seen = [path.rpartition(".")[2] for path in (rtl.pc, rtl.registers) if path]
    lines = [f'public_flat_rd -module "*" -var "{name}"' for name in seen]
    (directory / "seen.vlt").write_text("\n".join(["`verilator_config", *lines, ""]))
    wave = " -DCORE_WAVE" * ("--trace-fst" in flags)
    compiler = f"-O3 -std=c++20 -I{HERE} -I{directory}{wave}"
    own = [str(HERE / name) for name in _OWN]
    build = str(directory / "build")
    sources = [str(directory / "seen.vlt"), *_words(rtl, root), *own]
    argv = ["verilator", *flags, *sources, "-CFLAGS", compiler, "--Mdir", build]
    english = {**os.environ, "LC_ALL": "C"}
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=_BUILD_S, check=False, env=english)
    if ran.returncode != 0:
        raise _failure(rtl, ran.stdout + ran.stderr)
    os.replace(directory / "build" / _PROGRAM, directory / _PROGRAM)
    shutil.rmtree(directory / "build")


def _header(rtl: Rtl) -> str:
    """core.h: the differences between cores for top.cpp."""
    top = f"core.rootp->{rtl.top}__DOT__"
    pc, registers = (f"{top}{path.replace('.', '__DOT__')}" for path in (rtl.pc, rtl.registers))
    lines = [
        '#include "Vcore___024root.h"',
        f"#define CORE_CLOCK {rtl.clock}",
        f"#define CORE_RESET {rtl.reset}",
        "static inline void tie(Vcore &core)\n{",
        *(f"\tcore.{name} = {value:#x};" for name, value in rtl.inputs),
        "}\nstatic inline uint32_t pc_of(Vcore &core)\n{",
        f"\treturn {pc if rtl.pc else '0'};",
        "}\nstatic inline uint32_t register_of(Vcore &core, unsigned int index)\n{",
        f"\treturn {f'{registers}[index]' if rtl.registers else '0'};",
        f'}}\n#include "bus_{rtl.bus}.hpp"',
    ]
    return "\n".join(lines) + "\n"


def _failure(rtl: Rtl, output: str) -> BuildError | ConfigurationError:
    lacks = list(dict.fromkeys(_NO_PORT.findall(output)))
    if lacks:
        return ConfigurationError(
            f"the module {rtl.top} has no port {', '.join(lacks)}, which the bus {rtl.bus!r} has",
            next_step="name another bus, or a top that has these ports",
        )
    errors = _ERROR.findall(output) or output.strip().splitlines()
    step = "correct the first error above"
    return BuildError(f"Verilator can't build {rtl.top}", details=errors[:_ERROR_LINES], next_step=step)
