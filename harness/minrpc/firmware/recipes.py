# SPDX-License-Identifier: Apache-2.0
"""The build of each port, as data: commands, environment, and the directories that the build searches."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from minrpc.errors import ConfigurationError
from minrpc.firmware.cache import cache_home
from minrpc.firmware.environment import build_environment, counted
from minrpc.firmware.identity import hash_of
from minrpc.firmware.inputs import LINK_DEPENDENCIES, directories_below, ninja, noting_options
from minrpc.firmware.places import PREFIX, Places
from minrpc.firmware.sources import zephyr_optional, zephyr_trees
from minrpc.firmware.toolchain import (
    DEBIAN,
    debian_compiler,
    debian_toolchain,
    environment_here,
    find_tool,
    zephyr_toolchain,
)
from minrpc.firmware.zephyr_workspace import Workspace, find_workspace, head_of, projects_of
from minrpc.targets import Platform
from minrpc.targets.qemu_command import find_qemu, without_wired

BUILD_DIR: Final = "{build}"
_PYTHON: Final = "{python}"
_COMPILE_COMMANDS: Final = "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"
_TAKES_A_WORD: Final = frozenset({"-D", "-U", "-C", "-G", "-T", "-A"})
# Zephyr's toolchains whose compiler runs GNU's assembler.
_GNU: Final = frozenset({"zephyr", "zephyr/gnu", "host", "host/gnu", "gnuarmemb", "cross-compile"})


@dataclass(frozen=True, slots=True)
class Scope:
    """The directories that a build searches; see `minrpc.firmware.inputs.inputs_of`.

    tree: identifies the source trees of a build tree: the checkout, the commits of Zephyr and its modules.
    """

    tree: str
    listings: Sequence[Path] = ()
    whole: Sequence[Path] = ()
    optional: Sequence[Path] = ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """A build in a directory that is chosen later; the word BUILD_DIR stands for it.

    label: name of the build, for the names of directories.
    plan: hash of all that decides the result, apart from the content of files.
    configure, compile: commands.
    cwd: the directory in which they run.
    environment: all variables.
    places: the directories that the user may move.
    scope: the directories that it searches; called only by a build.
    arch, bare: of the required Debian compiler; "" if Zephyr's own build looks for a compiler.
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
        """Raise ToolchainMissingError if a requirement other than a program is missing."""
        if self.arch:
            debian_toolchain(self.arch, bare=self.bare)

    def environment_in(self, build_dir: Path) -> dict[str, str]:
        """The environment for a build in `build_dir`.

        Compilers get path-prefix maps; the linker gets `--dependency-file`, to record its inputs.
        """
        flags = [*self.places.compiler_flags(), f"-ffile-prefix-map={build_dir}={PREFIX}/build"]
        own = dict.fromkeys(("CFLAGS", "CXXFLAGS", "ASMFLAGS"), flags)
        own["LDFLAGS"] = ["-Xlinker", f"--dependency-file={build_dir / LINK_DEPENDENCIES}"]
        users = self.environment
        return {
            **users,
            **{name: f"{shlex.join(words)} {users.get(name, '')}".strip() for name, words in own.items()},
        }


@dataclass(frozen=True, slots=True)
class BuildOutcome:
    """Facts about a firmware from its finished build directory; see `Firmware`."""

    qemu_argv: tuple[str, ...] = ()
    icount_shift: int | None = None


def recipe_for(platform: Platform, root: Path) -> Recipe:
    """The recipe that builds `platform` from the sources at `root`.

    Raises ToolchainMissingError, ZephyrMissingError.
    """
    return (_zephyr_recipe if platform.port == "zephyr" else _cmake_recipe)(platform, root)


def cmake_options(platform: Platform) -> list[str]:
    """CMake's options for the user's own sources, headers, definitions, libraries and options.

    Raises ConfigurationError for a word that is no option: CMake would ignore it.
    """
    for before, word in pairwise(("", *platform.cmake_options)):
        if not word.startswith("-") and before not in _TAKES_A_WORD:
            step = f"write -D{word}"
            raise ConfigurationError(
                f"{word!r} is no option of CMake's: it begins with no dash", next_step=step
            )
    lists = {
        "SOURCES": platform.sources,
        "INCLUDES": platform.include_dirs,
        "DEFINITIONS": platform.defines,
        "LIBRARIES": platform.libraries,
    }
    extra = [f"-DMINRPC_EXTRA_{name}={';'.join(values)}" for name, values in lists.items() if values]
    return [*extra, *_library_options(platform), *platform.cmake_options]


def _library_options(platform: Platform) -> list[str]:
    """CMake's options for libraries that are linked in, and for the program that makes their thunks."""
    linked = [library for library in platform.named_libraries if library.linked]
    if not linked:
        return []
    options = [f"-DMINRPC_LIBRARIES={';'.join(library.name for library in linked)}"]
    for library in linked:
        lists = {
            name: value for name, value in library._asdict().items() if isinstance(value, tuple) and value
        }
        options += [
            f"-DMINRPC_LIBRARY_{library.name}_{name.upper()}={';'.join(value)}"
            for name, value in lists.items()
        ]
    package = Path(__file__).parents[1]
    return [*options, f"-DMINRPC_PYTHON={sys.executable}", f"-DMINRPC_PACKAGE={package}"]


def _link_option(platform: Platform) -> list[str]:
    return [] if platform.firmware_link == "uart" else [f"-DMINRPC_LINK={platform.firmware_link}"]


