# SPDX-License-Identifier: Apache-2.0
"""`minrpc doctor`: installed versions, missing requirements by platform, and commands that install them."""

from __future__ import annotations

import argparse
import platform as machine
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, TypedDict

from minrpc.cli.json_output import add_json_option, write_json
from minrpc.errors import ConfigurationError
from minrpc.firmware.cache import SIZE_VARIABLE, cache_home, entries, limit, size_text
from minrpc.host import sandbox
from minrpc.pipeline import Requirement, requirements
from minrpc.reports.columns import beside, wrapped
from minrpc.targets import Platform, find_platform, load_platforms
from minrpc.targets.options import add_device_options, split_names

_COLUMN: Final = 24
_PACKAGES: Final = ("minrpc-harness", "numpy", "pytest", "pyserial", "pyelftools", "pexpect", "west")


class _Kept(TypedDict):
    """The cache of firmware."""

    directory: str
    used_bytes: int
    limit_bytes: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_json_option(parser.add_argument)
    text = "only these: platforms, or boards of Zephyr's"
    parser.add_argument("--platform", action="append", default=[], metavar="NAME[,NAME...]", help=text)
    add_device_options(parser.add_argument, ["platforms-file"])


def main(arguments: argparse.Namespace) -> int:
    """Show everything; 0 if every default platform, or each named platform, can run here, else 1."""
    known = load_platforms(arguments.platforms_file)
    named = [find_platform(known, name) for name in split_names(arguments.platform)]
    platforms = named or [item for item in known.values() if item.starts != "board"]
    needs = {platform.name: requirements(platform) for platform in platforms}
    kept = _kept()
    print(_about(kept))
    print(f"\n{_table(platforms, needs)}\n")
    print(_advice(needs))
    defaults = [
        requirement
        for platform in platforms
        if named or platform.default
        for requirement in needs[platform.name]
    ]
    passed = not any(default.missing for default in defaults)
    write_json(arguments, _content(needs, kept), passed=passed)
    return 0 if passed else 1


def _content(needs: Mapping[str, list[Requirement]], kept: _Kept | ConfigurationError) -> dict[str, Any]:
    return {
        "machine": machine.platform(),
        "packages": {"python": machine.python_version(), **{name: _version(name) for name in _PACKAGES}},
        # The row of each platform names the missing package.
        "cache": None if isinstance(kept, ConfigurationError) else kept,
        "platforms": [
            {
                "platform": name,
                "needs": [asdict(package) | {"missing": package.missing} for package in needed],
            }
            for name, needed in needs.items()
        ],
    }


def _kept() -> _Kept | ConfigurationError:
    try:
        used_bytes = sum(entry.bytes for entry in entries())
        return {"directory": str(cache_home()), "used_bytes": used_bytes, "limit_bytes": limit()}
    except ConfigurationError as error:
        return error


def _cache_text(kept: _Kept | ConfigurationError) -> str:
    if isinstance(kept, ConfigurationError):
        return f"firmware can't be kept: {kept.message}; {kept.next_step}"
    used = f"{kept['directory']}: {size_text(kept['used_bytes'])} of at most {size_text(kept['limit_bytes'])}"
    hint = f"({SIZE_VARIABLE}); `minrpc cache --clean` removes entries without recent use"
    return f"firmware is kept in {used} {hint}"


def _about(kept: _Kept | ConfigurationError) -> str:
    lines = [f"{machine.platform()}, Python {machine.python_version()} ({sys.executable})"]
    lines.append(", ".join(f"{name} {_version(name)}" for name in _PACKAGES))
    lines.append(_cache_text(kept))
    why_not = sandbox.why_not()
    lines.append(
        f"no sandbox: {why_not}; sudo apt-get install bubblewrap" if why_not else "sandbox: bubblewrap"
    )
    return "\n".join("\n".join(wrapped(line)) for line in lines)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"


def _table(platforms: Iterable[Platform], needs: dict[str, list[Requirement]]) -> str:
    """Each requirement, the version found, and the platforms that need it."""
    users: dict[Requirement, list[str]] = {}
    for platform in platforms:
        for need in needs[platform.name]:
            users.setdefault(need, []).append(platform.name)
    lines = []
    for need, names in users.items():
        lines.append(beside(need.name, need.found or f"MISSING: {need.problem}", column=_COLUMN))
        if len(needs) > 1:
            users_text = "all" if len(names) == len(needs) else ", ".join(names)
            lines.append(beside("", f"for {users_text}", column=_COLUMN))
    return "\n".join(lines)


def _advice(needs: dict[str, list[Requirement]]) -> str:
    commands: dict[str, list[str]] = {}
    for name, needed in needs.items():
        for package in needed:
            if package.missing and name not in commands.setdefault(package.command, []):
                commands[package.command].append(name)
    if not commands:
        return "nothing is missing"
    lines = ["to install the missing packages:"]
    for command, names in commands.items():
        # The command stands alone, so that it can be copied.
        lines += [f"  {command}", beside("", f"for {', '.join(names)}", column=6)]
    return "\n".join(lines)
