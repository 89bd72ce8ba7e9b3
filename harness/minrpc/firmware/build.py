# SPDX-License-Identifier: Apache-2.0
"""Builds firmware once: firmware of the same sources, tools and options is taken from the cache."""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from minrpc.errors import BuildError
from minrpc.firmware import store
from minrpc.firmware.build_tree import BuildAttempt, BuildTree
from minrpc.firmware.cache import bound_at_times, cache_home, in_the_cache, locked, mark_used
from minrpc.firmware.firmware import Firmware
from minrpc.firmware.identity import hash_of
from minrpc.firmware.recipes import BUILD_DIR, Recipe, files_in, outcome_of, recipe_for
from minrpc.firmware.sources import firmware_root
from minrpc.firmware.store import StoredBuild
from minrpc.firmware.zephyr_boards import resolved
from minrpc.firmware.zephyr_build import firmware_in
from minrpc.targets import Platform, Target

_RECORDS: Final = (
    "CMakeCache.txt",
    "compile_commands.json",
    # Zephyr's C library, if the build compiles it: for code that is loaded later.
    "modules/picolibc/libc.a",
    "zephyr/.config",
    "zephyr/runners.yaml",
    "zephyr/zephyr.bin",
    "zephyr/zephyr.dts",
    "zephyr/zephyr.hex",
    "zephyr/zephyr.map",
)
LIBRARIES: Final = "minrpc-libraries"
"""In the build directory: a directory of objects for each library that is linked in."""
LIBRARY: Final = "minrpc_library_"
"""Behind it the library's name: the target of its objects, and with ".dir" the directory of its reports."""

# Number of builds of a checkout that is edited during the build: a name must match its content.
_ROUNDS: Final = 3


def build(target: Target, *, root: Path | None = None) -> Firmware:
    """The firmware of `target`.

    root: the checkout with the sources; found when None.

    Several processes may build at once: one builds, the others wait and take its result.
    Raises BuildError (with the compiler's first errors), ToolchainMissingError, ZephyrMissingError, and
    ConfigurationError for a board that Zephyr does not have.
    """
    if not isinstance(target, Target):
        raise TypeError(f"a firmware is built of a target, not of {target!r}")
    if target.build_dir is not None:
        return firmware_in(target, target.build_dir)
    begin = time.monotonic()
    target = replace(target, platform=resolved(target.platform))
    recipe = recipe_for(target.platform, root or firmware_root())
    stored = store.find(recipe)
    cached = stored is not None
    if stored is None:
        with in_the_cache():
            stored, cached = _build(target.platform, recipe)
    return _firmware(target, recipe, stored, cached, time.monotonic() - begin)


def _firmware(target: Target, recipe: Recipe, stored: StoredBuild, cached: bool, seconds: float) -> Firmware:
    directory, about = stored.directory, stored.about
    return Firmware(
        target=target,
        elf=directory / target.platform.elf,
        build_dir=directory,
        content_hash=stored.name,
        cached=cached,
        seconds=seconds,
        qemu_argv=tuple(word.replace(BUILD_DIR, str(directory)) for word in about["qemu_argv"]),
        icount_shift=about["icount_shift"],
        places=recipe.places,
    )


def _build(platform: Platform, recipe: Recipe) -> tuple[StoredBuild, bool]:
    """The firmware, and True if another process has built it meanwhile."""
    recipe.check()
    scope = recipe.scope()
    # CMake keeps the paths of its configuration; the project may lie elsewhere now.
    name = hash_of([recipe.plan, scope.tree, *recipe.configure])[:16]
    work = cache_home() / "work" / f"{recipe.label}-{name}"
    with locked(work.with_suffix(".lock")) as lock:
        tree = BuildTree(recipe, scope, work, lock)
        for _ in range(_ROUNDS):
            made_by_other = store.find(recipe)
            if made_by_other is not None:
                return made_by_other, True
            ended = tree.run(platform)
            if not ended.changed:
                return _kept(platform, recipe, tree, ended), False
    raise BuildError(
        f"the sources of {platform.name} change while they are built",
        details=[f"changed: {path}" for path in ended.changed],
        next_step="try again; where the build itself writes them, let it write to its own directory",
    )


def _kept(platform: Platform, recipe: Recipe, tree: BuildTree, ended: BuildAttempt) -> StoredBuild:
    """Put the files that a run of the firmware needs into the store."""
    if ended.failure is not None:
        raise ended.failure
    assert ended.content is not None
    assert ended.look is not None
    work = tree.directory
    outcome = outcome_of(platform, work)
    elf = work / platform.elf
    if not elf.is_file():
        raise BuildError(
            f"the build of {platform.name} made no {platform.elf}",
            log_path=tree.log,
            next_step="correct the platform's `elf`, the program's path below the build directory",
        )

    def fill(directory: Path) -> dict[str, Any]:
        for file in {elf, *files_in(outcome.qemu_argv, work), *_records(work)}:
            _copy(file, directory / file.relative_to(work))
        argv = [word.replace(str(work), BUILD_DIR) for word in outcome.qemu_argv]
        return {"qemu_argv": argv, "icount_shift": outcome.icount_shift}

    stored = store.keep(recipe, ended.content, ended.look, fill)
    mark_used(work)
    bound_at_times(keep=(stored.directory, work))
    return stored


def _records(work: Path) -> list[Path]:
    """Files kept for people, for `west flash`, and to compile further sources with the same options."""
    headers = [path for directory in _made_includes(work) for path in directory.rglob("*") if path.is_file()]
    libraries = [path for path in (work / LIBRARIES).rglob("*.[oa]") if path.is_file()]
    for reports in (f"{LIBRARIES}/thunks*.su", f"{LIBRARY}*.dir/**/*.ci") if libraries else ():
        libraries += work.rglob(reports)
    return [work / name for name in _RECORDS if (work / name).is_file()] + headers + libraries


def _made_includes(work: Path) -> set[Path]:
    """The directories of headers that the build itself made."""
    commands = work / "compile_commands.json"
    text = commands.read_text() if commands.is_file() else ""
    named = re.findall(rf"(?:-I|-isystem) ?({re.escape(str(work))}/[^\s\"]*include[^\s\"]*)", text)
    return {work / "zephyr" / "include" / "generated", *(Path(name) for name in named)}


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)
