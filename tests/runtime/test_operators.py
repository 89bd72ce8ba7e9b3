# SPDX-License-Identifier: Apache-2.0
"""The built-in functions: their results, and their errors for wrong arguments."""

from __future__ import annotations

import numpy as np
import pytest
from minrpc.wire.dtypes import DataType
from minrpc.wire.requests import CallFunc
from minrpc.wire.values import DLTensor

from tests.runtime.host import F32, I8, Host, tensor

INF = np.inf
A, B = [2, -3, 127, -128], [4, 5, 1, -1]
X, Y = [2.5, -3.0, 1e38, 0.0], [4.5, 0.5, 1e38, -0.0]


def array(host: Host, dtype: DataType, values: list[float]) -> DLTensor:
    """An array on the device."""
    content = np.array(values, np.int8 if dtype == I8 else np.float32).tobytes()
    place = tensor(host.alloc(len(content)), len(values), dtype=dtype)
    host.write(place.data, content)
    return place


def zeros(host: Host, dtype: DataType, shape: tuple[int, ...]) -> DLTensor:
    """An array of zeros in 64 bytes."""
    return DLTensor(host.alloc(64), dtype, shape)


def call(host: Host, name: str, *arrays: DLTensor) -> None:
    assert host.call(host.function(name), *arrays) is None


def fails(host: Host, name: str, *arrays: DLTensor) -> str:
    return host.fails(host.function(name), *arrays)


@pytest.mark.parametrize(
    ("name", "dtype", "a", "b", "expected"),
    [
        # Integers go round.
        ("add", I8, A, B, [6, 2, -128, 127]),
        ("add", I8, A, B[:1], [6, 1, -125, -124]),
        ("mul", I8, A, B, [8, -15, 127, -128]),
        ("mul", I8, A, B[:1], [8, -12, -4, 0]),
        ("add", F32, X, Y, [7.0, -2.5, 2e38, 0.0]),
        ("add", F32, X, Y[:1], [7.0, 1.5, 1e38, 4.5]),
        ("mul", F32, X, Y, [11.25, -1.5, INF, -0.0]),
        ("mul", F32, X, Y[:1], [11.25, -13.5, INF, 0.0]),
    ],
)
def test_add_and_mul_of_both_dtypes(
    host: Host, name: str, dtype: DataType, a: list[float], b: list[float], expected: list[float]
) -> None:
    result = array(host, dtype, [0] * 4)
    call(host, name, array(host, dtype, a), array(host, dtype, b), result)
    wanted = np.array(expected, np.int8 if dtype == I8 else np.float32).tobytes()
    assert host.read(result.data, len(wanted)) == wanted


@pytest.mark.parametrize("name", ["exp", "myexpf"])
def test_exp_under_both_names(host: Host, name: str) -> None:
    values = array(host, F32, [0.0, 1.0, -INF, 1000.0])
    result = array(host, F32, [0.0] * 4)
    call(host, name, values, result)
    zero, one, least, most = np.frombuffer(host.read(result.data, 16), np.float32)
    assert (zero, least, most) == (1, 0, INF)
    assert 2.71828 < one < 2.71829


def test_results_may_replace_arguments(host: Host) -> None:
    """The result is in place, and one array is used for all arguments."""
    one = array(host, I8, [1, 2, 3, 4])
    call(host, "add", one, one, one)
    assert host.read(one.data, 4) == bytes([2, 4, 6, 8])


def test_arrays_without_elements(host: Host) -> None:
    call(host, "add", *[array(host, I8, [])] * 3)
    call(host, "exp", *[array(host, F32, [])] * 2)


def test_inc_goes_round_and_spin_returns_nothing(host: Host) -> None:
    spin = host.function("spin")
    assert host.call(host.function("inc"), (1 << 63) - 1) == -(1 << 63)
    assert host.call(spin, 1000) is None
    assert "4294967295" in host.fails(spin, 1 << 32)
    assert "spin" in host.fails(spin, -1)


# ------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("name", "count"), [("add", 3), ("mul", 3), ("exp", 2), ("myexpf", 2), ("inc", 1), ("spin", 1)]
)
def test_numbers_and_kinds_of_arguments_are_named(host: Host, name: str, count: int) -> None:
    function = host.function(name)
    assert "got 0" in host.fails(function)
    assert "got 9" in host.fails(function, *[1] * 9)
    assert "got string" in host.fails(function, *["text"] * count)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (DataType(0, 16), "int16"),
        (DataType(1, 8), "uint8"),
        (DataType(2, 64), "float64"),
        (DataType(4, 16), "bfloat16"),
        (DataType(3, 64), "handle64"),
        (DataType(2, 32, 4), "float32x4"),
        (DataType(9, 8), "9"),
    ],
)
def test_dtypes_are_named(host: Host, dtype: DataType, name: str) -> None:
    good, bad = zeros(host, F32, (4,)), zeros(host, dtype, (4,))
    text = fails(host, "add", good, bad, good)
    assert name in text
    assert "float32" in text
    assert name in fails(host, "add", bad, bad, bad)
    assert name in fails(host, "exp", bad, good)


def test_shapes_are_named(host: Host) -> None:
    four, three, square, scalar = (zeros(host, I8, shape) for shape in ((4,), (3,), (2, 2), ()))
    text = fails(host, "add", four, three, four)
    assert "[4]" in text
    assert "[3]" in text
    assert "[2,2]" in fails(host, "add", four, four, square)
    assert "[]" in fails(host, "add", four, four, scalar)
    call(host, "add", square, scalar, square)


def test_shapes_too_long_for_the_text_are_cut(host: Host) -> None:
    """The number of dimensions fills a packet: the text is cut at the buffer's end."""
    data = host.alloc(64)
    text = host.error(CallFunc(host.function("exp"), [DLTensor(data, F32, (1,) * n) for n in (1, 200)]))
    assert "1,1,1,1,1" in text
    assert len(text) < len(host.server.error.content())
