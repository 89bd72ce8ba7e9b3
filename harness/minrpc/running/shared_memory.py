# SPDX-License-Identifier: Apache-2.0
"""Memory that the device shares with this process: QEMU's guest memory, in an anonymous file (memfd).

QEMU maps the file as the machine's main memory (`-machine memory-backend=`). The guest sees
writes at once. QEMU's translated code is not updated, so code is never written this way.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Self

BACKEND_ID: Final = "minrpc-memory"

_UNITS: Final = {"": 1 << 20, "M": 1 << 20, "G": 1 << 30, "K": 1 << 10}


class SharedMemory:
    """`size` bytes at the device's address `base`.

    The device's process inherits `descriptor`; the memory is freed once both processes have closed it.

    proved: True if an address means the same bytes on both sides; None until a copy has tested it.
    """

    proved: bool | None = None

    def __init__(self, base: int, size: int) -> None:
        self.base = base
        self.size = size
        self.descriptor = os.memfd_create("minrpc", os.MFD_CLOEXEC)
        try:
            os.ftruncate(self.descriptor, size)
            self._map = mmap.mmap(self.descriptor, size)
        except BaseException:
            os.close(self.descriptor)
            raise

    def has(self, address: int, nbytes: int) -> bool:
        """True if all `nbytes` at `address` lie in this memory."""
        return self.base <= address and address + nbytes <= self.base + self.size

    def write(self, address: int, data: bytes | memoryview) -> None:
        """Copy `data` to `address`, which `has` must have confirmed."""
        begin = address - self.base
        self._map[begin : begin + len(data)] = data

    def read(self, address: int, nbytes: int) -> bytes:
        """The `nbytes` bytes at `address`, which `has` must have confirmed."""
        begin = address - self.base
        return self._map[begin : begin + nbytes]

    def close(self) -> None:
        """Release the memory. A second call does nothing."""
        if not self._map.closed:
            self._map.close()
            os.close(self.descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def qemu_arguments(memory: SharedMemory) -> list[str]:
    """QEMU's arguments for this memory."""
    source = f"size={memory.size},mem-path=/dev/fd/{memory.descriptor},share=on"
    backend = f"memory-backend-file,id={BACKEND_ID},{source}"
    return ["-object", backend, "-machine", f"memory-backend={BACKEND_ID}"]


def memory_size(argv: Sequence[str]) -> int | None:
    """Size of the main memory by QEMU's option `-m`, in bytes; None without that option."""
    for option, value in pairwise(argv):
        if option == "-m":
            number = re.fullmatch(r"(?:size=)?(0x[0-9a-f]+|\d+)([kmg]?)", value.split(",")[0], re.IGNORECASE)
            if number:
                return int(number[1], 0 if "x" in number[1].lower() else 10) * _UNITS[number[2].upper()]
    return None
