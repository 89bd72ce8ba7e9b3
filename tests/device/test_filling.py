# SPDX-License-Identifier: Apache-2.0
"""Arrays that are made and compared on the device: bits are equal to numpy's, and no elements are copied."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from minrpc import Device, RemoteError, random_values
from minrpc.client.filling import CHECKSUM, checksum_of

DTYPES = [
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *("float16", "float32", "float64", "bfloat16", "bool", "int8x4", "float32x3"),
]
SEEDS = (0, 1, -1, (1 << 64) - 3, (1 << 62) + 5)


@pytest.fixture
def direct(device: Device) -> Device:
    """The device; compared values are read over its link."""
    device.direct = False
    return device


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_seed_gives_the_same_bits_on_the_device_and_in_numpy(direct: Device, dtype: str) -> None:
    for seed, shape in zip(SEEDS, [(7,), (3, 5), (1,), (), (2,)], strict=True):
        array = direct.random(shape, dtype, seed)
        expected = random_values(shape, dtype, seed)
        assert array.numpy().tobytes() == expected.tobytes()
        assert direct.checksum(array) == checksum_of(expected)
        direct.assert_equal(array, expected)


def test_a_large_array_does_not_travel(direct: Device, need_memory: Callable[[int], None]) -> None:
    if not direct.rpc.global_function(CHECKSUM):
        pytest.skip("its firmware has no minrpc.checksum")
    size = min(256 * 1024, direct.info().arena_largest_free // 4 // 4 * 4)
    before = direct.link_counters.frames
    array = direct.random((size // 4,), "float32", 42)
    direct.assert_equal(array, random_values((size // 4,), "float32", 42))
    zeros = direct.zeros((size // 4,), "int32")
    direct.assert_equal(zeros, np.zeros(size // 4, np.int32))
    assert direct.link_counters.frames - before < 40


@pytest.mark.parametrize(
    ("value", "dtype"), [(0, "float32"), (-7, "int16"), (1.5, "float64"), (True, "bool"), (255, "uint8")]
)
def test_full_of_one_value(direct: Device, value: float, dtype: str) -> None:
    array = direct.full((4, 9), value, dtype)
    np.testing.assert_array_equal(array.numpy(), np.full((4, 9), value, dtype))


def test_what_differs_is_shown(device: Device) -> None:
    for device.direct in (True, False):
        array = device.zeros((100,), "int32")
        with pytest.raises(AssertionError, match="Mismatched elements: 1 / 100"):
            device.assert_equal(array, np.arange(100, dtype=np.int32) // 99)
        with pytest.raises(TypeError):
            device.assert_equal(array, np.zeros(100))
        with pytest.raises(ValueError, match="shape"):
            device.assert_equal(array, np.zeros(99, np.int32))


def test_an_array_without_elements(device: Device) -> None:
    array = device.random((0, 3), "float32", 1)
    assert device.checksum(array) == 0
    device.assert_equal(array, np.zeros((0, 3), np.float32))


def test_what_can_not_be_an_element_is_refused(device: Device) -> None:
    with pytest.raises(TypeError, match="no random elements of handle"):
        device.random((2,), "handle")
    with pytest.raises(TypeError, match=r"1\.5 is no element of int8"):
        device.full((2,), 1.5, "int8")
    with pytest.raises(OverflowError):
        device.full((2,), 300, "int8")
    device.assert_equal(device.full((2,), 1, "int8"), np.ones(2, np.int8))


def test_the_functions_themselves_check_what_they_get(direct: Device) -> None:
    if not direct.rpc.global_function(CHECKSUM):
        pytest.skip("its firmware has no minrpc.fill")
    array = direct.zeros((5,), "uint8")
    fill = direct.get_function("minrpc.fill")
    for pattern in (b"12", b"", b"123456"):
        with pytest.raises(RemoteError, match="no multiple"):
            fill(array, pattern)
    with pytest.raises(RemoteError):
        direct.get_function("minrpc.threefry")(direct.empty((2,), "handle"), 1)
    np.testing.assert_array_equal(array.numpy(), np.zeros(5, np.uint8))


def test_without_these_functions_the_values_travel(direct: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    known = direct.rpc.global_function
    monkeypatch.setattr(direct.rpc, "global_function", lambda name, *_: "minrpc." not in name and known(name))
    array = direct.random((10,), "int16", 5)
    monkeypatch.undo()
    direct.assert_equal(array, random_values((10,), "int16", 5))
