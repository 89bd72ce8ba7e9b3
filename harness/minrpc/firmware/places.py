# SPDX-License-Identifier: Apache-2.0
"""Paths that do not depend on a checkout's place: "{app}/zephyr-app/main.c". No I/O here.

Two checkouts of the same state have the same firmware, so its identity and debug information must not
contain the checkout's path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PREFIX: Final = "/minrpc"
"""The directory of sources in debug information: "/minrpc/app/zephyr-app/ports/posix/main.c"."""


class Places:
    """Directories by name: "app" the firmware's sources, "project" the user's, "workspace" Zephyr's."""

    def __init__(self, directories: Mapping[str, Path]) -> None:
        # The innermost first: a checkout lies in its workspace.
        self._directories = dict(sorted(directories.items(), key=lambda item: -len(str(item[1]))))
        named = "|".join(f"(?P<{name}>{re.escape(str(path))})" for name, path in self._directories.items())
        # The path itself or a path below it: not /a/bc for /a/b.
        self._pattern = re.compile(rf"(?:{named})(?![^/;:,\s\"'=])")

    def shorten(self, text: str) -> str:
        """`text` with each of the directories in it as "{name}"."""
        if not self._directories:
            return text
        return re.sub(self._pattern, lambda match: f"{{{match.lastgroup}}}", text)

    def shorten_path(self, path: str) -> str:
        """A path below one of the directories as "{name}/rest"; other paths unchanged."""
        for name, directory in self._directories.items():
            if path == str(directory) or path.startswith(f"{directory}/"):
                return f"{{{name}}}{path[len(str(directory)) :]}"
        return path

    def expand_path(self, path: str) -> str:
        """Reverses `shorten_path`."""
        if not path.startswith("{"):
            return path
        name, _, rest = path[1:].partition("}")
        return f"{self._directories[name]}{rest}" if name in self._directories else path

    def compiler_flags(self) -> list[str]:
        """Options that make a compiler write "/minrpc/NAME" for each directory; the last match wins."""
        return [
            f"-ffile-prefix-map={path}={PREFIX}/{name}" for name, path in reversed(self._directories.items())
        ]

    @property
    def named(self) -> dict[str, Path]:
        """The directory of each name in debug information, such as "/minrpc/app"."""
        return {f"{PREFIX}/{name}": path for name, path in self._directories.items()}

    def source(self, name: str) -> Path:
        """The path of the file that debug information calls `name`; other names are returned unchanged."""
        for place, directory in self._directories.items():
            prefix = f"{PREFIX}/{place}/"
            if name.startswith(prefix):
                return directory / name.removeprefix(prefix)
        return Path(name)

    def is_users(self, name: str) -> bool:
        """True if the file that debug information calls `name` is not of the runtime or the workspace."""
        return not name.startswith((f"{PREFIX}/app/zephyr-app/", f"{PREFIX}/workspace/"))

    def __repr__(self) -> str:
        return f"Places({self._directories!r})"
