# SPDX-License-Identifier: Apache-2.0
"""Which system this is, and what can be done on it."""

from __future__ import annotations

import sys
from typing import Final

_NAMES: Final = {"win32": "Windows", "darwin": "macOS", "linux": "Linux"}
WHAT_HELPS: Final = "use Debian or Ubuntu in WSL, a container or a virtual machine"


def why_nothing_starts() -> str:
    """Why processes and emulators can't be started here; "" on Linux, where they can.

    They are watched and ended by what only its kernel has: pidfds, PR_SET_PDEATHSIG, scheduler statistics.
    """
    if sys.platform == "linux":
        return ""
    name = _NAMES.get(sys.platform, sys.platform)
    return f"processes and emulators are started on Linux only, and this is {name}"
