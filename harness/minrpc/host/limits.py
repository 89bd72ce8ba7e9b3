# SPDX-License-Identifier: Apache-2.0
"""Time limits, in seconds, where neither the user nor the platform sets them."""

from typing import Final

SESSION_TIMEOUT_S: Final = 30.0
"""A session is there, of the time that the device could run."""

CALL_TIMEOUT_S: Final = 60.0
"""Each call, of the time that the device could run."""

TOTAL_TIMEOUT_S: Final = 3600.0
"""A whole command or test run, of plain time."""
