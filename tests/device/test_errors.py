# SPDX-License-Identifier: Apache-2.0
"""Wrong calls: the text names the expected and the given value, and the next call works."""

from collections.abc import Iterator

import numpy as np
import pytest
from minrpc import Device, DeviceMemoryError, RemoteArray, RemoteError, SystemLibrary


@pytest.fixture(autouse=True)
def _next_call_works(device: Device) -> Iterator[None]:
    """After each of these tests the same session still computes."""
    yield
    a, c = device.array(np.array([1, 2], np.int8)), device.empty((2,), np.int8)
    device.system_lib()["add"](a, a, c)
    assert c.numpy().tolist() == [2, 4]


def int8(device: Device, *shape: int) -> RemoteArray:
    """Zeros."""
    return device.array(np.zeros(shape, np.int8))


def test_a_wrong_argument_is_named_with_what_was_expected(device: Device, lib: SystemLibrary) -> None:
    two, floats = int8(device, 2), device.array(np.zeros(2, np.float32))
    ints = device.array(np.zeros(2, np.int32))
    for name, arguments, told in (
        ("add", (two, two), "add: expected 3 arguments, got 2"),
        ("add", (two, 4, two), r"add: argument 1: expected \w+, got int"),
        ("add", (two, floats, two), "add: argument 1: expected int8, got float32"),
        ("add", (ints, ints, ints), "add: argument 0: expected int8 or float32, got int32"),
        ("exp", (ints, ints), "exp: argument 0: expected float32, got int32"),
        ("add", (two, two, int8(device, 3, 2)), r"add: argument 2: expected shape \[2\], got \[3,2\]"),
        (
            "add",
            (int8(device, 5), int8(device, 4), int8(device, 5)),
            r"add: argument 1: expected shape \[5\], got \[4\]",
        ),
    ):
        with pytest.raises(RemoteError, match=told):
            lib[name](*arguments)


def test_allocation_larger_than_the_memory(device: Device) -> None:
    info = device.info()
    with pytest.raises(DeviceMemoryError) as caught:
        device.empty((info.arena_size + 1,), np.int8)
    assert str(info.arena_size + 1) in caught.value.text
    assert str(info.arena_largest_free) in caught.value.text


def test_memory_that_runs_out_is_there_again_after_a_free(device: Device) -> None:
    half = device.info().arena_largest_free // 2 + 1
    first = device.empty((half,), np.int8)
    with pytest.raises(DeviceMemoryError, match="memory"):
        device.empty((half,), np.int8)
    first.free()
    assert device.empty((half,), np.int8).nbytes == half


def test_fifty_errors_in_a_row(device: Device, lib: SystemLibrary) -> None:
    a = int8(device, 2)
    for _ in range(50):
        with pytest.raises(RemoteError, match="expected 3 arguments, got 1"):
            lib["add"](a)
