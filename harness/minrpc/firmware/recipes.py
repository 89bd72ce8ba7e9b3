# SPDX-License-Identifier: Apache-2.0
"""How each port is built, as data: commands, environment, and what makes one build differ from another."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from minrpc.errors import ToolchainMissingError
from minrpc.firmware.cache import cache_home
from minrpc.firmware.toolchain import debian_toolchain, zephyr_toolchain
from minrpc.firmware.zephyr_workspace import Workspace, find_workspace
from minrpc.targets.qemu_command import find_qemu
from minrpc.targets.table import Platform

_NINJA_S: Final = 60.0
# What a user may have set and CMake takes into account.
_ENVIRONMENT: Final = ("CC", "CFLAGS", "LDFLAGS", "CMAKE_PREFIX_PATH", "ZEPHYR_EXTRA_MODULES")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A build in a directory that is named later.

    configure, compile: commands; the word BUILD_DIR in them stands for the build directory.
    identity: all that decides what comes out, apart from the sources: tools with versions, options.
    environment: variables on top of ours.
    cwd: where the commands run.
    """

    configure: Sequence[str]
    compile: Sequence[str]
    identity: Sequence[str]
    cwd: Path
    environment: Mapping[str, str] = field(default_factory=dict)


BUILD_DIR: Final = "{build}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a finished build directory tells about its firmware; see `Firmware`."""

    qemu_argv: tuple[str, ...] = ()
    icount_shift: int | None = None


def recipe_for(platform: Platform, root: Path) -> Recipe:
    """How to build `platform` from the sources at `root`.

    Raises ToolchainMissingError, ZephyrMissingError.
    """
    return (_zephyr_recipe if platform.port == "zephyr" else _cmake_recipe)(platform, root)


def cmake_options(platform: Platform) -> list[str]:
    """What CMake is told of the user's own: sources, headers, definitions, libraries, options."""
    lists = {
        "SOURCES": platform.sources,
        "INCLUDES": platform.include_dirs,
        "DEFINITIONS": platform.defines,
        "LIBRARIES": platform.libraries,
    }
    extra = [f"-DMINRPC_EXTRA_{name}={';'.join(values)}" for name, values in lists.items() if values]
    return [*extra, *platform.cmake_options]


def outcome_of(platform: Platform, build_dir: Path) -> Outcome:
    """What Zephyr's build knows about running it under QEMU; nothing for other ports."""
    if platform.port != "zephyr" or platform.starts != "qemu":
        return Outcome()
    argv = find_qemu(_ninja(build_dir, "-t", "commands", "run_qemu"))
    if not all(path.exists() for path in files_in(argv, build_dir)):
        # The images for 64-bit x86 are made on the way to the run target only.
        _ninja(build_dir, "qemu_kernel_target")
    return Outcome(tuple(argv), configured_shift((build_dir / "zephyr" / ".config").read_text()))


def files_in(argv: Sequence[str], build_dir: Path) -> list[Path]:
    """The paths below `build_dir` that the words of `argv` name."""
    found = re.findall(re.escape(str(build_dir)) + r"/[^\s,]+", "\n".join(argv))
    return [Path(path) for path in found]


def configured_shift(config: str) -> int | None:
    """The icount shift in the text of a Zephyr .config; None when instruction counting is off."""
    shift = re.search(r"^CONFIG_QEMU_ICOUNT_SHIFT=(\d+)$", config, re.MULTILINE)
    enabled = re.search(r"^CONFIG_QEMU_ICOUNT=y$", config, re.MULTILINE)
    return int(shift[1]) if shift and enabled else None


def _cmake_recipe(platform: Platform, root: Path) -> Recipe:
    source = root / "zephyr-app" / "ports" / platform.port
    toolchain = debian_toolchain(platform.arch, bare=platform.port == "baremetal")
    generator = _generator()
    options = cmake_options(platform)
    return Recipe(
        configure=(find_tool("cmake"), "-S", str(source), "-B", BUILD_DIR, "-G", generator, *options),
        compile=_compile(generator),
        identity=(str(root), platform.name, toolchain.description, generator, *options, *_user_environment()),
        cwd=root,
    )


def _zephyr_recipe(platform: Platform, root: Path) -> Recipe:
    workspace = find_workspace(root)
    toolchain = zephyr_toolchain(platform.arch)
    options = cmake_options(platform)
    return Recipe(
        configure=_zephyr_configure(platform, root, workspace, options),
        compile=(find_tool("ninja"), "-C", BUILD_DIR),
        identity=(
            str(root),
            platform.name,
            platform.zephyr_board,
            toolchain.description,
            *_zephyr_identity(workspace),
            *options,
            *_user_environment(),
        ),
        cwd=workspace.topdir or root,
        environment={**toolchain.environment, **_ccache_environment(), "ZEPHYR_BASE": str(workspace.base)},
    )


def _ccache_environment() -> dict[str, str]:
    """Lets ccache, where there is one, find in one build directory what it has seen in another.

    The C library alone is a thousand files, the same ones whatever the firmware's options.
    """
    ours = {"CCACHE_BASEDIR": str(cache_home()), "CCACHE_NOHASHDIR": "1"}
    return {name: value for name, value in ours.items() if name not in os.environ}


def _zephyr_configure(
    platform: Platform, root: Path, workspace: Workspace, defines: Sequence[str]
) -> tuple[str, ...]:
    """By west in a west workspace, else by CMake: a bare tree with ZEPHYR_BASE has no modules."""
    board = platform.zephyr_board
    if workspace.topdir is None:
        cmake = (find_tool("cmake"), "-S", str(root), "-B", BUILD_DIR, "-G", "Ninja")
        return (*cmake, f"-DBOARD={board}", f"-DWEST_PYTHON={sys.executable}", *defines)
    west = (sys.executable, "-m", "west", "build", "--cmake-only", "--pristine", "never")
    return (*west, "-b", board, "-d", BUILD_DIR, str(root), "--", "-G", "Ninja", *defines)


def _zephyr_identity(workspace: Workspace) -> tuple[str, ...]:
    head = _git_head(workspace.base) if (workspace.base / ".git").is_dir() else "no git"
    return str(workspace.base), workspace.version, head


def _git_head(tree: Path) -> str:
    """The commit that is checked out, or what HEAD says when its branch is packed away."""
    head = (tree / ".git" / "HEAD").read_text().strip()
    branch = tree / ".git" / head.removeprefix("ref: ")
    return branch.read_text().strip() if head.startswith("ref: ") and branch.is_file() else head


def _generator() -> str:
    return "Ninja" if shutil.which("ninja") else "Unix Makefiles"


def _compile(generator: str) -> tuple[str, ...]:
    if generator == "Ninja":
        return find_tool("ninja"), "-C", BUILD_DIR
    return find_tool("make"), "-C", BUILD_DIR, f"-j{os.cpu_count() or 1}"


def find_tool(name: str) -> str:
    """The path of a build tool. Raises ToolchainMissingError with the command that installs it."""
    path = shutil.which(name)
    if path is None:
        package = {"ninja": "ninja-build", "dtc": "device-tree-compiler"}.get(name, name)
        step = f"run `sudo apt-get install {package}`"
        raise ToolchainMissingError(f"{name} is not installed", stage="build", next_step=step)
    return path


def _user_environment() -> list[str]:
    return [f"{name}={os.environ[name]}" for name in _ENVIRONMENT if name in os.environ]


def _ninja(build_dir: Path, *words: str) -> str:
    command = [find_tool("ninja"), "-C", str(build_dir), *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=_NINJA_S, check=False)
    return ran.stdout
