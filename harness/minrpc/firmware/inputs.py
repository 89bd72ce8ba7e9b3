# SPDX-License-Identifier: Apache-2.0
"""The files that a finished build, or a single compilation, has read, as recorded by its own tools.

    compiler    headers and files of the assembler, its programs, its directories of headers
                (`minrpc.firmware.compiler_notes`)
    CMake       its inputs to configure (CMakeLists, modules, Kconfig, devicetree), by its file API
    ninja       all inputs of rules, and each header, from the compiler's dependency files
    make        files of the host's side of native_sim, from the compiler's dependency files
    the linker  its script, start files and libraries, by --dependency-file
    CMake       the programs that it found; the compiler names the programs that it runs

The files of these programs themselves are left out: shared libraries, locales and the like.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minrpc.errors import BuildError
from minrpc.firmware import compiler_notes as notes
from minrpc.firmware.toolchain import find_tool
from minrpc.host.process import ask_tool

LINK_DEPENDENCIES: Final = "link.d"
"""The linker's dependency file, in the build directory."""

_API: Final = ".cmake/api/v1"
_CMAKE_FILES: Final = "cmakeFiles-v1"
_PROGRAMS: Final = ("cc1", "cc1plus", "as", "ld", "collect2", "lto-wrapper")
_PLUGIN: Final = "liblto_plugin.so"
_COMPILERS: Final = ("C", "CXX", "ASM")
_ASSEMBLED: Final = ".as.d"
# The host's side of Zephyr's native_sim is compiled by its own makefile, which runs in each build.
_SIMULATOR: Final = "zephyr/NSI/**/*.d"


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a build or compilation. All paths are absolute.

    files: checked by ninja, which rebuilds the outputs of newer files.
    tools: further files whose bytes count, programs and libraries, unknown to ninja.
    listings: directories in which configuring looks for files: the names in them count.
    searched: directories in which a file of `names` would be found before, or beside, the file that was read.
    unsure: the reason why there may be further inputs, so that the result is not used again; "" if there are
        none.
    """

    files: frozenset[str]
    tools: frozenset[str]
    listings: frozenset[str]
    searched: frozenset[str]
    names: frozenset[str]
    unsure: str = ""


def noting_options() -> list[str]:
    """CMake's options by which GCC's assembler tells the files that it reads, for each object."""
    rule = "<CMAKE_{0}_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -Wa,--MD,<OBJECT>{1} -o <OBJECT> -c <SOURCE>"
    return [f"-DCMAKE_{name}_COMPILE_OBJECT={rule.format(name, _ASSEMBLED)}" for name in _COMPILERS]


def inputs_of(
    build_dir: Path, *, listings: Iterable[Path], whole: Iterable[Path], optional: Iterable[Path]
) -> Inputs:
    """All inputs of the finished build in `build_dir`.

    listings: see `Inputs`.
    whole: directories in which all files count: programs of the build that import one another.
    optional: paths that the build looks for and that may be missing.
    Raises BuildError when the build's own notes can't be read.
    """
    commands = _commands(build_dir)
    headers = {os.path.normpath(os.path.join(build_dir, path)) for path in _headers(build_dir)}
    places = (f"{build_dir}/", f"{os.path.realpath(build_dir)}/")
    # A virtual environment's programs: each checkout has its own.
    programs = (f"{sys.prefix}/bin/",) if sys.prefix != sys.base_prefix else ()

    def counting(paths: Iterable[str]) -> frozenset[str]:
        absolute = {os.path.normpath(os.path.join(build_dir, path)) for path in paths}
        return frozenset(
            path for path in absolute if not path.startswith((*places, *programs)) and _counts(path)
        )

    files = counting([*_configured_from(build_dir), *_ninja_inputs(build_dir), *headers])
    assembled, simulator = list(build_dir.rglob(f"*{_ASSEMBLED}")), list(build_dir.glob(_SIMULATOR))
    others = [*_linked(build_dir), *_cached_values(build_dir), *_compiler_files(commands)]
    others += [path for rule in assembled + simulator for path in notes.files_of_rule(_text(rule))]
    tools = counting(others + [str(path) for item in whole for path in files_below(item)]) - files
    options = {word for _, words in commands for word in words}
    told = bool(assembled) and not any(word.startswith("-flto") for word in options)
    asked = notes.asked_files(_contents(headers), times=False, bytes_told=told)
    directories = {path for path in _searched(commands, files) if not path.startswith((*places, "/usr/"))}
    searched, names = notes.looked_for([*headers, *tools], directories, asked.asked)
    return Inputs(
        files=files,
        tools=tools,
        listings=frozenset(str(path) for path in listings),
        searched=searched | {str(path.parent) for path in optional},
        names=names | {path.name for path in optional},
        unsure=asked.unsure or notes.untold_by(options),
    )


def inputs_of_compilation(command: Sequence[str], work: Path, told: str) -> Inputs:
    """All inputs of a compilation that has ended, except files in `work`.

    command: without the options of `noting`. work: its directory, with the dependency files. told: its
        output.
    """
    said = notes.notes_of(command, told)

    def existing(paths: Iterable[str]) -> frozenset[str]:
        absolute = {os.path.join(work, path) for path in paths}
        return frozenset(
            path for path in absolute if not path.startswith(f"{work}/") and os.path.isfile(path)
        )

    rules = [work / name for name in (notes.PREPROCESSED, notes.ASSEMBLED)]
    files = existing(path for rule in rules if rule.is_file() for path in notes.files_of_rule(_text(rule)))
    programs = existing(shutil.which(program) or program for program in said.programs)
    asked = notes.asked_files(_contents(files), times=True, bytes_told=rules[1].is_file())
    directories = {os.path.join(work, path) for path in said.directories}
    directories |= {os.path.dirname(path) for path in files}
    outside = {path for path in directories if path and not f"{path}/".startswith(f"{work}/")}
    searched, names = notes.looked_for(files, outside, asked.asked)
    return Inputs(
        files=files,
        tools=programs | (existing(said.options) - files),
        listings=frozenset(),
        searched=searched | said.program_places,
        names=names | notes.PROGRAM_NAMES,
        unsure=asked.unsure or notes.untold_by(command),
    )


def names_in(directory: str, wanted: frozenset[str] | None = None) -> list[str]:
    """The names in a directory that count, sorted: the names in `wanted`, or all names except temporary files
    of tools."""
    try:
        with os.scandir(directory) as entries:
            if wanted is not None:
                return sorted(entry.name for entry in entries if entry.name in wanted)
            return sorted(entry.name for entry in entries if not _is_litter(entry.name, entry.is_dir()))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def files_below(directory: Path) -> Iterator[Path]:
    """All files in a directory tree that count."""
    for parent, names, files in os.walk(directory):
        names[:] = [name for name in names if not _is_litter(name, True)]
        yield from (Path(parent, name) for name in files if not _is_litter(name, False))


def directories_below(directory: Path) -> Iterator[Path]:
    """`directory` and all in it that count."""
    for parent, names, _ in os.walk(directory):
        names[:] = [name for name in names if not _is_litter(name, True)]
        yield Path(parent)


def _is_litter(name: str, is_directory: bool) -> bool:
    """True for files that editors, Python and builds leave in a source tree."""
    if is_directory:
        return name.startswith((".", "build")) or name == "__pycache__"
    return name.startswith((".", "#")) or name.endswith(("~", ".pyc", ".orig"))


def _counts(path: str) -> bool:
    """False for git's own files: they change when read, and the identity includes the commit anyway."""
    return "/.git/" not in path and os.path.isfile(path)


