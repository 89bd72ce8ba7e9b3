# SPDX-License-Identifier: Apache-2.0
"""Where the firmware's sources are, and what a build is made from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from minrpc.errors import ConfigurationError

_PACKAGE: Final = Path(__file__).resolve().parent.parent
# Files of a Zephyr application that lie at the root, where Zephyr looks for them.
_ZEPHYR_ROOT_FILES: Final = ("CMakeLists.txt", "Kconfig", "prj.conf", "VERSION")
_ZEPHYR_ROOT_DIRS: Final = ("boards", "dts", "drivers", "zephyr")


def firmware_root() -> Path:
    """The directory that holds zephyr-app/: the checkout, or where an installed package keeps a copy.

    Raises ConfigurationError when there is neither.
    """
    for root in (_PACKAGE.parents[1], _PACKAGE / "firmware" / "sources"):
        if (root / "zephyr-app").is_dir():
            return root
    raise ConfigurationError(
        f"the firmware's sources are not beside {_PACKAGE}",
        next_step="install the package again, or work in a checkout: `pip install -e .`",
    )


def source_files(root: Path, port: str) -> list[Path]:
    """The files that the firmware's `port` is built from, sorted: all but the other ports."""
    ports = root / "zephyr-app" / "ports"
    files = [path for path in _files_below(root / "zephyr-app") if not _of_other_port(path, ports, port)]
    if port == "zephyr":
        files += [root / name for name in _ZEPHYR_ROOT_FILES if (root / name).is_file()]
        files += [path for name in _ZEPHYR_ROOT_DIRS for path in _files_below(root / name)]
    return sorted(files)


def content_hash(root: Path, files: Iterable[Path], words: Iterable[str]) -> str:
    """A name for what comes out of `files` (their paths below `root` count, and their bytes) and `words`."""
    total = hashlib.sha256()
    for path in files:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{os.path.relpath(path, root)}\0{digest}\n".encode())
    for word in words:
        total.update(f"{word}\0".encode())
    return total.hexdigest()


def option_files(options: Iterable[str]) -> list[Path]:
    """The files that options like -DNAME=FILE;FILE name: what is in them counts too."""
    words = [word for option in options for word in option.partition("=")[2].split(";")]
    return sorted(Path(word) for word in words if word and Path(word).is_file())


def _files_below(directory: Path) -> Iterator[Path]:
    for parent, names, files in os.walk(directory):
        names[:] = [name for name in names if not name.startswith((".", "build"))]
        yield from (Path(parent, name) for name in files if not name.startswith("."))


def _of_other_port(path: Path, ports: Path, port: str) -> bool:
    return path.is_relative_to(ports) and not path.is_relative_to(ports / port)
