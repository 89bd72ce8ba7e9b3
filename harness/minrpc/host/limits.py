# SPDX-License-Identifier: Apache-2.0
"""Time limits, in seconds, where neither the user nor the platform sets them."""

from typing import Final

SESSION_TIMEOUT_S: Final = 30.0
"""A session is there, of the time that the device could run."""

BOARD_SESSION_TIMEOUT_S: Final = 5.0
"""The same for a device that runs already: it answers at once, or something is wrong."""

CALL_TIMEOUT_S: Final = 60.0
"""Each call, of the time that the device could run."""

TOTAL_TIMEOUT_S: Final = 3600.0
"""A whole command or test run, of plain time."""
