# SPDX-License-Identifier: Apache-2.0
"""Builds a QEMU plugin at its first use, by the host's compiler, and keeps it by content."""

from __future__ import annotations

import hashlib
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Final

from minrpc.errors import BuildError, MissingError, QemuMissingError, ToolchainMissingError
from minrpc.firmware.cache import bound_at_times, cache_home, filled, locked, mark_used, writable
from minrpc.host.process import ask_tool

SOURCE: Final = Path(__file__).with_name("tcg_plugin.c")

_HEADER: Final = SOURCE.with_name("qemu_plugin.h")
_LIBRARY: Final = "minrpc_tcg.so"
_COMPILERS: Final = ("cc", "gcc", "clang")
_FLAGS: Final = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden")
_ERROR_LINES: Final = 6
# The first version of QEMU with each version of the plugin interface that qemu_plugin.h describes.
_APIS: Final = {(4, 2): 1, (9, 0): 2, (11, 0): 7}
_TRIED: Final = "7.2, 10.0 and 11.1"
_REFUSALS: Final = ("ould not load plugin", "requires API version")
_NO_PLUGINS: Final = ": -plugin"  # the begin of QEMU's message about the option itself


def plugin_for(qemu: str, source: Path = SOURCE) -> Path:
    """The plugin of `source` that the program `qemu` can load; built if it is not in the cache.

    Raises ToolchainMissingError without a compiler for this machine, BuildError, QemuMissingError.
    """
    return _built(source, api_of(qemu_version(qemu)))


def api_of(version: tuple[int, int]) -> int:
    """The version of the plugin interface for a version of QEMU: the newest known, for a newer QEMU."""
    return [api for first, api in _APIS.items() if version >= first or api == 1][-1]


def step_after_refusal(output: str, qemu: str) -> str | None:
    """The next step after QEMU ended with `output`, if it has refused a plugin; else None."""
    if not any(text in output for text in (*_REFUSALS, _NO_PLUGINS)):
        return None
    major, minor = qemu_version(qemu)
    needing = "counters, profiles, cycles and memory checks"
    if not any(text in output for text in _REFUSALS):
        told = f"this QEMU {major}.{minor} was built without plugins, which {needing} need: put another QEMU"
    else:
        told = f"this is QEMU {major}.{minor}, and {needing} were tried with {_TRIED}: put one of these"
    return f"{told} first in PATH, or measure times alone"


@cache
def qemu_version(qemu: str) -> tuple[int, int]:
    """The version that `qemu --version` prints: (7, 2). Raises QemuMissingError."""
    try:
        ran = ask_tool([qemu, "--version"])
    except MissingError as error:
        raise QemuMissingError(error.message) from error
    match = re.search(r"version (\d+)\.(\d+)", ran.stdout)
    if match is None:
        raise QemuMissingError(f"{qemu} --version says {(ran.stdout or ran.stderr).strip()!r}: no version")
    return int(match[1]), int(match[2])


def _built(source: Path, api: int) -> Path:
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        raise ToolchainMissingError(
            "QEMU's plugin needs a compiler for this machine: there is no cc, gcc or clang",
            next_step="run `sudo apt-get install gcc`",
        )
    content = [source.read_bytes(), _HEADER.read_bytes()]
    name = hashlib.sha256(
        b"\0".join([*content, compiler.encode(), repr(_FLAGS).encode(), b"%d" % api])
    ).hexdigest()
    directory = cache_home() / "plugin" / name[:16]
    if not (directory / _LIBRARY).is_file():
        directory = writable(directory)
        with locked(directory.with_suffix(".lock")):
            if not (directory / _LIBRARY).is_file():
                with filled(directory) as partial:
                    _compile(compiler, source, api, partial / _LIBRARY)
                bound_at_times(keep=[directory])
    mark_used(directory)
    return directory / _LIBRARY


def _compile(compiler: str, source: Path, api: int, target: Path) -> None:
    options = (f"-I{_HEADER.parent}", f"-DPLUGIN_API={api}")
    command = [compiler, *_FLAGS, *options, str(source), "-o", str(target)]
    ran = ask_tool(command)
    if ran.returncode != 0:
        raise BuildError("QEMU's plugin did not compile", details=ran.stderr.splitlines()[:_ERROR_LINES])
