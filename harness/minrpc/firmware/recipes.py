# SPDX-License-Identifier: Apache-2.0
"""How each port is built, as data: commands, environment, and where the build looks for what."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minrpc.firmware.cache import cache_home
from minrpc.firmware.environment import build_environment, counted
from minrpc.firmware.identity import hash_of
from minrpc.firmware.inputs import LINK_DEPENDENCIES, directories_below, ninja
from minrpc.firmware.places import PREFIX, Places
from minrpc.firmware.sources import zephyr_optional, zephyr_trees
from minrpc.firmware.toolchain import DEBIAN, debian_compiler, debian_toolchain, find_tool, zephyr_toolchain
from minrpc.firmware.zephyr_workspace import Workspace, find_workspace, head_of, projects_of
from minrpc.targets import Platform
from minrpc.targets.qemu_command import find_qemu

BUILD_DIR: Final = "{build}"
_PYTHON: Final = "{python}"
_COMPILE_COMMANDS: Final = "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a build looks; see `minrpc.firmware.inputs.inputs_of`.

    tree: what a build tree belongs to: the checkout, the commits of Zephyr and its modules.
    """

    tree: str
    listings: Sequence[Path] = ()
    whole: Sequence[Path] = ()
    optional: Sequence[Path] = ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """A build in a directory that is named later. The word BUILD_DIR stands for that.

    label: what is built, for the names of directories.
    plan: hash of all that decides what comes out, apart from the content of files.
    configure, compile: commands.
    cwd: where they run.
    environment: all of it.
    places: the directories that the user may move.
    scope: where it looks; only a build asks.
    arch, bare: of the Debian compiler that must work; "" where Zephyr's own build looks for one.
    """

    label: str
    plan: str
    configure: Sequence[str]
    compile: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    places: Places
    scope: Callable[[], Scope]
    arch: str = ""
    bare: bool = False

    def check(self) -> None:
        """Raise ToolchainMissingError where something that is needed besides programs is missing."""
        if self.arch:
            debian_toolchain(self.arch, bare=self.bare)

    def environment_in(self, build_dir: Path) -> dict[str, str]:
        """The environment for a build there; compilers and the linker are told what they have to note."""
        flags = [*self.places.compiler_flags(), f"-ffile-prefix-map={build_dir}={PREFIX}/build"]
        own = dict.fromkeys(("CFLAGS", "CXXFLAGS", "ASMFLAGS"), flags)
        own["LDFLAGS"] = ["-Xlinker", f"--dependency-file={build_dir / LINK_DEPENDENCIES}"]
        users = self.environment
        return {
            **users,
            **{name: f"{shlex.join(words)} {users.get(name, '')}".strip() for name, words in own.items()},
        }


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
    return [*extra, *_library_options(platform), *platform.cmake_options]


def _library_options(platform: Platform) -> list[str]:
    """The libraries that are linked in, and who makes their thunks."""
    linked = [one for one in platform.named_libraries if one.linked]
    if not linked:
        return []
    options = [f"-DMINRPC_LIBRARIES={';'.join(one.name for one in linked)}"]
    for one in linked:
        lists = {name: value for name, value in one._asdict().items() if isinstance(value, tuple) and value}
        options += [
            f"-DMINRPC_LIBRARY_{one.name}_{name.upper()}={';'.join(value)}" for name, value in lists.items()
        ]
    package = Path(__file__).parents[1]
    return [*options, f"-DMINRPC_PYTHON={sys.executable}", f"-DMINRPC_PACKAGE={package}"]


def outcome_of(platform: Platform, build_dir: Path) -> Outcome:
    """What Zephyr's build knows about running it under QEMU; nothing for other ports."""
    if platform.port != "zephyr" or platform.starts != "qemu":
        return Outcome()
    argv = []
    if not platform.qemu_args:  # What its entry says, Zephyr's build need not know.
        argv = find_qemu(ninja(build_dir, "-t", "commands", "run_qemu"))
    if not all(path.exists() for path in files_in(argv, build_dir)):
        # The images for 64-bit x86 are made on the way to the run target only.
        ninja(build_dir, "qemu_kernel_target")
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
    ports = root / "zephyr-app" / "ports"
    source = ports / platform.port
    compiler = debian_compiler(platform.arch)
    options = [_COMPILE_COMMANDS, *cmake_options(platform)]
    configure = (
        find_tool("cmake"),
        "-S",
        str(source),
        "-B",
        BUILD_DIR,
        "-G",
        "Ninja",
        _COMPILE_COMMANDS,
        *options,
    )
    places = _places(platform, app=root)
    environ = dict(os.environ)  # Each look at a variable of os.environ decodes it.
    tools = [compiler, environ.get("CC", "cc"), "as", "ld"]

    def scope() -> Scope:
        return Scope(str(root), listings=_app_directories(root, platform.port))

    return Recipe(
        label=platform.port,
        plan=_plan(platform, configure, places, environ, tools),
        configure=configure,
        compile=(find_tool("ninja"), "-C", BUILD_DIR),
        cwd=root,
        environment=build_environment(environ),
        places=places,
        scope=scope,
        arch=platform.arch,
        bare=platform.port == "baremetal",
    )


