# SPDX-License-Identifier: Apache-2.0
"""Builds firmware, once: what was built from the same sources, tools and options is taken from the cache."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from minrpc.errors import BuildError
from minrpc.firmware.cache import cache_home, filled, locked, mark_used, remove_unused
from minrpc.firmware.firmware import Firmware
from minrpc.firmware.recipes import (
    BUILD_DIR,
    Outcome,
    Recipe,
    cmake_options,
    files_in,
    outcome_of,
    recipe_for,
)
from minrpc.firmware.sources import content_hash, firmware_root, option_files, source_files
from minrpc.host.process import exited_within, spawn_logged, stop_group
from minrpc.targets import Platform, Target

_BUILD_S: Final = 30 * 60.0
_ERROR: Final = re.compile(
    r"error:|Error:|CMake Error|FATAL ERROR|undefined reference|multiple definition|overflowed|"
    r"No such file|cannot find|: not found|aborting"
)
# CMake's news and ninja's progress, which name what they look for and files like strerror.c.
_NEWS: Final = re.compile(r"-- |\[\d+/\d+\] ")
_ERROR_LINES: Final = 6
_CONFIGURED: Final = ".minrpc-configured"
_RECORDS: Final = (
    "CMakeCache.txt",
    "zephyr/.config",
    "zephyr/runners.yaml",
    "zephyr/zephyr.bin",
    "zephyr/zephyr.dts",
    "zephyr/zephyr.hex",
    "zephyr/zephyr.map",
)
# A checkout that is edited while it builds is built again, so that a name always means what it says.
_ROUNDS: Final = 3


def build(target: Target, *, root: Path | None = None) -> Firmware:
    """The firmware of `target`.

    root: the checkout with the sources; found when None.

    Several processes may build at once: one works, the others wait and take what it made.
    Raises BuildError (with the compiler's first errors), ToolchainMissingError, ZephyrMissingError.
    """
    begin = time.monotonic()
    root = root or firmware_root()
    recipe = recipe_for(target.platform, root)
    name = _content(target.platform, root, recipe)
    firmware = _cached(target, name) or _build(target, root, recipe)
    return replace(firmware, seconds=time.monotonic() - begin)


def _content(platform: Platform, root: Path, recipe: Recipe) -> str:
    files = [*source_files(root, platform.port), *option_files(cmake_options(platform))]
    return content_hash(root, files, recipe.identity)


def _store(platform: Platform, name: str) -> Path:
    return cache_home() / "firmware" / f"{platform.name}-{name[:16]}"


def _cached(target: Target, name: str) -> Firmware | None:
    platform = target.platform
    directory = _store(platform, name)
    try:
        about = json.loads((directory / "firmware.json").read_text())
    except FileNotFoundError:
        return None
    mark_used(directory)
    return Firmware(
        target=target,
        elf=directory / platform.elf,
        build_dir=directory,
        content_hash=name,
        cached=True,
        seconds=0.0,
        qemu_argv=tuple(word.replace(BUILD_DIR, str(directory)) for word in about["qemu_argv"]),
        icount_shift=about["icount_shift"],
    )


def _build(target: Target, root: Path, recipe: Recipe) -> Firmware:
    platform = target.platform
    work = _work_dir(platform, root, recipe)
    with locked(work.with_suffix(".lock")) as lock:
        for _ in range(_ROUNDS):
            name = _content(platform, root, recipe)
            made_by_other = _cached(target, name)
            if made_by_other:
                return made_by_other
            failure = _run_recipe(platform, recipe, work, lock)
            if _content(platform, root, recipe) != name:
                continue
            if failure is not None:
                raise failure
            return _keep(target, name, work)
    raise BuildError(f"the sources of {platform.name} change while they are built", next_step="try again")


def _work_dir(platform: Platform, root: Path, recipe: Recipe) -> Path:
    """The build tree; a new one when a file comes or goes that CMake or Kconfig look for when they configure.

    They would not look again: a board's .conf that is new would be left out of an old build tree.
    """
    files = source_files(root, platform.port)
    looked_for = [str(path.relative_to(root)) for path in files if path.suffix not in (".c", ".h")]
    key = hashlib.sha256("\0".join([*recipe.identity, *looked_for]).encode()).hexdigest()[:16]
    return cache_home() / "work" / f"{platform.name}-{key}"


def _keep(target: Target, name: str, work: Path) -> Firmware:
    """Put what a run of the firmware needs into the store."""
    platform = target.platform
    outcome = outcome_of(platform, work)
    elf = work / platform.elf
    if not elf.is_file():
        raise BuildError(
            f"the build of {platform.name} made no {platform.elf}",
            log_path=_log(work),
            next_step="correct the platform's `elf`, the program's path below the build directory",
        )
    with filled(_store(platform, name)) as directory:
        for file in {elf, *files_in(outcome.qemu_argv, work), *_records(work)}:
            _copy(file, directory / file.relative_to(work))
        (directory / "firmware.json").write_text(_about(outcome, work))
    remove_unused(cache_home() / "firmware")
    mark_used(work)
    remove_unused(work.parent)
    kept = _cached(target, name)
    assert kept is not None
    return replace(kept, cached=False)


def _about(outcome: Outcome, work: Path) -> str:
    argv = [word.replace(str(work), BUILD_DIR) for word in outcome.qemu_argv]
    return json.dumps({"qemu_argv": argv, "icount_shift": outcome.icount_shift}, indent=1)


def _records(work: Path) -> list[Path]:
    """What a person wants to see later, and what `west flash` needs."""
    return [work / name for name in _RECORDS if (work / name).is_file()]


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


def _log(work: Path) -> Path:
    return work.with_suffix(".log")


def _run_recipe(platform: Platform, recipe: Recipe, work: Path, lock: int) -> BuildError | None:
    """Configure where that was not done, then compile; the log has both. What went wrong is returned."""
    _log(work).unlink(missing_ok=True)
    try:
        _configure(platform, recipe, work, lock)
        _run(platform, recipe.compile, recipe, work, lock)
    except BuildError as error:
        return error
    return None


def _configure(platform: Platform, recipe: Recipe, work: Path, lock: int) -> None:
    """A tree whose configuring did not come to its end is made anew: what is half there can't be trusted."""
    configured = work / _CONFIGURED
    if not configured.exists():
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        _run(platform, recipe.configure, recipe, work, lock)
        configured.touch()


def _run(platform: Platform, command: Sequence[str], recipe: Recipe, work: Path, lock: int) -> None:
    log = _log(work)
    argv = [str(work) if word == BUILD_DIR else word for word in command]
    environment = {**os.environ, **recipe.environment}
    process = spawn_logged(argv, log, cwd=recipe.cwd, env=environment, pass_fds=(lock,))
    try:
        status = exited_within(process, _BUILD_S)
    finally:
        stop_group(process)
    if status is None:
        message = f"the build of {platform.name} did not end within {_BUILD_S / 60:.0f} minutes"
        raise BuildError(message, log_path=log)
    if status != 0:
        raise BuildError(
            f"the firmware of {platform.name} did not build",
            log_path=log,
            details=first_errors(log.read_text(errors="backslashreplace")),
        )


def first_errors(log: str) -> list[str]:
    """The lines of a build's log that say what is wrong first, else its last lines."""
    lines = [line.rstrip() for line in log.splitlines() if line.strip() and not _NEWS.match(line)]
    errors = [index for index, line in enumerate(lines) if _ERROR.search(line)]
    if not errors:
        return lines[-_ERROR_LINES:]
    return lines[errors[0] : errors[0] + _ERROR_LINES]
