# SPDX-License-Identifier: Apache-2.0
"""A platform's requirements on this machine: those found, their versions, and commands for the rest."""

from __future__ import annotations

import importlib.util
import os
import platform as machine
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from minrpc.errors import ConfigurationError, HarnessError, MissingError, ZephyrMissingError
from minrpc.firmware.cache import cache_home
from minrpc.firmware.sources import firmware_root
from minrpc.firmware.toolchain import DEBIAN, compiler_version, debian_toolchain, zephyr_toolchain
from minrpc.firmware.zephyr_boards import resolved
from minrpc.firmware.zephyr_workspace import find_workspace
from minrpc.host.process import ask_tool
from minrpc.host.system import WHAT_HELPS, why_nothing_starts
from minrpc.rtl import sources_of
from minrpc.targets import Platform, load_platforms

OLDEST_QEMU: Final = (6, 0)
OLDEST_CMAKE: Final = (3, 20)

_APT: Final = "sudo apt-get install "
_ZEPHYR_MODULES: Final = ("yaml", "elftools", "pykwalify", "packaging", "jsonschema")

# Debian's and Ubuntu's packages of programs, where the package's name differs from the program's.
_PACKAGES: Final = {
    "ninja": "ninja-build",
    "dtc": "device-tree-compiler",
    "gperf": "gperf",
    "qemu-system-i386": "qemu-system-x86",
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-system-aarch64": "qemu-system-arm",
    "qemu-system-riscv32": "qemu-system-misc",
    "qemu-system-riscv64": "qemu-system-misc",
    "qemu-system-xtensa": "qemu-system-misc",
}