def outcome_of(platform: Platform, build_dir: Path) -> BuildOutcome:
    """Zephyr's facts about running the build under QEMU; empty for other ports."""
    if platform.port != "zephyr" or platform.starts != "qemu":
        return BuildOutcome()
    argv = []
    if not platform.qemu_args:  # The platform's entry has its own QEMU options.
        argv = find_qemu(ninja(build_dir, "-t", "commands", "run_qemu"))
    make_images(argv, build_dir)
    return BuildOutcome(tuple(argv), configured_shift((build_dir / "zephyr" / ".config").read_text()))


def make_images(argv: Sequence[str], build_dir: Path) -> None:
    """Make the files that QEMU's command line `argv` names, if one is absent or older than the program.

    Zephyr makes the images for 64-bit x86 only for its run target: after a further build, QEMU would run the
    program before it. Raises BuildError.
    """
    made = (build_dir / "zephyr" / "zephyr.elf").stat().st_mtime_ns
    # Twister's own run would make the pipes and files that are wired.
    files = files_in(without_wired(argv), build_dir)
    if any(not path.exists() or path.stat().st_mtime_ns < made for path in files):
        ninja(build_dir, "qemu_kernel_target")


def files_in(argv: Sequence[str], build_dir: Path) -> list[Path]:
    """The paths below `build_dir` that the words of `argv` name."""
    paths = re.findall(re.escape(str(build_dir)) + r"/[^\s,]+", "\n".join(argv))
    return [Path(path) for path in paths]


def configured_shift(config: str) -> int | None:
    """The icount shift in the text of a Zephyr .config; None when instruction counting is off."""
    shift = re.search(r"^CONFIG_QEMU_ICOUNT_SHIFT=(\d+)$", config, re.MULTILINE)
    enabled = re.search(r"^CONFIG_QEMU_ICOUNT=y$", config, re.MULTILINE)
    return int(shift[1]) if shift and enabled else None


def _cmake_recipe(platform: Platform, root: Path) -> Recipe:
    ports = root / "zephyr-app" / "ports"
    source = ports / platform.port
    compiler = debian_compiler(platform.arch)
    environ = environment_here()
    tools = list(map(_tool_path, (compiler, environ.get("CC", "cc"), "as", "ld")))
    # A compiler may be found by another name: cc may be a link to gcc.
    noting = noting_options() if all("gcc" in Path(os.path.realpath(tool)).name for tool in tools[:2]) else []
    options = [*_link_option(platform), *noting, *cmake_options(platform)]
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
    seen = {
        **environment_here(),
        **toolchain.environment,
        "ZEPHYR_BASE": os.path.realpath(workspace.base),
    }
    noting = noting_options() if seen.get("ZEPHYR_TOOLCHAIN_VARIANT", "zephyr") in _GNU else []
    options = [_COMPILE_COMMANDS, *noting, *cmake_options(platform)]
    configure = _zephyr_configure(platform, root, workspace, options)
    places = _places(platform, app=root, workspace=workspace.topdir or workspace.base)
    head = head_of(workspace.base)
    known = DEBIAN.get(platform.arch)
    tools = list(map(_tool_path, ("cmake", "dtc", "as", "ld", *([known.compiler] if known else []))))

    def scope() -> Scope:
        projects = projects_of(workspace)
        return Scope(
            "\n".join(
                [str(root), str(workspace.base), *(f"{project} {head_of(project)}" for project in projects)]
            ),
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
    return [item for item in below if not item.is_relative_to(ports) or item.is_relative_to(ports / port)]


def _places(platform: Platform, **directories: Path) -> Places:
    """The directories that may be moved; a project directory of "/" is left out."""
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
    """The hash of all facts known before the build, without fields that only a run needs.

    tools: their paths: a tool that is earlier on PATH is another tool.
    """
    words = [places.shorten(word.replace(sys.executable, _PYTHON)) for word in configure]
    variables = [f"{name}={places.shorten(value)}" for name, value in counted(environ).items()]
    return hash_of([platform.elf, platform.starts, *words, *variables, *tools])


def _tool_path(command: str) -> str:
    """The path of a command's program; the command itself if PATH has no such program."""
    return shutil.which(command.split()[0] if command.split() else command) or command


def _ccache_environment() -> dict[str, str]:
    """Lets ccache, if installed, use results of one build directory in another.

    The C library alone is a thousand files, the same for all options of the firmware.
    """
    ours = {"CCACHE_BASEDIR": str(cache_home()), "CCACHE_NOHASHDIR": "1"}
    return {name: value for name, value in ours.items() if name not in os.environ}


def _zephyr_configure(
    platform: Platform, root: Path, workspace: Workspace, options: Sequence[str]
) -> tuple[str, ...]:
    """The command to configure: west in a west workspace, else CMake; a bare ZEPHYR_BASE has no modules."""
    board = platform.zephyr_board
    if workspace.topdir is None:
        cmake = (find_tool("cmake"), "-S", str(root), "-B", BUILD_DIR, "-G", "Ninja")
        return (*cmake, f"-DBOARD={board}", f"-DWEST_PYTHON={sys.executable}", *options)
    west = (sys.executable, "-m", "west", "build", "--cmake-only", "--pristine", "never")
    return (*west, "-b", board, "-d", BUILD_DIR, str(root), "--", "-G", "Ninja", *options)
