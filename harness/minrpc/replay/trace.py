# SPDX-License-Identifier: Apache-2.0
"""The record of a call: a plugin in QEMU writes it to a ring in memory that it shares with this process.

A step is 16 bytes, two numbers, `where` and `what`:

- A block of code that begins: its address; the top bit, and the distance of its last instruction.
- A block of other code after one of watched code, such as a function of the firmware or of an interrupt: its
  address; the two top bits.
- An access: the address of the instruction; the accessed address in the lower 56 bits, in bits 56 to 59 the
  size as a power of two, and a bit each for a device's register (61) and for a store (62).

Watched are loaded code, and the C library's functions for blocks of memory and strings. QEMU may leave a
block after an access to a register: the instructions up to that have run. Values are not recorded.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from minrpc.counters.image import Image, LoadedCode
from minrpc.counters.plugin_memory import PluginMemory

SOURCE: Final = Path(__file__).with_name("record_plugin.c")

STEP: Final = np.dtype([("where", "<u8"), ("what", "<u8")])
"""A step; see above."""
BLOCK: Final = np.uint64(1 << 63)
STORE: Final = np.uint64(1 << 62)
LEFT: Final = BLOCK | STORE
"""`what` of a block of code that is not watched."""
IO: Final = np.uint64(1 << 61)
SIZE_AT: Final = np.uint64(56)
ADDRESS: Final = np.uint64((1 << 56) - 1)

Steps = npt.NDArray[np.void]

MOVERS: Final = frozenset(
    f"{prefix}{name}"
    for prefix in ("", "__aeabi_")
    for name in (
        *("memcpy", "memcpy4", "memcpy8", "memmove", "memmove4", "memmove8", "memset", "memset4", "memset8"),
        *("memclr", "memclr4", "memclr8", "memcmp", "memchr", "memrchr", "mempcpy", "memccpy", "memmem"),
        *("strcpy", "stpcpy", "strncpy", "stpncpy", "strcat", "strncat", "strlcpy", "strlcat", "strlen"),
        *("strnlen", "strcmp", "strncmp", "strcasecmp", "strncasecmp", "strchr", "strrchr", "strstr"),
        *("strspn", "strcspn", "strpbrk", "strtok", "strtok_r", "bcopy", "bzero", "wcscpy", "wcslen"),
    )
)
"""The firmware's functions whose accesses are recorded as the caller's."""

_LAYOUT: Final = 2
_WATCHES: Final = 8192
_STEPS: Final = 1 << 22
_PAGE: Final = 4096
_CONTROL: Final = np.dtype(
    [
        (name, "<u8")
        for name in ("layout", "watches", "watches_at", "steps_at", "steps_max", "steps", "taken", "lost")
    ]
)
_WATCH: Final = np.dtype([("base", "<u8"), ("size", "<u8")])


class Recorded(NamedTuple):
    """steps: in their order. lost: number of later steps for which the ring had no room."""

    steps: Steps
    lost: int


class Recorder(PluginMemory):
    """The plugin for one run of QEMU. Also a context manager, which frees the memory.

    image: the firmware, and the code that was loaded. room: number of steps that the ring has.
    """

    def __init__(self, image: Image, *, room: int = _STEPS) -> None:
        self.image = image
        self.room = room
        super().__init__("minrpc-record", SOURCE)

    def _map(self) -> None:
        steps_at = _PAGE + _WATCHES * _WATCH.itemsize
        size = steps_at + self.room * STEP.itemsize
        os.ftruncate(self._fd, size)
        memory = mmap.mmap(self._fd, size)
        self._control = np.frombuffer(memory, _CONTROL, 1)[0]
        self._watches = np.frombuffer(memory, _WATCH, _WATCHES, _PAGE)
        self._ring = np.frombuffer(memory, STEP, self.room, steps_at)
        movers = [function for function in self.image.functions if function.name in MOVERS]
        self._watches[: len(movers)] = [(item.start, item.end - item.start) for item in movers]
        self._control["watches"], self._control["watches_at"] = len(movers), _PAGE
        self._control["steps_at"], self._control["steps_max"] = steps_at, self.room
        self._control["layout"] = _LAYOUT

    def note_code(self, base: int, size: int, name: str, program: bytes) -> None:
        """Watch loaded code, `size` bytes at `base`, from now on; `program` is its ELF file."""
        count = int(self._control["watches"])
        if not self._is_watched(base, size):
            self._watches[count % _WATCHES] = (base, size)
            self._control["watches"] = min(count + 1, _WATCHES)
        self.image.note_code(LoadedCode(base, size, name, program))

    def _is_watched(self, base: int, size: int) -> bool:
        known = self._watches[: int(self._control["watches"])]
        bases, sizes = known["base"].astype(np.int64), known["size"].astype(np.int64)
        return bool(((bases <= base) & (bases + sizes >= base + size)).any())

    def take(self) -> Recorded:
        """The steps since the last `take`; only while the device runs no code."""
        begin, end = int(self._control["taken"]), int(self._control["steps"])
        steps, lost = self._ring[np.arange(begin, end) & (self.room - 1)], int(self._control["lost"])
        self._control["taken"], self._control["lost"] = end, 0
        return Recorded(steps, lost)
