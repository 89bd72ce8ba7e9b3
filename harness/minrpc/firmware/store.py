# SPDX-License-Identifier: Apache-2.0
"""Finished firmware in the cache: put there once, found by its plan and by the content of its inputs.

firmware/LABEL-NAME/     a firmware: the program, firmware.json, inputs.json
plans/PLAN/NAME          an empty file: names a firmware that was built by this plan
plans/PLAN/PLACES.look   the quick look's facts, for the directories of this machine
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from glob import glob
from pathlib import Path
from typing import Any, Final

from minrpc.firmware.cache import cache_home, filled, mark_used
from minrpc.firmware.identity import Content, Look, file_hash, hash_of, name_of
from minrpc.firmware.recipes import Recipe
from minrpc.host.files import write_whole

_ABOUT: Final = "firmware.json"
_INPUTS: Final = "inputs.json"


@dataclass(frozen=True, slots=True)
class StoredBuild:
    """A firmware in the store.

    name: the hash of its plan and inputs.
    about: facts from its build, see `minrpc.firmware.build`.
    """

    directory: Path
    name: str
    about: dict[str, Any]


def find(recipe: Recipe) -> StoredBuild | None:
    """The firmware that `recipe` would build from the current files; None if it is not in the store."""
    return _found_quickly(recipe) or _found_by_content(recipe)


def keep(recipe: Recipe, content: Content, look: Look, fill: Callable[[Path], dict[str, Any]]) -> StoredBuild:
    """Put a firmware into the store; `fill` copies its files to a directory and returns facts about it."""
    name = name_of(recipe.plan, content)
    directory = _directory(recipe, name)
    with filled(directory) as partial:
        about = fill(partial)
        files = (path for path in partial.rglob("*") if path.is_file())
        about["sizes"] = {str(path.relative_to(partial)): path.stat().st_size for path in files}
        (partial / _INPUTS).write_text(json.dumps(content.to_json(), indent=0))
        (partial / _ABOUT).write_text(json.dumps({"name": name, **about}, indent=1))
    plan = _plan_directory(recipe)
    plan.mkdir(parents=True, exist_ok=True)
    (plan / name).touch()
    write_whole(_look_file(recipe), replace(look, name=name).to_text())
    return StoredBuild(directory, name, about)


def program_with(build_id: str) -> Path | None:
    """The program of a kept firmware by its linker's build ID; None if there is none."""
    kept = cache_home() / "firmware"
    # Another process may remove firmware meanwhile: glob leaves out directories that are gone.
    for file in (name for pattern in ("*/*", "*/zephyr/*") for name in glob(pattern, root_dir=kept)):
        with suppress(IsADirectoryError, FileNotFoundError):
            content = (kept / file).read_bytes()
            if content.startswith(b"\x7fELF") and bytes.fromhex(build_id) in content:
                return kept / file
    return None


def _found_quickly(recipe: Recipe) -> StoredBuild | None:
    try:
        look = Look.from_text(_look_file(recipe).read_text())
    except (OSError, ValueError):
        return None
    return _stored(recipe, look.name) if look.holds() else None


def _found_by_content(recipe: Recipe) -> StoredBuild | None:
    read = cache(file_hash)
    for entry in _built_by(recipe):
        stored = _stored(recipe, entry.name)
        content = _content(stored) if stored else None
        if stored is None or content is None:
            with suppress(OSError):  # The firmware was removed, or is damaged; the cache may be read-only.
                entry.unlink()
            continue
        look = Look.at(stored.name, content.inputs(recipe.places))
        if content.holds(recipe.places, read):
            with suppress(OSError):  # With a read-only cache all inputs are read each time.
                write_whole(_look_file(recipe), look.to_text())
                os.utime(entry)
            return stored
    return None


def _built_by(recipe: Recipe) -> Iterator[Path]:
    """The firmware built by this plan, the most recently used first."""
    try:
        entries = [entry for entry in _plan_directory(recipe).iterdir() if not entry.suffix]
        yield from sorted(entries, key=lambda entry: entry.stat().st_mtime, reverse=True)
    except FileNotFoundError:
        return


def _stored(recipe: Recipe, name: str) -> StoredBuild | None:
    directory = _directory(recipe, name)
    try:
        about = json.loads((directory / _ABOUT).read_bytes())
        sizes = about.get("sizes", {})
        whole = all(os.stat(f"{directory}/{file}").st_size == size for file, size in sizes.items())
    except (OSError, ValueError):
        return None
    if not whole or about.get("name") != name:
        return None
    mark_used(directory)
    return StoredBuild(directory, name, about)


def _content(stored: StoredBuild) -> Content | None:
    try:
        return Content.from_json(json.loads((stored.directory / _INPUTS).read_bytes()))
    except (OSError, ValueError, KeyError):
        return None


def _directory(recipe: Recipe, name: str) -> Path:
    return cache_home() / "firmware" / f"{recipe.label}-{name[:16]}"


def _plan_directory(recipe: Recipe) -> Path:
    return cache_home() / "plans" / recipe.plan[:32]


def _look_file(recipe: Recipe) -> Path:
    return _plan_directory(recipe) / f"{hash_of([repr(recipe.places)])[:16]}.look"
