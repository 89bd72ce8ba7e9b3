# SPDX-License-Identifier: Apache-2.0
"""The memory of a device that is a process of this machine, as Linux shows it to the process's parent."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial


class ProcessMemory:
    """Reads memory of the process `pid`. `close` releases it."""

    def __init__(self, pid: int) -> None:
        self._path = f"/proc/{pid}/mem"
        self._descriptor: int | None = None

    def read(self, address: int, nbytes: int) -> bytes | None:
        """The `nbytes` bytes at `address`; None if they can't be read: it has ended, they are not mapped."""
        content = self._read(address, nbytes)
        if content is None:
            # A process that has executed a program again has other memory.
            self.close()
            content = self._read(address, nbytes)
        return content

    def reader(self, address: int, nbytes: int) -> Callable[[], bytes]:
        """Reads one place: no bytes once the process has executed a program again.

        Raises OSError at once if the process can't be read.
        """
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        return partial(os.pread, self._descriptor, nbytes, address)

    def close(self) -> None:
        """Close the file. A later `read` opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _read(self, address: int, nbytes: int) -> bytes | None:
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            content = os.pread(self._descriptor, nbytes, address)
        except (OSError, OverflowError):
            return None
        return content if len(content) == nbytes else None
