# SPDX-License-Identifier: Apache-2.0
"""What a platform lacks on this machine, and what gets it."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Final, NamedTuple

from harness.errors import ConfigurationError, MissingError, QemuMissingError, ZephyrMissingError
from harness.platforms.recipes import find_tool
from harness.platforms.sources import firmware_root
from harness.platforms.table import Platform
from harness.platforms.toolchain import (
    compiler_version,
    debian_toolchain,
    find_sdk,
    sdk_version,
    zephyr_toolchain,
)
from harness.platforms.zephyr_workspace import find_workspace

OLDEST_QEMU: Final = (6, 0)
"""The oldest QEMU that takes all that we tell it."""

_QEMU_PACKAGES: Final = {
    "i386": "qemu-system-x86",
    "x86_64": "qemu-system-x86",
    "arm": "qemu-system-arm",
    "aarch64": "qemu-system-arm",
}
# What Zephyr's build scripts import; the extra "zephyr" of our package installs them.
_ZEPHYR_MODULES: Final = ("yaml", "elftools", "pykwalify", "packaging", "jsonschema")
_TOOLS: Final = ("cmake", "ninja", "dtc", "gcc", "arm-none-eabi-gcc", "qemu-system-arm", "qemu-system-i386")


class Lack(NamedTuple):
    """Why a platform can't run here.

    what: "qemu-system-i386 is not installed".
    remedy: "run `sudo apt-get install qemu-system-x86`".
    """

    what: str
    remedy: str


def availability(platform: Platform) -> list[Lack]:
    """What is missing to build and start `platform` here; [] when it can run."""
    lacks = [_lack(check, platform) for check in _CHECKS[platform.port]]
    if platform.starts == "qemu":
        lacks.append(_lack(_check_qemu, platform))
    if platform.starts == "board":
        lacks.append(Lack("it is a board", "name the port that it is on with --serial-port"))
    return [lack for lack in lacks if lack is not None]


def tool_versions() -> dict[str, str | None]:
    """What `minrpc doctor` lists: each tool's version, None where it is missing."""
    found: dict[str, str | None] = {"python": sys.version.split()[0], "west": _package_version("west")}
    found |= {tool: compiler_version(tool) for tool in _TOOLS}
    sdk = find_sdk()
    return found | {"Zephyr SDK": sdk_version(sdk) if sdk else None, "Zephyr": _zephyr_version()}


def _lack(check: Callable[[Platform], object], platform: Platform) -> Lack | None:
    try:
        check(platform)
    except (MissingError, ConfigurationError) as error:
        return Lack(error.message, error.next_step)
    return None


def _check_qemu(platform: Platform) -> None:
    program = platform.qemu
    if not program:
        raise ConfigurationError(
            f"nothing says which QEMU program {platform.name} needs",
            next_step=f'put qemu = "qemu-system-..." under [platforms.{platform.name}]',
        )
    text = compiler_version(program)
    package = _QEMU_PACKAGES.get(program.removeprefix("qemu-system-"), "qemu-system")
    step = f"run `sudo apt-get install {package}`"
    if text is None:
        raise QemuMissingError(f"{program} is not installed", next_step=step)
    number = re.search(r"version (\d+)\.(\d+)", text)
    if number and (int(number[1]), int(number[2])) < OLDEST_QEMU:
        wanted = ".".join(map(str, OLDEST_QEMU))
        raise QemuMissingError(f"{program} {number[1]}.{number[2]} is older than {wanted}", next_step=step)


def _check_generator(platform: Platform) -> None:
    if shutil.which("ninja") is None:
        find_tool("make")


def _check_python(platform: Platform) -> None:
    missing = [name for name in _ZEPHYR_MODULES if importlib.util.find_spec(name) is None]
    if missing:
        step = f"run `{sys.executable} -m pip install 'minrpc-harness[zephyr]'`"
        raise ZephyrMissingError(f"Zephyr's build needs Python's {', '.join(missing)}", next_step=step)


_CMAKE_CHECKS: Final[tuple[Callable[[Platform], object], ...]] = (
    lambda platform: find_tool("cmake"),
    _check_generator,
    lambda platform: debian_toolchain(platform.arch, bare=platform.port == "baremetal"),
)
_CHECKS: Final[dict[str, Iterable[Callable[[Platform], object]]]] = {
    "posix": _CMAKE_CHECKS,
    "baremetal": _CMAKE_CHECKS,
    "zephyr": (
        lambda platform: find_workspace(firmware_root()),
        lambda platform: zephyr_toolchain(platform.arch),
        lambda platform: find_tool("cmake"),
        lambda platform: find_tool("ninja"),
        lambda platform: find_tool("dtc"),
        _check_python,
    ),
}


def _package_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _zephyr_version() -> str | None:
    try:
        workspace = find_workspace(firmware_root())
    except MissingError:
        return None
    return f"{workspace.version} in {workspace.base} (from {workspace.found_by})"
