# SPDX-License-Identifier: Apache-2.0
"""Wrong calls: the text names the expected and the given value, and the next call works."""

from collections.abc import Iterator

import numpy as np
import pytest
from minrpc import Device, DeviceMemoryError, FunctionNotFoundError, RemoteArray, RemoteError, SystemLibrary


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


def test_number_of_arguments(device: Device, lib: SystemLibrary) -> None:
    with pytest.raises(RemoteError, match="add: expected 3 arguments, got 2"):
        lib["add"](int8(device, 2), int8(device, 2))


def test_type_of_an_argument(device: Device, lib: SystemLibrary) -> None:
    with pytest.raises(RemoteError, match=r"add: argument 1: expected \w+, got int"):
        lib["add"](int8(device, 2), 4, int8(device, 2))


def test_dtype_of_an_argument(device: Device, lib: SystemLibrary) -> None:
    b = device.array(np.zeros(2, np.float32))
    with pytest.raises(RemoteError, match="add: argument 1: expected int8, got float32"):
        lib["add"](int8(device, 2), b, int8(device, 2))


def test_dtype_that_a_function_does_not_take(device: Device, lib: SystemLibrary) -> None:
    a = device.array(np.zeros(2, np.int32))
    with pytest.raises(RemoteError, match="add: argument 0: expected int8 or float32, got int32"):
        lib["add"](a, a, a)
    with pytest.raises(RemoteError, match="exp: argument 0: expected float32, got int32"):
        lib["exp"](a, a)


def test_shape_of_an_argument(device: Device, lib: SystemLibrary) -> None:
    with pytest.raises(RemoteError, match=r"add: argument 2: expected shape \[2,3\], got \[3,2\]"):
        lib["add"](int8(device, 2, 3), int8(device, 2, 3), int8(device, 3, 2))
    with pytest.raises(RemoteError, match=r"add: argument 1: expected shape \[5\], got \[4\]"):
        lib["add"](int8(device, 5), int8(device, 4), int8(device, 5))


def test_function_that_is_not_there(device: Device, lib: SystemLibrary) -> None:
    with pytest.raises(FunctionNotFoundError, match="no function 'subtract'"):
        lib["subtract"]
    with pytest.raises(FunctionNotFoundError, match=r"no global function 'tvm\.nothing'"):
        device.get_function("tvm.nothing")


def test_allocation_larger_than_the_memory(device: Device) -> None:
    info = device.info()
    with pytest.raises(DeviceMemoryError) as caught:
        device.empty((info.arena_size + 1,), np.int8)
    assert str(info.arena_size + 1) in caught.value.text
    assert str(info.arena_largest_free) in caught.value.text


def test_an_array_of_4_gib(device: Device) -> None:
    with pytest.raises(DeviceMemoryError, match=r"4,294,967,296 bytes were asked for: .* less than 4 GiB"):
        device.zeros(1 << 30)


def test_memory_that_runs_out_is_there_again_after_a_free(device: Device) -> None:
    half = device.info().arena_largest_free // 2 + 1
    first = device.empty((half,), np.int8)
    with pytest.raises(DeviceMemoryError, match="memory"):
        device.empty((half,), np.int8)
    first.free()
    assert device.empty((half,), np.int8).nbytes == half


def test_array_that_was_freed(device: Device, lib: SystemLibrary) -> None:
    a = int8(device, 2)
    a.free()
    with pytest.raises(ValueError, match="has been freed"):
        lib["add"](a, a, a)


def test_fifty_errors_in_a_row(device: Device, lib: SystemLibrary) -> None:
    a = int8(device, 2)
    for _ in range(50):
        with pytest.raises(RemoteError, match="expected 3 arguments, got 1"):
            lib["add"](a)
