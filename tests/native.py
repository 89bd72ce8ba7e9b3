# SPDX-License-Identifier: Apache-2.0
"""Builds C projects of the tests for the machine that runs them; and what tests need of it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping
from os import environ
from pathlib import Path
from typing import Final

import pytest
from minrpc import PLATFORMS, Firmware, Platform, Target, build as build_firmware, lacking
from minrpc.firmware.cache import locked
from minrpc.program import read_program
from minrpc.targets.qemu_command import without_wired

_NETWORK_S: Final = 600


def need_tools(*tools: str) -> None:
    """Skips the test if one of these programs is missing."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        packages = " ".join({"ninja": "ninja-build", "c++": "g++"}.get(tool, tool) for tool in missing)
        pytest.skip(f"no {', '.join(missing)}: apt-get install {packages}")


def need_platform(platform: Platform) -> None:
    """Skips the test, with the reason, if the platform can't run here."""
    if lacks := lacking(platform):
        pytest.skip(f"{platform.name} lacks {'; '.join(f'{item.name}: {item.problem}' for item in lacks)}")


def need_builtin(platform: str) -> None:
    """Skips the test, which names the platform to another process or command, if only a file has it."""
    if platform not in PLATFORMS:
        pytest.skip(f"{platform} stands in a file of platforms that this test does not name")


def qemu_on_stdio(firmware: Firmware) -> str:
    """The command of QEMU for a Zephyr on a PC, with RPC's UART as standard input and output."""
    wired = ["-serial", "null", "-serial", "stdio", "-display", "none"]
    return shlex.join([*without_wired(firmware.qemu_argv), *wired])


def run_or_skip(*command: str) -> None:
    """Runs a command that takes a network; skips the test if it fails."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=_NETWORK_S, check=False)
    if ran.returncode:
        pytest.skip(f"{' '.join(command[1:])} failed: {ran.stderr.strip().splitlines()[-1]}")


def built(name: str, *options: str) -> Firmware:
    """The platform's firmware, with these CMake options; skips the test if the platform can't run here."""
    need_platform(PLATFORMS[name])
    return build_firmware(Target(PLATFORMS[name]).changed(cmake_options=options))


def compiles(compiler: str, *flags: str) -> bool:
    """True if the compiler can make a program with these flags; some compilers lack libraries."""
    command = [compiler, *flags, "-x", "c", "-", "-o", "/dev/null"]
    source = b"#include <stdlib.h>\nint main(void) { return 0; }\n"
    return subprocess.run(command, input=source, capture_output=True, check=False).returncode == 0


def build(source: Path, directory: Path, *options: str, env: Mapping[str, str] | None = None) -> Path:
    """Configures and builds a CMake project; returns the directory of its programs.

    Files of an earlier run in the directory are brought up to date. If two runs use it at once, the second
    waits.
    """
    with locked(directory / "lock"):
        _forget_another_place(directory / "CMakeCache.txt")
        _run(["cmake", "-G", "Ninja", "-S", str(source), "-B", str(directory), *options], env)
        _run(["cmake", "--build", str(directory), "--parallel", "2"], env)
    return directory / "bin"


def of_another_build(elf: Path, copy: Path) -> Path:
    """A copy of the program with another build ID and the same code."""
    content = elf.read_bytes()
    build_id = bytes.fromhex(read_program(elf).build_id)
    assert content.count(build_id) == 1
    copy.write_bytes(content.replace(build_id, bytes(byte ^ 0xFF for byte in build_id)))
    copy.chmod(0o755)
    return copy


def _forget_another_place(cache: Path) -> None:
    """CMake refuses a tree that was configured before the checkout was moved."""
    here = f"CMAKE_CACHEFILE_DIR:INTERNAL={cache.parent}\n"
    if cache.exists() and here not in cache.read_text():
        cache.unlink()


def _run(command: list[str], env: Mapping[str, str] | None) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, env={**environ, **(env or {})}, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-8000:]}{done.stderr[-8000:]}"
