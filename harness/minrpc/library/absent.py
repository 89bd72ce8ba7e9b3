# SPDX-License-Identifier: Apache-2.0
"""Messages about symbols that a library needs and that neither it nor the firmware has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

# Functions of an operating system that C libraries call.
_FILES: Final = "the device has no files"
_PROCESSES: Final = "the device has neither processes nor signals"
_CLOCK: Final = "the firmware has no clock for the C library"
_END: Final = "exit ends the call, and the device restarts"
ENDINGS: Final = frozenset(("atexit", "at_quick_exit", "on_exit"))
"""Functions of a C library that register code for a program's end, which loaded code does not have."""
_REASONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("open", "close", "read", "write", "lseek", "unlink", "stat", "fstat", "isatty"), _FILES),
    **dict.fromkeys(("kill", "getpid", "fork", "execve", "wait"), _PROCESSES),
    **dict.fromkeys(ENDINGS, _END),
    **dict.fromkeys(("times", "gettimeofday", "clock_gettime", "nanosleep"), _CLOCK),
}
_SHOWN: Final = 6


def nowhere(names: Sequence[str]) -> str:
    """The names, with the reason: "open, which ... have: the device has no files"."""
    wanted = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    reasons = "; ".join(dict.fromkeys(_REASONS[name] for name in names if name in _REASONS))
    who = "which neither its sources, nor its libraries, nor the firmware have"
    return f"{wanted}, {who}" + (f": {reasons}" if reasons else "")
