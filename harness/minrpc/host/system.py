# SPDX-License-Identifier: Apache-2.0
"""This system, its abilities, and its user's directories."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

if sys.platform != "win32":
    import pwd

_NAMES: Final = {"win32": "Windows", "darwin": "macOS", "linux": "Linux"}
WHAT_HELPS: Final = "use Debian or Ubuntu in WSL, a container or a virtual machine"


def why_nothing_starts() -> str:
    """Why processes and emulators can't be started here; "" on Linux, where they can.

    The harness watches and ends them by pidfds, PR_SET_PDEATHSIG and scheduler statistics, which only Linux
    has.
    """
    if sys.platform == "linux":
        return ""
    name = _NAMES.get(sys.platform, sys.platform)
    return f"processes and emulators are started on Linux only, and this is {name}"


def user_directory(variable: str, default: str) -> Path:
    """The directory that an XDG variable names, else `default` below the user's home directory.

    A path that is empty or not absolute counts as not set (XDG specification); so does such a HOME.
    """
    named = os.environ.get(variable, "")
    return Path(named) if os.path.isabs(named) else home_directory() / default


def home_directory() -> Path:
    """The user's home directory: HOME, or the user's entry in the password database."""
    home = os.environ.get("HOME", "")
    if sys.platform == "win32":
        return Path.home()
    return Path(home if os.path.isabs(home) else pwd.getpwuid(os.getuid()).pw_dir)
