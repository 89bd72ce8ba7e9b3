# SPDX-License-Identifier: Apache-2.0
"""Time limits, in seconds, where neither the user nor the platform sets them."""

from typing import Final

SESSION_TIMEOUT_S: Final = 30.0
"""Limit for the start of a session, in the device's running time."""

BOARD_SESSION_TIMEOUT_S: Final = 5.0
"""The same for a device that runs already, which answers at once."""

CALL_TIMEOUT_S: Final = 60.0
"""Limit for each call, in the device's running time."""

TOTAL_TIMEOUT_S: Final = 3600.0
"""Limit for a whole command or test run, in plain time."""
