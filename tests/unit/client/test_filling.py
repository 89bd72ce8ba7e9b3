# SPDX-License-Identifier: Apache-2.0
"""Random elements compared with the documented generator in whole numbers; compared values, and refusals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, cast
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, strategies as st
from minrpc import random_values
from minrpc.wire.dtypes import DTypeLike

from tests.unit.client.conftest import Bench

SEEDS = st.integers(-(1 << 63), (1 << 64) - 1)


def threefry2x32(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    """20 rounds, as Salmon and others describe them (SC11), in whole numbers."""
    keys = (*key, 0x1BD11BDA ^ key[0] ^ key[1])
    x, y = (counter[0] + keys[0]) % 2**32, (counter[1] + keys[1]) % 2**32
    for injection in range(1, 6):
        for rotation in ((13, 15, 26, 6), (17, 29, 16, 24))[(injection - 1) % 2]:
            x = (x + y) % 2**32
            y = (y << rotation | y >> 32 - rotation) % 2**32 ^ x
        x = (x + keys[injection % 3]) % 2**32
        y = (y + keys[(injection + 1) % 3] + injection) % 2**32
    return x, y


def word_of(seed: int, number: int) -> int:
    """The 64 bits of element `number`."""
    low, high = threefry2x32((seed % 2**32, seed // 2**32 % 2**32), (number, 0))
    return high * 2**32 + low


def words(seed: int, count: int) -> list[int]:
    return [int(word) for word in random_values(count, "uint64", seed)]


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_the_generator_gives_random123s_known_answers(
    counter: tuple[int, int], key: tuple[int, int], expected: tuple[int, int]
) -> None:
    """kat_vectors of Random123, threefry2x32 with 20 rounds."""
    assert threefry2x32(key, counter) == expected


def test_the_first_element_of_seed_0_is_random123s() -> None:
    assert words(0, 1) == [0x99BA4EFE6B200159]
    assert np.array_equal(random_values(9), random_values(9, "float32", 0))


def test_no_seeds_sequence_is_a_window_of_anothers() -> None:
    """No pair of neighbours, and no single word, occurs in two of 300 sequences at any distance."""
    seeds = [*range(100), *(seed << 32 for seed in range(1, 100)), *(2**64 - seed for seed in range(1, 102))]
    found = np.concatenate([random_values(2000, "uint64", seed) for seed in seeds])
    assert len(np.unique(found)) == len(found)


@given(SEEDS, st.integers(0, 9))
def test_each_element_is_a_function_of_the_seed_and_its_place(seed: int, count: int) -> None:
    assert words(seed, count) == [word_of(seed, number) for number in range(count)]


@given(st.integers(0, (1 << 64) - 1), st.integers(0, 63))
def test_each_bit_of_the_seed_counts(seed: int, bit: int) -> None:
    assert words(seed, 3) != words(seed ^ 1 << bit, 3)


def test_a_negative_seed_is_its_64_bits() -> None:
    assert words(-1, 3) == words((1 << 64) - 1, 3)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("kind", ["int", "uint"])
def test_integers_are_the_lowest_bits(kind: str, bits: int) -> None:
    found = random_values((5,), f"{kind}{bits}", 7)
    assert found.dtype == np.dtype(f"{kind}{bits}")
    half = 2 ** (bits - 1) if kind == "int" else 0
    low = [word_of(7, number) % 2**bits for number in range(5)]
    assert found.tolist() == [(item + half) % 2**bits - half for item in low]


def test_a_boolean_is_the_highest_bit() -> None:
    found = random_values(64, "bool", 7)
    assert found.tolist() == [word_of(7, number) >= 2**63 for number in range(64)]
    assert 16 < sum(found.tolist()) < 48


def exact(values: npt.NDArray[Any]) -> list[Fraction]:
    return [Fraction(float(value)) for value in values]


@pytest.mark.parametrize(("dtype", "precision"), [("float16", 11), ("float32", 24), ("float64", 53)])
@given(SEEDS)
def test_floats_are_the_highest_bits_as_a_fixed_point_number(dtype: str, precision: int, seed: int) -> None:
    """The bits are as many as the type's precision; values are from -1 to below 1."""
    found = random_values((5,), dtype, seed)
    assert found.dtype == np.dtype(dtype)
    assert exact(found) == [fixed_point(word_of(seed, number), precision) for number in range(5)]