def ninja(build_dir: Path, *words: str) -> str:
    """The output of a ninja tool for a build. Raises BuildError."""
    command = [find_tool("ninja"), "-C", str(build_dir), *words]
    ran = ask_tool(command)
    if ran.returncode != 0:
        raise BuildError(
            f"ninja can't list the files that the build in {build_dir} read",
            details=(ran.stderr or ran.stdout).splitlines(),
            next_step="check that `ninja --version` is 1.11 or later",
        )
    return ran.stdout


def ask_for_inputs(build_dir: Path) -> None:
    """Ask CMake, before it configures, for its inputs: ninja 1.13 does not list them."""
    query = _query(build_dir)
    query.parent.mkdir(parents=True)
    query.touch()


def was_asked(build_dir: Path) -> bool:
    """False for a build directory of an earlier version of this package."""
    return _query(build_dir).is_file()


def _query(build_dir: Path) -> Path:
    return build_dir / _API / "query" / _CMAKE_FILES


def _configured_from(build_dir: Path) -> list[str]:
    """CMake's inputs: see cmake-file-api(7), "cmakeFiles". Raises BuildError without CMake's answer."""
    replies = build_dir / _API / "reply"
    try:
        last = max(replies.glob("index-*.json"), default=replies / "index-*.json")
        index = json.loads(last.read_bytes())
        answer = json.loads((replies / index["reply"][_CMAKE_FILES]["jsonFile"]).read_bytes())
        return [os.path.join(answer["paths"]["source"], item["path"]) for item in answer["inputs"]]
    except (OSError, ValueError, KeyError) as error:
        raise BuildError(
            f"CMake did not list the files that the build in {build_dir} read: {error!r}",
            next_step="check that `cmake --version` is 3.20 or later",
        ) from error


