# SPDX-License-Identifier: Apache-2.0
"""Arrays go through memory shared with the device: the same values, checks and times as over the link."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from minrpc import Device, Firmware, RemoteError
from minrpc.client import memory as copies
from minrpc.wire.dtypes import DataType
from minrpc.wire.values import DLTensor

BYTES = DataType(1, 8)


@pytest.fixture
def direct(device: Device) -> Device:
    """The device, after a copy has shown that its memory is shared."""
    if not device.direct:
        pytest.skip(f"{device.name}: no memory is shared with the device")
    device.array(np.zeros(64, np.uint8))
    assert device.owner.memory is not None
    assert device.owner.memory.proved
    return device


def sent(device: Device) -> int:
    return device.link_counters.frames


def test_a_copy_sends_nothing(direct: Device) -> None:
    array = direct.empty((1000,), np.uint8)
    data = np.arange(1000).astype(np.uint8)
    before = sent(direct)
    array.copy_from(data)
    np.testing.assert_array_equal(array.numpy(), data)
    assert sent(direct) == before


def test_the_device_sees_what_was_written_and_we_what_it_wrote(direct: Device) -> None:
    a = direct.array(np.arange(100, dtype=np.float32))
    c = direct.empty((100,), np.float32)
    direct.system_lib()["add"](a, a, c)
    np.testing.assert_array_equal(c.numpy(), 2 * np.arange(100, dtype=np.float32))
    direct.direct = False
    np.testing.assert_array_equal(c.numpy(), 2 * np.arange(100, dtype=np.float32))


def test_what_is_not_allocated_is_refused_as_over_the_link(direct: Device) -> None:
    array = direct.array(np.arange(64, dtype=np.uint8))
    tensor = array.tensor
    for wrong in (
        tensor._replace(data=tensor.data + 4096, shape=(4,)),
        tensor._replace(byte_offset=61, shape=(4,)),
        tensor._replace(byte_offset=1 << 40, shape=(4,)),
    ):
        with pytest.raises(RemoteError):
            copies.upload(direct.rpc, wrong, memoryview(b"1234"))
        with pytest.raises(RemoteError):
            copies.download(direct.rpc, wrong, 4)
    np.testing.assert_array_equal(array.numpy(), np.arange(64))


def test_freed_memory_is_refused(direct: Device) -> None:
    address = copies.allocate(direct.rpc, DLTensor(0, BYTES, (64,)))
    tensor = DLTensor(address, BYTES, (64,))
    copies.upload(direct.rpc, tensor, memoryview(bytes(64)))
    from minrpc.wire.requests import free_data

    direct.rpc.syscall(free_data(address), "free")
    with pytest.raises(RemoteError, match="no live"):
        copies.upload(direct.rpc, tensor, memoryview(bytes(64)))


def test_memory_of_an_earlier_session_is_refused(direct: Device) -> None:
    address = copies.allocate(direct.rpc, DLTensor(0, BYTES, (64,)))
    direct.rpc.restart()
    with pytest.raises(RemoteError, match="no live"):
        copies.upload(direct.rpc, DLTensor(address, BYTES, (64,)), memoryview(bytes(64)))


def test_times_are_equal_to_a_tick(direct: Device, image: Firmware) -> None:
    """The law: a call's time does not depend on the way of the arrays to the device."""

    def cycles() -> int:
        """Cycles of the fastest repeat: the clock's interrupt falls into at most one repeat."""
        x = direct.array(np.arange(256, dtype=np.float32))
        y = direct.empty((256,), np.float32)
        measured = direct.system_lib().measure("add", number=10, repeat=3)(x, x, y)
        return min(sample.ticks for sample in measured.samples)

    with_memory = cycles()
    direct.direct = False
    assert abs(with_memory - cycles()) <= 1


def test_off_is_off(device: Device, need_memory: Callable[[int], None]) -> None:
    device.direct = False
    assert not device.direct
    array = device.array(np.arange(100, dtype=np.uint8))
    before = sent(device)
    array.numpy()
    assert sent(device) > before
