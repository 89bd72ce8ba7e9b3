# SPDX-License-Identifier: Apache-2.0
"""What is wrong, from a build's log."""

from __future__ import annotations

import re
from typing import Final

_ERROR: Final = re.compile(
    r"error:|Error:|CMake Error|FATAL ERROR|undefined reference|multiple definition|overflowed|"
    r"No such file|cannot find|: not found|aborting"
)
# CMake's news and ninja's progress, which name what they look for and files like strerror.c.
_NEWS: Final = re.compile(r"-- |\[\d+/\d+\] ")
_ERROR_LINES: Final = 6


def first_errors(log: str) -> list[str]:
    """The lines of a build's log that say what is wrong first, else its last lines."""
    lines = [line.rstrip() for line in log.splitlines() if line.strip() and not _NEWS.match(line)]
    errors = [index for index, line in enumerate(lines) if _ERROR.search(line)]
    if not errors:
        return lines[-_ERROR_LINES:]
    return lines[errors[0] : errors[0] + _ERROR_LINES]
