# SPDX-License-Identifier: Apache-2.0
"""The interface of a transport."""

from __future__ import annotations

from typing import Final, Protocol

MAX_READ: Final = 65536
"""Largest result of one read, in 8-bit bytes."""


class Transport(Protocol):
    """A link that carries bytes both ways. It is not thread-safe."""

    @property
    def name(self) -> str:
        """The link's name for messages: "/dev/ttyACM0", "pty /dev/pts/3"."""

    def write(self, data: bytes, timeout_s: float) -> None:
        """Write all of `data`.

        While the far end reads nothing, its bytes are read and kept for `read`, so that two full buffers
        can't block each other.

        Raises DeadlineError when bytes are left after `timeout_s` seconds (its `written` counts the bytes
        that were sent), and LinkClosedError when the far end is gone.
        """

    def read(self, timeout_s: float) -> bytes:
        """The bytes that have arrived, at most MAX_READ; b"" when none came within `timeout_s` seconds.

        Raises LinkClosedError at the link's end, after all bytes before the end have been read.
        """

    def close(self) -> None:
        """Releases the link. A second call does nothing."""
