# SPDX-License-Identifier: Apache-2.0
"""Arrays that are uploaded and read back, of all sizes and types."""

from collections.abc import Callable

import numpy as np
import pytest
from minrpc import Device


@pytest.fixture(params=["direct", "link"])
def device(request: pytest.FixtureRequest, device: Device) -> Device:
    """The device, with copies through shared memory, if available, and over the link."""
    if request.param == "link":
        device.direct = False
    elif not device.direct:
        pytest.skip(f"{device.name}: no memory is shared with the device")
    return device


SHAPES = [(0,), (1,), (1024,), (4096,), (16384,), (129, 256)]
DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
DTYPES += ["float16", "float32", "float64"]


@pytest.mark.once
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_random_bytes_of_any_size(
    device: Device, need_memory: Callable[[int], None], shape: tuple[int, ...]
) -> None:
    need_memory(int(np.prod(shape)) + 1024)
    data = np.random.default_rng(4).integers(0, 256, shape, np.uint8)
    np.testing.assert_array_equal(device.array(data).numpy(), data)


def test_bytes_that_are_all_escaped(device: Device) -> None:
    data = np.full(4096, 0xFF, np.uint8)
    np.testing.assert_array_equal(device.array(data).numpy(), data)


@pytest.mark.once
@pytest.mark.parametrize("nbytes", [*range(4085, 4105, 6), *range(8080, 8200, 18)])
def test_sizes_around_the_packet_size(device: Device, nbytes: int) -> None:
    data = np.arange(nbytes, dtype=np.uint32).astype(np.uint8)
    np.testing.assert_array_equal(device.array(data).numpy(), data)


@pytest.mark.once
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(device: Device, dtype: str) -> None:
    data = np.array([[0, 1, 2], [3, 4, 100]]).astype(dtype)
    array = device.array(data)
    assert array.shape == (2, 3)
    assert array.numpy().dtype == data.dtype
    np.testing.assert_array_equal(array.numpy(), data)


def test_copy_from_overwrites(device: Device) -> None:
    array = device.array(np.zeros(100, np.int16))
    array.copy_from(np.arange(100, dtype=np.int16))
    assert array.numpy().tolist() == list(range(100))


def test_copy_on_the_device(device: Device) -> None:
    source = device.array(np.arange(1000, dtype=np.float32))
    target = device.empty((1000,), np.float32)
    target.copy_from(source)
    np.testing.assert_array_equal(target.numpy(), np.arange(1000, dtype=np.float32))


def test_arrays_do_not_overlap(device: Device) -> None:
    arrays = [device.array(np.full(33, number, np.int8)) for number in range(20)]
    for number, array in enumerate(arrays):
        assert set(array.numpy().tolist()) == {number}