def fixed_point(word: int, precision: int) -> Fraction:
    signed = word - 2**64 if word >= 2**63 else word
    return Fraction(signed // 2 ** (64 - precision), 2 ** (precision - 1))


@given(SEEDS)
def test_a_bfloat16_is_the_upper_half_of_a_float32(seed: int) -> None:
    found = random_values((5,), "bfloat16", seed).view(np.uint16)
    floats = (found.astype(np.uint32) << 16).view(np.float32)
    assert exact(floats) == [fixed_point(word_of(seed, number), 8) for number in range(5)]


def test_lanes_are_elements_of_their_own() -> None:
    assert random_values((2, 3), "int8x4", 5).tolist() == random_values((2, 3, 4), "int8", 5).tolist()


@pytest.mark.parametrize("dtype", ["handle", "int24", "float8", "uint1x4"])
def test_other_types_have_no_random_elements(bench: Bench, dtype: str) -> None:
    with pytest.raises(TypeError, match="no random elements of"):
        random_values((2,), dtype)
    with pytest.raises(TypeError, match="no random elements of"):
        bench.device.random((2,), dtype)
    assert bench.transport.written == []


@pytest.mark.parametrize("dtype", ["float32", "int8x4", "bool"])
def test_a_device_without_these_functions_gets_the_elements_over_its_link(
    bench: Bench, dtype: DTypeLike
) -> None:
    array = bench.device.random((3, 2), dtype, 9)
    expected = random_values((3, 2), dtype, 9)
    np.testing.assert_array_equal(array.numpy(), expected)
    assert bench.device.checksum(array) == crc32(expected.tobytes())
    bench.device.assert_equal(array, expected)


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("int16", -7, np.full((2, 3), -7, np.int16)),
        ("int8x4", 5, np.full((2, 3, 4), 5, np.int8)),
        ("int8x2", [1, 2], np.array([[[1, 2]] * 3] * 2, np.int8)),
    ],
)
def test_full_of_one_value(bench: Bench, dtype: str, value: object, expected: npt.NDArray[Any]) -> None:
    found = bench.device.full((2, 3), value, dtype).numpy()
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("dtype", "value", "told"),
    [
        ("int32", "a", "'a' is no element of int32"),
        ("float32", "7", "'7' is no element of float32"),
        ("int32", None, "None is no element of int32"),
        ("float32", 1j, "1j is no element of float32"),
        ("bool", 0.5, "0.5 is no element of bool"),
    ],
)
def test_no_array_is_full_of_another_kind_of_value(
    bench: Bench, dtype: str, value: object, told: str
) -> None:
    with pytest.raises(TypeError, match=told):
        bench.device.full((2,), value, dtype)


def test_a_number_of_any_size_is_told_to_be_out_of_range(bench: Bench) -> None:
    for value in (1 << 31, 1 << 70, -1 << 70):
        with pytest.raises(
            OverflowError, match=f"{value} is out of int32's range, -2147483648 to 2147483647"
        ):
            bench.device.full((2,), value, "int32")
    assert bench.device.full((), 1 << 70, "float64").numpy() == 2.0**70


def test_only_an_array_of_the_device_has_a_checksum_there(bench: Bench) -> None:
    for refused in (bench.device.checksum, lambda item: bench.device.assert_equal(item, 3)):
        with pytest.raises(TypeError, match="an array of the device is expected, not an int"):
            refused(cast(Any, 3))


def test_a_device_that_has_them_gets_the_seed_as_64_signed_bits(bench: Bench) -> None:
    seeds: list[object] = []
    bench.model.globals["minrpc.threefry"] = lambda args: seeds.append(args[1])
    for seed in (5, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, -1):
        bench.device.random((2,), "int8", seed)
    assert seeds == [5, (1 << 63) - 1, -(1 << 63), -1, -1]


def test_arrays_are_equal_when_all_their_bytes_are(bench: Bench) -> None:
    """Arrays with different checksums differ, whichever is the larger."""
    item, other = np.array([1, 2, 3], np.int8), np.array([1, 2, 4], np.int8)
    for there, expected in ((item, other), (other, item)):
        array = bench.device.array(there)
        bench.device.assert_equal(array, there)
        with pytest.raises(AssertionError, match="Mismatched elements: 1 / 3"):
            bench.device.assert_equal(array, expected)


def test_random_values_take_integers_of_numpy() -> None:
    expected = random_values(4, "float32", 7)
    for seed in (np.int32(7), np.uint64(7)):
        np.testing.assert_array_equal(
            random_values(cast(Any, np.int64(4)), "float32", cast(Any, seed)), expected
        )
    with pytest.raises(TypeError, match="a shape is an integer or several, not "):
        random_values(cast(Any, 1.5))
