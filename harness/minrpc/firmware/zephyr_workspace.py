# SPDX-License-Identifier: Apache-2.0
"""Finds the user's Zephyr."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from minrpc.errors import ZephyrMissingError
from minrpc.host.system import home_directory

# Where the build of each Zephyr says which tools it takes.
_TOOLS: Final = {
    "python": ("python.cmake", r"\bPYTHON_MINIMUM_REQUIRED (\d+)\.(\d+)"),
    "cmake": ("zephyr_default.cmake", r"(?m)^cmake_minimum_required\(VERSION (\d+)\.(\d+)"),
}

OLDEST: Final = (3, 7)
"""The oldest Zephyr that the firmware builds with."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """A Zephyr tree.

    base: the value for ZEPHYR_BASE.
    topdir: directory of its west workspace; None for a bare tree.
    version: as in its VERSION file: "4.2.99".
    found_by: how it was found, for messages.
    """

    base: Path
    topdir: Path | None
    version: str
    found_by: str

    @property
    def number(self) -> tuple[int, ...]:
        """The version as numbers: (4, 2, 99)."""
        return _key(self.version)

    def oldest(self, tool: Literal["python", "cmake"]) -> tuple[int, int]:
        """The oldest version of the tool that this Zephyr's build takes: (3, 12); (0, 0) if it tells none."""
        file, line = _TOOLS[tool]
        path = self.base / "cmake" / "modules" / file
        said = re.search(line, path.read_text()) if path.is_file() else None
        return (int(said[1]), int(said[2])) if said else (0, 0)


def find_workspace(project: Path, cwd: Path | None = None) -> Workspace:
    """The Zephyr to use, the first that exists of:

    1. the environment's ZEPHYR_BASE;
    2. the west workspace around `cwd` (the current directory when None);
    3. the west workspace around `project`;
    4. CMake's package registry (`west zephyr-export`), the newest version there.

    Raises ZephyrMissingError when there is none, or when the chosen Zephyr is damaged or too old.
    """
    candidate = next(_candidates(project, cwd or Path.cwd()), None)
    if candidate is None:
        ours = (cwd or Path.cwd()) / "west.yml"
        raise ZephyrMissingError(
            "no Zephyr workspace was found",
            stage="find Zephyr",
            details=_LOOKED_IN,
            next_step=_INIT_HERE if ours.is_file() else None,
        )
    base, how = candidate
    version = read_version(base)
    if version is None:
        raise ZephyrMissingError(f"{base} (from {how}) holds no Zephyr: no VERSION file", stage="find Zephyr")
    if _key(version) < OLDEST:
        raise ZephyrMissingError(
            f"Zephyr {version} in {base} is too old: {OLDEST[0]}.{OLDEST[1]} is the oldest that works",
            stage="find Zephyr",
            next_step="update that workspace, or point ZEPHYR_BASE at a newer workspace",
        )
    return Workspace(base, find_topdir(base), version, how)


def workspaces(project: Path, cwd: Path | None = None) -> list[Workspace]:
    """Every Zephyr that the firmware builds with, found as `find_workspace` does, each once."""
    bases: dict[Path, str] = {}
    for base, how in _candidates(project, cwd or Path.cwd()):
        bases.setdefault(base, how)
    known = [Workspace(base, find_topdir(base), read_version(base) or "", how) for base, how in bases.items()]
    return [item for item in known if item.number >= OLDEST]


_INIT_HERE: Final = "run `west init -l . && west update` here, or set ZEPHYR_BASE"
_LOOKED_IN: Final = (
    "looked in: ZEPHYR_BASE (not set), the west workspace around the current directory and around the",
    "project (none), CMake's package registry (empty)",
)


def read_version(base: Path) -> str | None:
    """The version of the Zephyr at `base`, from its VERSION file: "3.7.1"; None when there is none."""
    try:
        text = (base / "VERSION").read_text()
    except OSError:
        return None
    fields = dict(re.findall(r"^(\w+)\s*=[ \t]*(\d+)", text, re.MULTILINE))
    if not {"VERSION_MAJOR", "VERSION_MINOR", "PATCHLEVEL"} <= fields.keys():
        return None
    return f"{fields['VERSION_MAJOR']}.{fields['VERSION_MINOR']}.{fields['PATCHLEVEL']}"


def find_topdir(start: Path) -> Path | None:
    """The west workspace at or above `start`: the directory that holds .west/config."""
    for directory in (start, *start.parents):
        if (directory / ".west" / "config").is_file():
            return directory
    return None


def head_of(tree: Path) -> str:
    """The commit that is checked out in a git repository; "" if there is no repository, or git fails."""
    git = tree / ".git"
    try:
        head = (git / "HEAD").read_text().strip()
        name = head.removeprefix("ref: ")
        if name == head:
            return head
        if (git / name).is_file():
            return (git / name).read_text().strip()
        packed = (git / "packed-refs").read_text().splitlines()
    except OSError:
        return ""
    return next((line.split()[0] for line in packed if line.endswith(f" {name}")), "")


def projects_of(workspace: Workspace) -> list[Path]:
    """The manifest's paths of Zephyr's modules, which may be missing; none for a bare tree."""
    if workspace.topdir is None:
        return []
    # Only a build needs these imports, and they take a while to load.
    from west.configuration import MalformedConfig
    from west.manifest import MalformedManifest, Manifest, ManifestImportFailed, ManifestVersionError

    try:
        projects = Manifest.from_topdir(str(workspace.topdir)).projects
    except (MalformedManifest, MalformedConfig, ManifestImportFailed, ManifestVersionError, OSError):
        return []  # West itself will report the error.
    paths = [Path(project.abspath) for project in projects if project.abspath]
    return [path for path in paths if path != workspace.base]


def _candidates(project: Path, cwd: Path) -> Iterator[tuple[Path, str]]:
    named = os.environ.get("ZEPHYR_BASE")
    if named:
        yield Path(named).resolve(), "ZEPHYR_BASE"
    for start, where in ((cwd, "the current directory"), (project, "the project")):
        topdir = find_topdir(start.resolve())
        base = topdir and _base_in(topdir)
        if base:
            yield base, f"the west workspace around {where}"
    yield from ((base, "CMake's package registry") for base in _registered())


def _base_in(topdir: Path) -> Path | None:
    """The Zephyr of a west workspace: as its configuration says, else zephyr/; None if missing."""
    config = configparser.ConfigParser(interpolation=None)
    config.read(topdir / ".west" / "config")
    base = topdir / config.get("zephyr", "base", fallback="zephyr")
    return base if base.is_dir() else None


def _registered() -> list[Path]:
    """The trees in CMake's package registry that are still there, the newest first."""
    entries = (home_directory() / ".cmake" / "packages" / "Zephyr").glob("*")
    packages = [Path(entry.read_text().strip()) for entry in entries if entry.is_file()]
    # An entry names ZEPHYR_BASE/share/zephyr-package/cmake.
    bases = {package.parents[2] for package in packages if len(package.parents) > 2}
    versions = {base: read_version(base) for base in bases}
    known = [base for base, version in versions.items() if version]
    return sorted(known, key=lambda base: _key(versions[base]), reverse=True)


def _key(version: str | None) -> tuple[int, ...]:
    return tuple(int(number) for number in (version or "0").split("."))
