# SPDX-License-Identifier: Apache-2.0
"""A debug probe for RTT whose target's memory is a file: moves bytes between rings 0 and standard input and
output.

    python rtt_probe.py FILE BASE       BASE: the memory's address on the device
"""

from __future__ import annotations

import mmap
import os
import select
import sys
from pathlib import Path

NAME = b"SEGGER RTT".ljust(16, b"\0")
POLL_S = 0.001
UP_AT, DOWN_AT = 24, 48  # Offsets in the block, of a 32-bit target with one ring each way.
WRITTEN_AT, READ_AT = 12, 16  # Offsets in a ring's entry.


class Ring:
    """The ring whose entry is at `entry` of `memory`."""

    def __init__(self, memory: mmap.mmap, words: memoryview[int], entry: int, base: int) -> None:
        self._memory = memory
        self._words = words
        self._entry = entry
        self._data = self._offset(4) - base
        self._size = self._offset(8)

    def _offset(self, at: int) -> int:
        return self._words[(self._entry + at) // 4]

    def _set(self, at: int, offset: int) -> None:
        """Write an offset whole, as a probe does: `struct` writes it byte by byte."""
        self._words[(self._entry + at) // 4] = offset

    def room(self) -> int:
        """Bytes that can be put in one piece."""
        written, read = self._offset(WRITTEN_AT), self._offset(READ_AT)
        return min((read - written - 1) % self._size, self._size - written)

    def put(self, data: bytes) -> None:
        """Put bytes for which there is room."""
        at = self._offset(WRITTEN_AT)
        self._memory[self._data + at : self._data + at + len(data)] = data
        self._set(WRITTEN_AT, (at + len(data)) % self._size)

    def take(self) -> bytes:
        """The bytes that wait in one piece."""
        written, read = self._offset(WRITTEN_AT), self._offset(READ_AT)
        end = written if written >= read else self._size
        data = self._memory[self._data + read : self._data + end]
        self._set(READ_AT, end % self._size)
        return data


def serve(memory: mmap.mmap, words: memoryview[int], base: int) -> None:
    """Move bytes until the end of the input."""
    while (block := memory.find(NAME)) < 0:
        select.select([], [], [], POLL_S)
    up, down = (Ring(memory, words, block + at, base) for at in (UP_AT, DOWN_AT))
    while True:
        room = down.room()
        if select.select([0] if room else [], [], [], POLL_S)[0]:
            data = os.read(0, room)
            if not data:
                return
            down.put(data)
        if data := up.take():
            os.write(1, data)


def main() -> None:
    """Serve the file that the command line names."""
    with (
        Path(sys.argv[1]).open("r+b") as file,
        mmap.mmap(file.fileno(), 0) as memory,
        memoryview(memory) as data,
        data.cast("I") as words,
    ):
        serve(memory, words, int(sys.argv[2], 0))


if __name__ == "__main__":
    main()