# Programs that no distribution has.
_XILINX: Final = "qemu-system-xilinx-"
_XILINX_WHAT: Final = "Zephyr runs this board in Xilinx' own QEMU only"
_XILINX_GET: Final = (
    "install the Zephyr SDK's host tools, or build github.com/Xilinx/qemu, and put it on PATH"
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement of a platform.

    name: its name, for people.
    found: its version or its place; "" when it is missing.
    problem: the reason why it does not count as found; "" if it does.
    command: installs it.
    """

    name: str
    found: str = ""
    problem: str = ""
    command: str = ""

    @property
    def missing(self) -> bool:
        """True if it has to be installed."""
        return not self.found


def requirements(platform: Platform) -> list[Requirement]:
    """All requirements for building and starting `platform`, in the order of use."""
    return list(_requirements(platform))


def lacking(platform: Platform) -> list[Requirement]:
    """The missing requirements; empty if the platform can run here."""
    return [requirement for requirement in _requirements(platform) if requirement.missing]


def lacking_to_build(platform: Platform) -> list[Requirement]:
    """The requirements that are missing for a firmware that is built but not started here."""
    return [requirement for requirement in _requirements(platform, starts=False) if requirement.missing]


def missing_packages(names: Iterable[str]) -> list[str]:
    """The Debian packages that the platforms among these names lack here, each once."""
    platforms = load_platforms()
    needs = [requirement for name in names if name in platforms for requirement in lacking(platforms[name])]
    commands = [requirement.command for requirement in needs if requirement.command.startswith(_APT)]
    return list(dict.fromkeys(" ".join(commands).replace(_APT, "").split()))


def commands_for(lacks: Iterable[Requirement]) -> list[str]:
    """The commands that install missing requirements, each once; a single command for all Debian packages."""
    commands = list(dict.fromkeys(need.command for need in lacks if need.command))
    packages = " ".join(command.removeprefix(_APT) for command in commands if command.startswith(_APT))
    others = [command for command in commands if not command.startswith(_APT)]
    return ([apt_command(" ".join(dict.fromkeys(packages.split())))] if packages else []) + others


def program(name: str) -> Requirement:
    """The program `name` with its version."""
    try:
        version = program_version(name)
    except MissingError as error:
        return Requirement(name, problem=error.message, command=_command(error.next_step))
    return Requirement(name, version or "", "not installed", apt_command(_PACKAGES.get(name, name)))


def apt_command(packages: str) -> str:
    """The command that installs Debian packages."""
    return f"{_APT}{packages}"


def program_version(name: str) -> str | None:
    """The first line of `NAME --version`, or None when there is no such program."""
    path = shutil.which(name)
    return None if path is None else _version_line(path)


@cache
def _version_line(path: str) -> str:
    return compiler_version(path) or path


def _requirements(platform: Platform, *, starts: bool = True) -> Iterator[Requirement]:
    if starts and platform.starts != "board" and why_nothing_starts():
        yield Requirement("Linux", problem=why_nothing_starts(), command=WHAT_HELPS)
        return
    try:
        cache_home()
    except ConfigurationError as error:
        yield Requirement("cache", problem=error.message, command=error.next_step)
        return
    if platform.port == "zephyr":
        yield zephyr_workspace()
        try:
            platform = resolved(platform)
        except HarnessError as error:
            yield _unresolved(error)
            return
        yield _attempt("compiler", lambda: zephyr_toolchain(platform.arch).description)
    else:
        yield _attempt("compiler", lambda: debian_toolchain(platform.arch).description)
    if platform.port == "baremetal":
        yield picolibc(platform.arch)
    yield zephyr_cmake() if platform.port == "zephyr" else _cmake(OLDEST_CMAKE)
    yield program("ninja")
    if platform.port == "zephyr":
        yield program("dtc")
        yield zephyr_modules()
    if starts and platform.starts == "qemu":
        yield qemu(platform.qemu)
    if starts and platform.rtl is not None:
        rtl = platform.rtl
        yield from (program(name) for name in ("verilator", "g++", "make"))
        yield _attempt(f"RTL of {rtl.top}", lambda: "/".join(sources_of(rtl).parts[-2:]))
    if starts and platform.starts == "board":
        yield Requirement("board", problem="boards are not started from here", command="--serial-port PATH")


def zephyr_workspace() -> Requirement:
    """A Zephyr that the firmware builds with, and that builds with this Python."""

    def find() -> str:
        workspace = find_workspace(firmware_root())
        oldest = workspace.oldest("python")
        if sys.version_info[:2] < oldest:
            needs = f"needs Python {_dotted(oldest)} or newer, and this is {machine.python_version()}"
            step = f"install MinRPC with Python {_dotted(oldest)}, or set ZEPHYR_BASE to an older Zephyr"
            told = f"Zephyr {workspace.version} in {workspace.base} {needs}"
            raise ZephyrMissingError(told, next_step=step)
        return f"{workspace.version} in {workspace.base} (from {workspace.found_by})"

    return _attempt("Zephyr", find)


def zephyr_cmake() -> Requirement:
    """A CMake that the found Zephyr builds with; one for MinRPC without a Zephyr."""
    try:
        workspace = find_workspace(firmware_root())
    except ZephyrMissingError:  # `zephyr_workspace` says why.
        return _cmake(OLDEST_CMAKE)
    return _cmake(workspace.oldest("cmake"), f", which Zephyr {workspace.version} needs")


def _cmake(oldest: tuple[int, int], why: str = "") -> Requirement:
    command = f"{sys.executable} -m pip install 'cmake>={_dotted(oldest)}'"
    return _at_least(program("cmake"), oldest, command, why)


def picolibc(arch: str) -> Requirement:
    """Debian's C library for bare metal: its compiler driver finds the specs when it is installed."""
    command = [DEBIAN[arch].compiler, "-print-file-name=picolibc.specs"]
    package = f"picolibc-{DEBIAN[arch].compiler.removesuffix('-gcc')}"
    specs = ""
    try:
        runs = compiler_version(command[0])
    except MissingError as error:
        return Requirement("picolibc", problem=error.message, command=_command(error.next_step))
    if runs:
        ran = ask_tool(command)
        specs = os.path.normpath(ran.stdout.strip()) if ran.stdout.startswith("/") else ""
    return Requirement("picolibc", specs, "not installed", apt_command(package))


def qemu(name: str) -> Requirement:
    """The QEMU program `name`, of a version that has all needed options."""
    if name.startswith(_XILINX) and program_version(name) is None:
        return Requirement(name, problem=f"not installed: {_XILINX_WHAT}", command=_XILINX_GET)
    requirement = program(name)
    return _at_least(requirement, OLDEST_QEMU, requirement.command)


def _at_least(requirement: Requirement, oldest: tuple[int, int], command: str, why: str = "") -> Requirement:
    """`found`, unless its version is older than `oldest`."""
    number = re.search(r"version (\d+)\.(\d+)", requirement.found)
    if number and (int(number[1]), int(number[2])) < oldest:
        problem = f"{number[0]} is older than {_dotted(oldest)}{why}"
        return Requirement(requirement.name, problem=problem, command=command)
    return requirement


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def zephyr_modules() -> Requirement:
    """The modules that Zephyr's build scripts import; they are run by this Python."""
    missing = [name for name in _ZEPHYR_MODULES if importlib.util.find_spec(name) is None]
    problem = f"Python has no {', '.join(missing)}" if missing else ""
    command = f"{sys.executable} -m pip install 'minrpc-harness[zephyr]'"
    return Requirement("Zephyr's Python modules", "" if missing else "all there", problem, command)


def _attempt(name: str, find: Callable[[], str]) -> Requirement:
    try:
        return Requirement(name, find())
    except MissingError as error:
        return Requirement(name, problem=error.message, command=_command(error.next_step))


def _unresolved(error: HarnessError) -> Requirement:
    """The requirement for an unknown board; the problem names a similar board, since no command helps."""
    command, near = _command(error.next_step), error.next_step.partition(";")[0]
    if not isinstance(error, ConfigurationError) or command != error.next_step:
        return Requirement("board", problem=error.message, command=command)
    problem = f"{error.message}; {near}" if near.startswith("did you mean") else error.message
    return Requirement("board", problem=problem, command="minrpc platforms; west boards")


def _command(next_step: str) -> str:
    """The command in "run `COMMAND`...", else the whole advice."""
    _, _, rest = next_step.partition("run `")
    return rest.partition("`")[0] or next_step
