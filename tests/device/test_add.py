# SPDX-License-Identifier: Apache-2.0
"""Element-wise add and mul on the device, against numpy."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from minrpc import Device, SystemLibrary

SHAPES = [(), (1,), (7,), (2, 3), (128,), (3, 5, 7), (64, 64), (257, 256)]
OPERATIONS = {"add": np.add, "mul": np.multiply}


def call(device: Device, name: str, a: npt.NDArray[np.generic], b: npt.NDArray[np.generic]) -> np.ndarray:
    """The result of function `name` on the device, which has the shape and dtype of `a`."""
    with device.array(a) as on_a, device.array(b) as on_b, device.empty(a.shape, a.dtype) as result:
        device.system_lib()[name](on_a, on_b, result)
        return result.numpy()


def test_int8_two_elements_and_one(device: Device) -> None:
    result = call(device, "add", np.array([2, 3], np.int8), np.array([4], np.int8))
    assert result.tolist() == [6, 7]


@pytest.mark.once
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
def test_int8_of_any_size(
    device: Device, need_memory: Callable[[int], None], name: str, shape: tuple[int, ...]
) -> None:
    """The arguments are made on the device and read back, which is faster than sending them."""
    need_memory(3 * int(np.prod(shape)) + 4096)
    a, b, result = (device.empty(shape, np.int8) for _ in range(3))
    for argument in (a, b):
        device.get_function("tvm.contrib.random.random_fill")(argument)
    device.system_lib()[name](a, b, result)
    np.testing.assert_array_equal(result.numpy(), OPERATIONS[name](a.numpy(), b.numpy()))


def test_int8_wraps_around(device: Device) -> None:
    result = call(device, "add", np.array([127, -128, -1], np.int8), np.array([1, -1, 1], np.int8))
    assert result.tolist() == [-128, 127, 0]


@pytest.mark.parametrize("name", OPERATIONS)
def test_float32_equals_numpy_to_the_bit(device: Device, name: str) -> None:
    random = np.random.default_rng(2)
    a, b = (random.normal(0, 1e3, 111).astype(np.float32) for _ in range(2))
    np.testing.assert_array_equal(call(device, name, a, b), OPERATIONS[name](a, b))


@pytest.mark.parametrize("name", OPERATIONS)
def test_float32_broadcasts_one_element(device: Device, name: str) -> None:
    a = np.linspace(-2, 2, 17, dtype=np.float32)
    b = np.array([0.1], np.float32)
    np.testing.assert_array_equal(call(device, name, a, b), OPERATIONS[name](a, b))


def test_float32_keeps_infinities_nan_and_denormals(device: Device) -> None:
    a = np.array([np.inf, -np.inf, np.inf, np.nan, 1e-45, 3.4e38, -0.0], np.float32)
    b = np.array([1, 1, -np.inf, 1, 1e-45, 3.4e38, -0.0], np.float32)
    with np.errstate(all="ignore"):
        expected = a + b
    result = call(device, "add", a, b)
    np.testing.assert_array_equal(result, expected)
    assert np.signbit(result[-1])


def test_one_array_may_be_all_three_arguments(device: Device, lib: SystemLibrary) -> None:
    a = device.array(np.arange(10, dtype=np.int8))
    lib["add"](a, a, a)
    assert a.numpy().tolist() == list(range(0, 20, 2))


def test_inc_is_called_with_values(lib: SystemLibrary) -> None:
    assert [lib["inc"](value) for value in (0, -1, 41, 2**62)] == [1, 0, 42, 2**62 + 1]
