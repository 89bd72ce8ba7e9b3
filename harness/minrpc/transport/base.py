# SPDX-License-Identifier: Apache-2.0
"""The interface of a transport."""

from __future__ import annotations

from typing import Final, NoReturn, Protocol

from minrpc.errors import LinkClosedError

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


class ParentsLink:
    """A link in a fork of the process that opened it: every use is an error, and closing does nothing."""

    def __init__(self, link: Transport, process: int) -> None:
        self.name = link.name
        self._link = link  # The end of this object would close it.
        self._process = process

    def write(self, data: bytes, timeout_s: float) -> NoReturn:
        """Raise LinkClosedError."""
        self._refuse()

    def read(self, timeout_s: float) -> NoReturn:
        """Raise LinkClosedError."""
        self._refuse()

    def close(self) -> None:
        """Do nothing."""

    def _refuse(self) -> NoReturn:
        error = LinkClosedError(
            f"{self.name} belongs to process {self._process}, and this one is its fork",
            next_step="open a device in this process",
        )
        error.by_us = True
        raise error
