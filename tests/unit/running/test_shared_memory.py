# SPDX-License-Identifier: Apache-2.0
"""Memory in a file without a name, and QEMU's options for it."""

from __future__ import annotations

import os

import pytest
from minrpc.running.shared_memory import SharedMemory, memory_size, qemu_arguments


def test_both_sides_see_the_same_bytes() -> None:
    with SharedMemory(0x1000, 8192) as memory:
        memory.write(0x1010, b"hello")
        assert os.pread(memory.descriptor, 5, 0x10) == b"hello"
        os.pwrite(memory.descriptor, b"J", 0x10)
        assert memory.read(0x1010, 5) == b"Jello"


@pytest.mark.parametrize(
    ("address", "nbytes", "inside"),
    [(0x1000, 8192, True), (0xFFF, 1, False), (0x2FFF, 1, True), (0x2FFF, 2, False), (0x3000, 0, True)],
)
def test_what_it_has(address: int, nbytes: int, inside: bool) -> None:
    with SharedMemory(0x1000, 8192) as memory:
        assert memory.has(address, nbytes) is inside


def test_nothing_is_left() -> None:
    memory = SharedMemory(0, 4096)
    descriptor = memory.descriptor
    memory.close()
    memory.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_the_command_line() -> None:
    with SharedMemory(0, 4096) as memory:
        backend, machine = qemu_arguments(memory)[1::2]
        assert f"size=4096,mem-path=/dev/fd/{memory.descriptor},share=on" in backend
        assert machine == "memory-backend=minrpc-memory"


@pytest.mark.parametrize(
    ("words", "size"),
    [
        (["-m", "32"], 32 << 20),
        (["-m", "0x20"], 32 << 20),
        (["-m", "008"], 8 << 20),
        (["-m", "64M"], 64 << 20),
        (["-m", "1G,slots=2"], 1 << 30),
        (["-m", "size=512k"], 512 << 10),
        (["-m", "many"], None),
        (["-machine", "q35"], None),
        (["-m"], None),
    ],
)
def test_how_much_memory_qemu_is_given(words: list[str], size: int | None) -> None:
    assert memory_size(["qemu", *words]) == size
