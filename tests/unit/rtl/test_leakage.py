# SPDX-License-Identifier: Apache-2.0
"""Arguments of traces, and Welch's t, without a core; tests/device/test_rtl.py has published leaks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from minrpc import ConfigurationError
from minrpc.check.leakage import LEAST, Inputs, Leakage, leakage, welch_t
from minrpc.rtl import CallTrace

WORDS, BYTES = np.zeros((2, 3), np.uint16), np.zeros(8, np.uint8)
PC = np.arange(3, dtype=np.uint32)


@pytest.mark.parametrize(
    ("secret", "shares", "text"),
    [
        ((), (), "no secret is named"),
        ((3,), (), "argument 4 is no array"),
        ((1,), (), "argument 2 is no array"),
        ((), (2,), "argument 3 is no array with two halves"),
    ],
)
def test_what_is_no_secret(secret: tuple[int, ...], shares: tuple[int, ...], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        Inputs([BYTES, 7, np.zeros(3, np.uint8)], frozenset(secret), frozenset(shares))


def test_only_the_secret_of_a_fixed_trace_is_fixed() -> None:
    inputs = Inputs([WORDS, 7, BYTES, BYTES, 0.5], secret=frozenset({0}), shares=frozenset({2}))
    random = np.random.default_rng(1)
    one, other = (inputs.drawn(random, np.random.default_rng(2)) for _ in range(2))
    free = inputs.drawn(random, None)
    assert [one[at] for at in (1, 4)] == [7, 0.5]
    assert [(one[at].dtype, one[at].shape) for at in (0, 2)] == [(np.uint16, (2, 3)), (np.uint8, (8,))]
    assert np.array_equal(one[0], other[0])
    assert not np.array_equal(one[0], free[0])
    secrets = [(drawn[2][:4] ^ drawn[2][4:]).tobytes() for drawn in (one, other, free)]
    assert secrets[0] == secrets[1] != secrets[2]
    for at in (2, 3):
        assert not np.array_equal(one[at], other[at])


def test_constants_that_differ_leak_and_equal_ones_do_not() -> None:
    constants = welch_t(np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([[1.0, 2.0], [1.0, 2.0]]))
    assert constants.tolist() == [0.0, -np.inf]


def call(secret: npt.NDArray[np.uint8], *_: object) -> CallTrace:
    """The second of three cycles changes as many bits as the secret has."""
    return CallTrace(PC, np.array([5, int(secret[0]).bit_count(), secret[1] & 0], np.uint32))


def longer(secret: npt.NDArray[np.uint8]) -> CallTrace:
    return CallTrace(PC[: 2 + secret[0] % 2], PC[: 2 + secret[0] % 2])


def test_the_cycle_that_changes_with_the_secret_leaks() -> None:
    inputs = Inputs([BYTES], frozenset({0}))
    found = leakage(call, inputs, LEAST)
    assert (found.leaks.tolist(), found.worst, bool(found), found.traces) == ([1], 1, False, LEAST)
    assert leakage(call, Inputs([BYTES, BYTES], frozenset({1})), LEAST)
    refused: list[tuple[Any, int, str]] = [
        (call, LEAST - 1, "too few"),
        (longer, LEAST, "take 2 to 3 cycles"),
    ]
    for function, traces, text in refused:
        with pytest.raises(ConfigurationError, match=text):
            leakage(function, inputs, traces)


def test_a_leak_is_above_the_threshold() -> None:
    found = Leakage(np.array([4.5, -4.6, 4.4]), PC, LEAST)
    assert (found.leaks.tolist(), found.worst) == ([1], 1)