def _ninja_inputs(build_dir: Path) -> list[str]:
    lines = ninja(build_dir, "-t", "inputs", "all").splitlines()
    return [line for line in lines if line and not line.startswith("ninja: ")]


def _headers(build_dir: Path) -> set[str]:
    """Headers and sources from the compiler's dependency files, which ninja has read."""
    return {line.strip() for line in ninja(build_dir, "-t", "deps").splitlines() if line.startswith(" ")}


def _text(path: Path) -> str:
    return path.read_text(errors="surrogateescape")


def _contents(paths: Iterable[str]) -> dict[str, bytes]:
    return {path: Path(path).read_bytes() for path in sorted(paths) if os.path.isfile(path)}


def _linked(build_dir: Path) -> set[str]:
    file = build_dir / LINK_DEPENDENCIES
    if not file.is_file():
        return set()
    words = notes.files_of_rule(file.read_text())
    # A library's linker script is named as in its specs, and searched for.
    return {word for word in words if os.path.isabs(word)}


def _cached_values(build_dir: Path) -> Iterator[str]:
    """Files that CMake's cache names, mostly programs, and files that CMake tests a compiler with."""
    for line in (build_dir / "CMakeCache.txt").read_text(errors="replace").splitlines():
        name, _, value = line.partition("=")
        if value.startswith("/") and os.path.isfile(value):
            yield value
        if name == "CMAKE_ROOT:INTERNAL":
            modules = Path(value, "Modules")
            yield from (str(path) for suffix in ("in", "h", "c") for path in modules.glob(f"CMake*.{suffix}"))


def _commands(build_dir: Path) -> list[tuple[str, list[str]]]:
    """The directory and the words of each compilation."""
    file = build_dir / "compile_commands.json"
    if not file.is_file():
        return []
    entries = json.loads(file.read_text())
    return [(entry["directory"], shlex.split(entry["command"])) for entry in entries]


def _compiler_files(commands: Sequence[tuple[str, list[str]]]) -> set[str]:
    """The compilers of `commands`, the programs that they run and the specs that they read."""
    files: set[str] = set()
    for compiler, flags in {_compiler_and_specs(words) for _, words in commands}:
        asked = [f"-print-prog-name={name}" for name in _PROGRAMS] + [f"-print-file-name={_PLUGIN}"]
        asked += [f"-print-file-name={flag.partition('=')[2]}" for flag in flags]
        answers = [_answer(compiler, question) for question in asked]
        files |= {
            path for path in (shutil.which(answer) or answer for answer in answers) if os.path.isabs(path)
        }
        files |= {path for path in (compiler, shutil.which(Path(compiler).name)) if path}
    return files


def _compiler_and_specs(words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The compiler (after ccache, if used) and its options that name files."""
    programs = [word for word in words[:2] if not word.startswith("-")]
    return programs[-1], tuple(sorted({word for word in words if word.startswith("--specs=")}))


def _answer(compiler: str, question: str) -> str:
    ran = ask_tool([compiler, question])
    return os.path.normpath(ran.stdout.strip()) if ran.returncode == 0 and ran.stdout.strip() else ""


def _searched(commands: Sequence[tuple[str, list[str]]], files: Iterable[str]) -> set[str]:
    """The directories in which the compiler looks for headers before its own: -I, and the source's
    directory."""
    flag = re.compile(r"-(?:I|isystem|iquote)(.*)")
    directories = {os.path.dirname(path) for path in files if path.endswith((".c", ".h", ".S", ".inc"))}
    for directory, words in commands:
        for word, following in zip(words, [*words[1:], ""], strict=True):
            option = flag.fullmatch(word)
            if option:
                directories.add(os.path.normpath(os.path.join(directory, option[1] or following)))
    return directories
