# SPDX-License-Identifier: Apache-2.0
"""Default time limits, in seconds, and the check of others, which the user or the platform may set."""

from numbers import Real
from threading import TIMEOUT_MAX
from typing import Final

SESSION_TIMEOUT_S: Final = 30.0
"""Limit for the start of a session, in the device's running time."""

BOARD_SESSION_TIMEOUT_S: Final = 5.0
"""Limit for the start of a session on a device that already runs, which answers at once."""

CALL_TIMEOUT_S: Final = 60.0
"""Limit for each call, in the device's running time."""

TOTAL_TIMEOUT_S: Final = 3600.0
"""Limit for a whole command or test run, in wall time."""


def require_seconds(name: str, seconds: object) -> float:
    """The seconds. Raises ValueError, with this name, unless above 0 and short enough for a thread."""
    if isinstance(seconds, bool) or not isinstance(seconds, Real) or not 0 < float(seconds) <= TIMEOUT_MAX:
        limits = f"above 0, and at most {TIMEOUT_MAX:.0f}"
        raise ValueError(f"{name} is a number of seconds {limits}, not {seconds!r}")
    return float(seconds)
