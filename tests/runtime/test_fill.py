# SPDX-License-Identifier: Apache-2.0
"""Arrays that are filled and compared on the device.

The values of `minrpc.threefry` for seed 7 are the values of random_values, in numpy."""

from __future__ import annotations

from zlib import crc32

import pytest
from minrpc.wire.dtypes import DataType

from tests.runtime.host import U8, Host, tensor

U64_MAX = (1 << 64) - 1


def threefry(host: Host, dtype: DataType, count: int, seed: int) -> bytes:
    """Elements of a seed."""
    size = count * dtype.itemsize
    place = tensor(host.alloc(size), count, dtype=dtype)
    signed = seed - (1 << 64) if seed >> 63 else seed
    assert host.call(host.find("minrpc.threefry"), place, signed) is None
    return host.read(place.data, size)


def test_the_first_element_of_seed_0_is_random123s(host: Host) -> None:
    """The known answer of Random123 for threefry2x32, 20 rounds, with key and counter 0."""
    assert threefry(host, DataType(1, 64), 1, 0) == (0x99BA4EFE6B200159).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("code", "bits", "elements"),
    [
        (0, 8, "6a2fb1b4"),
        (1, 64, "6a2992e8b9533bbc2fa1b8b0d0938b4fb18e4f1877f6c012b4908f2b5435defd"),
        (2, 16, "3eb8f838b03080a4"),
        (2, 32, "5a8907bf26171f3fb007163ec07288bc"),
        (2, 64, "76db85112bf1e0bf282e2cf4e4e2e33f884f1877f6c0c23f8083a35e550e91bf"),
        (4, 16, "08bf1e3f103ec0bc"),
        (1, 1, "01000001"),
    ],
)
def test_a_seed_gives_what_numpy_makes_of_it(host: Host, code: int, bits: int, elements: str) -> None:
    assert threefry(host, DataType(code, bits), 4, 7).hex() == elements


def test_one_of_the_floats_is_zero(host: Host) -> None:
    assert threefry(host, DataType(4, 16), 4, 550).hex() == "20be0000e8bed03d"


def test_other_seeds_give_other_elements(host: Host) -> None:
    """Each bit of a seed matters, also in the upper half."""
    seeds = [7, 8, 7 + (1 << 32), 7 + (1 << 63), 1 << 32, 1 << 33, U64_MAX]
    assert len({threefry(host, U8, 16, seed) for seed in seeds}) == len(seeds)


@pytest.mark.parametrize(("code", "bits"), [(3, 64), (2, 8), (2, 80), (0, 4), (1, 12), (4, 32), (0, 128)])
def test_types_without_random_elements_are_refused(host: Host, code: int, bits: int) -> None:
    place = tensor(host.alloc(64), 2, dtype=DataType(code, bits))
    assert "no random elements" in host.fails(host.find("minrpc.threefry"), place, 7)
    # Two lanes of a bit share a byte.
    lanes = place._replace(dtype=DataType(1, 1, 2))
    assert "no random elements of 1 bits" in host.fails(host.find("minrpc.threefry"), lanes, 7)
    assert host.serves()


def test_a_pattern_fills_all_and_no_more(host: Host) -> None:
    data, fill = host.alloc(12), host.find("minrpc.fill")
    for count, pattern in [(12, b"abc"), (6, b"xy"), (0, b"xy")]:
        assert host.call(fill, tensor(data, count, dtype=U8), pattern) is None
    assert host.read(data, 12) == b"xyxyxyabcabc"
    for count, pattern, text in [
        (12, b"12345", "12 bytes are no multiple of a pattern of 5"),
        (12, b"", "a pattern of 0"),
        (13, b"a", "13 bytes"),
    ]:
        assert text in host.fails(fill, tensor(data, count, dtype=U8), pattern)


def test_a_checksum_is_crc_32(host: Host) -> None:
    place = tensor(host.alloc(9), 9, dtype=U8)
    host.write(place.data, b"123456789")
    assert host.call(host.find("minrpc.checksum"), place) == crc32(b"123456789") == 0xCBF43926
