# SPDX-License-Identifier: Apache-2.0
"""Copies through shared memory: the arrays that can be reached, the copies that must go over the link, and
the proof of the memory."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, strategies as st
from minrpc.client.direct import Direct
from minrpc.wire.dtypes import DataType
from minrpc.wire.values import DLTensor

BYTES = DataType(1, 8)
BASE = 0x1000


@dataclass
class Memory:
    proved: bool | None = None
    data: bytearray = field(default_factory=lambda: bytearray(256))

    def has(self, address: int, nbytes: int) -> bool:
        return address >= BASE and address + nbytes <= BASE + len(self.data)

    def write(self, address: int, data: bytes | memoryview) -> None:
        self.data[address - BASE : address - BASE + len(data)] = data

    def read(self, address: int, nbytes: int) -> bytes:
        return bytes(self.data[address - BASE : address - BASE + nbytes])

    def over_link(self, tensor: DLTensor, nbytes: int) -> bytes:
        return self.read(tensor.data + tensor.byte_offset, nbytes)


def at(address: int, offset: int = 0) -> DLTensor:
    return DLTensor(address, BYTES, (1,), offset)


def never(tensor: DLTensor, nbytes: int) -> bytes:
    raise AssertionError("the link was asked")


def test_the_first_copy_proves_it() -> None:
    memory = Memory()
    direct = Direct(memory)
    direct.allocated(BASE, 64)
    assert direct.read(at(BASE), 4) is None
    assert direct.write(at(BASE), memoryview(b"x" * 20), memory.over_link)
    assert memory.proved
    assert direct.write(at(BASE, 20), memoryview(b"yy"), never)
    assert direct.read(at(BASE, 18), 4) == b"xxyy"


def test_other_memory_than_the_devices_is_never_used_again() -> None:
    memory = Memory()
    direct = Direct(memory)
    direct.allocated(BASE, 64)
    assert not direct.write(at(BASE), memoryview(b"x" * 20), lambda *_: bytes(16))
    assert memory.proved is False
    assert not direct.usable
    assert not direct.write(at(BASE), memoryview(b"x" * 20), never)
    assert direct.read(at(BASE), 4) is None


def test_a_short_copy_proves_nothing() -> None:
    memory = Memory()
    direct = Direct(memory)
    direct.allocated(BASE, 64)
    assert not direct.write(at(BASE), memoryview(b"x" * 15), never)
    assert memory.proved is None


@given(st.integers(-300, 300), st.integers(-300, 300), st.integers(0, 100), st.integers(0, 64))
def test_only_live_allocations_are_reached(address: int, offset: int, nbytes: int, size: int) -> None:
    memory = Memory(proved=True)
    direct = Direct(memory)
    direct.allocated(BASE, size)
    inside = address == 0 and offset >= 0 and offset + nbytes <= size
    assert (direct.read(at(BASE + address, offset), nbytes) is not None) == inside
    assert direct.write(at(BASE + address, offset), memoryview(bytes(nbytes)), never) == inside


def test_what_was_freed_is_not_reached() -> None:
    direct = Direct(Memory(proved=True))
    direct.allocated(BASE, 16)
    direct.freed(BASE)
    direct.freed(BASE)
    assert direct.read(at(BASE), 1) is None


@pytest.mark.parametrize("address", [BASE - 1, BASE + 241])
def test_what_lies_elsewhere_goes_over_the_link(address: int) -> None:
    direct = Direct(Memory(proved=True))
    direct.allocated(address, 16)
    assert direct.read(at(address), 1) is None


def test_no_memory() -> None:
    direct = Direct(None)
    direct.allocated(BASE, 16)
    assert not direct.usable
    assert direct.read(at(BASE), 1) is None
    assert not direct.write(at(BASE), memoryview(bytes(16)), never)


def test_disabled() -> None:
    direct = Direct(Memory(proved=True), enabled=False)
    direct.allocated(BASE, 16)
    assert not direct.usable
    assert direct.read(at(BASE), 1) is None