def _zephyr_recipe(platform: Platform, root: Path) -> Recipe:
    workspace = find_workspace(root)
    toolchain = zephyr_toolchain(platform.arch)
    options = [_COMPILE_COMMANDS, *cmake_options(platform)]
    configure = _zephyr_configure(platform, root, workspace, options)
    places = _places(platform, app=root, workspace=workspace.topdir or workspace.base)
    seen = {**os.environ, **toolchain.environment, "ZEPHYR_BASE": str(workspace.base)}
    head = head_of(workspace.base)
    known = DEBIAN.get(platform.arch)
    tools = ["cmake", "dtc", "as", "ld", *([known.compiler] if known else [])]

    def scope() -> Scope:
        projects = projects_of(workspace)
        return Scope(
            "\n".join([str(root), str(workspace.base), *(f"{one} {head_of(one)}" for one in projects)]),
            listings=[
                *_app_directories(root, platform.port),
                *(path for tree in zephyr_trees(root) for path in directories_below(tree)),
            ],
            whole=[
                workspace.base / "scripts",
                *(tree / "dts" / "bindings" for tree in (workspace.base, *projects)),
            ],
            optional=[*zephyr_optional(root), *(project / "zephyr" / "module.yml" for project in projects)],
        )

    return Recipe(
        label=re.sub(r"[^\w.-]", "-", platform.zephyr_board),
        plan=_plan(platform, (*configure, head, workspace.version), places, seen, tools),
        configure=configure,
        compile=(find_tool("ninja"), "-C", BUILD_DIR),
        cwd=workspace.topdir or root,
        environment={**build_environment(seen), **_ccache_environment()},
        places=places,
        scope=scope,
    )


def _app_directories(root: Path, port: str) -> list[Path]:
    """The directories of the firmware's sources, without the other ports."""
    ports = root / "zephyr-app" / "ports"
    below = directories_below(root / "zephyr-app")
    return [one for one in below if not one.is_relative_to(ports) or one.is_relative_to(ports / port)]


def _places(platform: Platform, **directories: Path) -> Places:
    """Where things lie that may lie elsewhere; a project that is all of the disk is no place."""
    project = Path(platform.project)
    if platform.project and project != Path(project.anchor) and project not in directories.values():
        directories["project"] = project
    return Places(directories)


def _plan(
    platform: Platform,
    configure: Sequence[str],
    places: Places,
    environ: Mapping[str, str],
    tools: Sequence[str],
) -> str:
    """The hash of what is known before the build. Not in it: fields that only a run needs."""
    words = [places.shorten(word.replace(sys.executable, _PYTHON)) for word in configure]
    variables = [f"{name}={places.shorten(value)}" for name, value in counted(environ).items()]
    return hash_of([platform.elf, platform.starts, *words, *variables, *_resolved(tools)])


def _resolved(tools: Sequence[str]) -> Iterator[str]:
    """Where PATH has them: another that comes before is another tool."""
    for tool in tools:
        yield shutil.which(tool.split()[0] if tool.split() else tool) or tool


def _ccache_environment() -> dict[str, str]:
    """Lets ccache, where there is one, find in one build directory what it has seen in another.

    The C library alone is a thousand files, the same ones whatever the firmware's options.
    """
    ours = {"CCACHE_BASEDIR": str(cache_home()), "CCACHE_NOHASHDIR": "1"}
    return {name: value for name, value in ours.items() if name not in os.environ}


def _zephyr_configure(
    platform: Platform, root: Path, workspace: Workspace, options: Sequence[str]
) -> tuple[str, ...]:
    """By west in a west workspace, else by CMake: a bare tree with ZEPHYR_BASE has no modules."""
    board = platform.zephyr_board
    if workspace.topdir is None:
        cmake = (find_tool("cmake"), "-S", str(root), "-B", BUILD_DIR, "-G", "Ninja")
        return (*cmake, f"-DBOARD={board}", f"-DWEST_PYTHON={sys.executable}", *options)
    west = (sys.executable, "-m", "west", "build", "--cmake-only", "--pristine", "never")
    return (*west, "-b", board, "-d", BUILD_DIR, str(root), "--", "-G", "Ninja", *options)
