# SPDX-License-Identifier: Apache-2.0
"""Fills arrays on the device and compares them by checksum, so that their elements need not be copied.

On the device zephyr-app/runtime/fill.c does the same as `random_values` and `checksum_of`, bit for bit. For a
device without these functions the values are copied over the link.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final
from zlib import crc32

import numpy as np
import numpy.typing as npt

from minrpc.client.array import RemoteArray, host_elements, require_range, sizes_of
from minrpc.names import kind_of
from minrpc.wire.dtypes import DataType, DTypeLike, TypeKind, to_dtype, to_numpy

RANDOM: Final = "minrpc.threefry"
FILL: Final = "minrpc.fill"
CHECKSUM: Final = "minrpc.checksum"

Elements = npt.NDArray[Any]
_Words = npt.NDArray[np.uint64]

# Bits of a float's precision and of its exponent, by type.
_FLOATS: Final[dict[tuple[int, int], tuple[int, int]]] = {
    (TypeKind.FLOAT, 16): (11, 5),
    (TypeKind.FLOAT, 32): (24, 8),
    (TypeKind.FLOAT, 64): (53, 11),
    (TypeKind.BFLOAT, 16): (8, 8),
}
# Threefry-2x32 with 20 rounds, as in Random123.
_ROTATIONS: Final = (13, 15, 26, 6, 17, 29, 16, 24)
_PARITY: Final = 0x1BD11BDA
_ROUNDS: Final = 20
# Elements at a time: they fit in a processor's cache.
_BLOCK: Final = 1 << 14


def random_values(shape: int | tuple[int, ...], dtype: DTypeLike = "float32", seed: int = 0) -> Elements:
    """The elements that `device.random` makes: shape `shape`, followed by the lanes.

    Integers cover their type's range, floats are uniform in [-1, 1) in steps of their precision there,
    booleans are either. An element depends only on the seed and its index: Threefry-2x32 with 20 rounds
    (Salmon and others, "Parallel random numbers: as easy as 1, 2, 3", SC11). Each seed has its own sequence.

    seed: its lower 64 bits are used. Raises TypeError for a type without random values.
    """
    wire = to_dtype(dtype)
    host, lanes = to_numpy(wire)
    require_fillable(wire)
    sizes = sizes_of(shape) + lanes
    random = _random_words(prod(sizes), _signed(seed))
    floating = _FLOATS.get((wire.code, wire.bits))
    if floating is not None:
        random = _as_floats(random, *floating)
    elif wire.bits == 1:
        random >>= np.uint64(63)
    unsigned = np.dtype(f"<u{host.itemsize}")
    return random.astype(unsigned).view(host).reshape(sizes)


def require_fillable(dtype: DataType) -> None:
    """Raise TypeError for a type whose elements can't be made."""
    one_bit = dtype.bits == 1 and dtype.lanes == 1
    whole = dtype.code in (TypeKind.INT, TypeKind.UINT) and dtype.bits in (8, 16, 32, 64)
    boolean = dtype.code == TypeKind.UINT and one_bit
    if not (whole or boolean or (dtype.code, dtype.bits) in _FLOATS):
        raise TypeError(f"there are no random elements of {dtype}, only of int, uint, float, bfloat16, bool")


def _random_words(count: int, seed: int) -> _Words:
    words = np.empty(count, np.uint64)
    for first in range(0, count, _BLOCK):
        block = words[first : first + _BLOCK]
        block[:] = _threefry(seed, np.arange(first, first + len(block), dtype=np.uint32))
    return words


def _threefry(seed: int, places: npt.NDArray[np.uint32]) -> _Words:
    """64 bits for each index, which is the counter of Threefry-2x32; the seed is its key."""
    low, high = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    keys = [np.uint32(key) for key in (low, high, _PARITY ^ low ^ high)]
    x = places + keys[0]
    y = np.full_like(places, keys[1])
    for number in range(1, _ROUNDS + 1):
        rotation = _ROTATIONS[(number - 1) % len(_ROTATIONS)]
        x += y
        y = (y << np.uint32(rotation) | y >> np.uint32(32 - rotation)) ^ x
        if number % 4 == 0:
            step = number // 4
            x += keys[step % 3]
            y += keys[(step + 1) % 3]
            y += np.uint32(step)
    return y.astype(np.uint64) << np.uint64(32) | x


def _as_floats(random: _Words, precision: int, exponent_bits: int) -> _Words:
    """The bits of floats; see float_of in fill.c. A double holds each such value exactly."""
    steps = random.view(np.int64) >> np.int64(64 - precision)
    values = steps.astype(np.float64) / float(1 << precision - 1)
    if precision == 8:  # The upper half of a float32.
        return (values.astype("<f4").view("<u4") >> 16).astype(np.uint64)
    size = (precision + exponent_bits) // 8
    return values.astype(f"<f{size}").view(f"<u{size}").astype(np.uint64)


def fill_randomly(array: RemoteArray, seed: int) -> None:
    """Overwrite all elements with `random_values` of the array's shape and type."""
    require_fillable(array.dtype)
    if not array.run_on_device(RANDOM, _signed(seed)):
        array.upload(random_values(array.shape, array.dtype, seed))


def fill(array: RemoteArray, value: object) -> None:
    """Overwrite all elements with `value`.

    Raises TypeError and OverflowError for a value that the type can't hold.
    """
    host, lanes = to_numpy(array.dtype)
    given = np.asarray(value)
    kind = "i" if isinstance(value, int) else given.dtype.kind  # A large integer is an object in numpy.
    if kind not in ("biu" if host.kind in "iub" else "biuf"):
        raise TypeError(f"{value!r} is no element of {array.dtype}")
    require_range(given, host, array.dtype)
    element = np.full(lanes, given.item() if given.shape == () else given, host)
    if not array.run_on_device(FILL, element.tobytes()):
        array.upload(np.broadcast_to(element, array.shape + lanes).copy())


def checksum(array: RemoteArray) -> int:
    """CRC-32 (zlib's) of the array's bytes, computed on the device."""
    _require_array(array)
    crc = array.run_on_device(CHECKSUM)
    return checksum_of(array.numpy()) if crc is False else int(crc)


def checksum_of(elements: npt.ArrayLike) -> int:
    """CRC-32 (zlib's) of the bytes of an array on the host."""
    return crc32(host_elements(elements, None).tobytes())


def assert_equal(array: RemoteArray, expected: npt.ArrayLike, *, near: bool) -> None:
    """Raise AssertionError, with numpy's report, unless all elements are `expected`.

    near: the array can be read without the link, so no checksum is asked for.

    Raises TypeError for another dtype and ValueError for another shape.
    """
    _require_array(array)
    elements = array.require_like(expected)
    if array.nbytes and (near or checksum(array) != checksum_of(elements)):
        np.testing.assert_array_equal(array.numpy(), elements)


def _require_array(array: object) -> None:
    if not isinstance(array, RemoteArray):
        raise TypeError(f"an array of the device is expected, not {kind_of(array)}")


def _signed(seed: int) -> int:
    """The seed as an int64, the type of the call's argument. Raises TypeError for no whole number."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise TypeError(f"a seed is a whole number, not {seed!r}")
    seed = int(seed)
    seed &= (1 << 64) - 1
    return seed - (1 << 64) if seed >> 63 else seed
