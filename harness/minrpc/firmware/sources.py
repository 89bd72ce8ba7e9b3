# SPDX-License-Identifier: Apache-2.0
"""Finds the firmware's sources."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minrpc.errors import ConfigurationError

_PACKAGE: Final = Path(__file__).resolve().parent.parent
# Files of a Zephyr application that lie at the root, where Zephyr looks for them.
_ZEPHYR_ROOT_FILES: Final = ("CMakeLists.txt", "Kconfig", "prj.conf", "VERSION")
_ZEPHYR_ROOT_DIRS: Final = ("boards", "dts", "drivers", "zephyr")


def firmware_root() -> Path:
    """The directory that holds zephyr-app/: the checkout, or the copy in an installed package.

    Raises ConfigurationError when there is neither.
    """
    for root in (_PACKAGE.parents[1], _PACKAGE / "firmware" / "sources"):
        if (root / "zephyr-app").is_dir():
            return root
    raise ConfigurationError(
        f"the firmware's sources are not beside {_PACKAGE}",
        next_step="install the package again, or work in a checkout: `pip install -e .`",
    )


def zephyr_trees(root: Path) -> list[Path]:
    """The directories in which Zephyr looks for files of the application."""
    return [root / name for name in _ZEPHYR_ROOT_DIRS]


def zephyr_optional(root: Path) -> list[Path]:
    """Paths that Zephyr looks for beside the application's CMakeLists.txt; they may be missing."""
    return [root / name for name in (*_ZEPHYR_ROOT_FILES, *_ZEPHYR_ROOT_DIRS)]
