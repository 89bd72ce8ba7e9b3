# SPDX-License-Identifier: Apache-2.0
"""Default time limits, in seconds; the user or the platform may set other limits."""

from typing import Final

SESSION_TIMEOUT_S: Final = 30.0
"""Limit for the start of a session, in the device's running time."""

BOARD_SESSION_TIMEOUT_S: Final = 5.0
"""Limit for the start of a session on a device that already runs, which answers at once."""

CALL_TIMEOUT_S: Final = 60.0
"""Limit for each call, in the device's running time."""

TOTAL_TIMEOUT_S: Final = 3600.0
"""Limit for a whole command or test run, in wall time."""
