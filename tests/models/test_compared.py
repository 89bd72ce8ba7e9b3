# SPDX-License-Identifier: Apache-2.0
"""Right outputs: differences by rounding, and nan or infinity at the same places as TVM's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from minrpc_models.compared import OutputDifference, difference, witnessed

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("given", "expected", "found"),
    [
        ([1.0, 2.0], [1.0, 2.0], OutputDifference(0.0, 0)),
        ([1.0, 5.0], [1.0, 4.0], OutputDifference(0.25, 0)),
        ([0.5], [0.0], OutputDifference(0.5, 0)),
        ([], [], OutputDifference(0.0, 0)),
        ([NAN, 2.0], [NAN, 2.0], OutputDifference(0.0, 1)),
        ([NAN, INF, -INF, 3.0], [NAN, INF, -INF, 4.0], OutputDifference(0.25, 3)),
        ([NAN, NAN], [NAN, NAN], OutputDifference(0.0, 2)),
        ([NAN, 2.0, 1.0], [2.0, NAN, 1.0], OutputDifference(None, 2)),
        ([INF], [-INF], OutputDifference(None, 1)),
        ([INF], [NAN], OutputDifference(None, 1)),
        ([INF], [1.0], OutputDifference(None, 1)),
        ([1.0], [INF], OutputDifference(None, 1)),
    ],
)
def test_floats(given: list[float], expected: list[float], found: OutputDifference) -> None:
    for dtype in (np.float16, np.float32, np.float64):
        assert difference(np.array(given, dtype), np.array(expected, dtype))[:2] == found[:2]


@pytest.mark.parametrize(
    ("dtype", "error", "right"),
    [
        (np.float16, 0.0015, True),
        (np.float16, 0.003, False),
        (np.float32, 0.9e-5, True),
        (np.float32, 1.1e-5, False),
        (np.float64, 1.1e-5, False),
    ],
)
def test_what_rounding_may_do(dtype: Any, error: float, right: bool) -> None:  # noqa: ANN401
    expected = np.array([1.0, 0.25], dtype)
    assert difference((expected + dtype(error)).astype(dtype), expected).right is right


@pytest.mark.parametrize(
    ("dtype", "given", "expected", "error"),
    [
        (np.int64, [2**62], [2**62 + 1], 1 / (2**62 + 1)),
        (np.int64, [2**62], [2**62], 0.0),
        (np.int8, [-128], [127], 255 / 127),
        (np.uint8, [0], [4], 1.0),
        (np.bool_, [True, False], [True, True], 1.0),
        (np.int32, [], [], 0.0),
    ],
)
def test_integers(dtype: Any, given: list[int], expected: list[int], error: float) -> None:  # noqa: ANN401
    """Integers must be equal."""
    found = difference(np.array(given, dtype), np.array(expected, dtype))
    assert found == OutputDifference(error, 0, 0.0)
    assert found.right is (error == 0)


def test_it_says_so() -> None:
    assert str(OutputDifference(1e-6, 0)) == "right, largest error 1e-06 of the largest value"
    assert str(OutputDifference(0.0, 9)).endswith("; nan or infinity: 9, as TVM's")
    assert str(OutputDifference(0.1, 0)).startswith("WRONG, largest error 0.1 of")
    assert str(OutputDifference(None, 3)) == "WRONG, nan or infinity: 3 are at other places than TVM's"


@pytest.mark.parametrize(
    ("given", "expected", "right"),
    [
        ([1.0, 2.0], [1.0, 2.0001], True),
        ([1.0, 2.0], [1.0, 2.001], False),
        ([1e-7, 0.0], [0.0, 2e-7], True),
        ([NAN, 1.0], [1.0, 1.0], False),
    ],
)
def test_another_program_may_differ_more(given: Any, expected: Any, right: bool) -> None:  # noqa: ANN401
    assert witnessed(np.array(given, np.float32), np.array(expected, np.float32)).right is right


def test_another_program_may_round_integers_otherwise() -> None:
    expected = np.array([-128, 5, 100], np.int8)
    assert witnessed(np.array([-127, 5, 99], np.int8), expected).right
    assert not witnessed(np.array([-126, 5, 100], np.int8), expected).right
    assert not witnessed(np.array([True]), np.array([False])).right
