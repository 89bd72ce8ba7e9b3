# SPDX-License-Identifier: Apache-2.0
"""What every transport can do."""

from __future__ import annotations

from typing import Final, Protocol

MAX_READ: Final = 65536
"""The most that one read returns, in 8-bit bytes."""


class Transport(Protocol):
    """A link that carries bytes both ways. Not for use by two threads at once."""

    @property
    def name(self) -> str:
        """For messages: "/dev/ttyACM0", "pty /dev/pts/3"."""

    def write(self, data: bytes, timeout_s: float) -> None:
        """Write all of `data`.

        While the far end takes nothing, what it sends is read and kept for `read`, so that two full buffers
        can't block each other.

        Raises DeadlineError when not all of it is out after `timeout_s` seconds (its `written` says how much
        is), and LinkClosedError when the far end is gone.
        """

    def read(self, timeout_s: float) -> bytes:
        """What is there, at most MAX_READ bytes; b"" when none came within `timeout_s` seconds.

        Raises LinkClosedError at the end, once everything that came before it has been read.
        """

    def close(self) -> None:
        """Let go of the link. A second call does nothing."""
