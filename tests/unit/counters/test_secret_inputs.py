# SPDX-License-Identifier: Apache-2.0
"""Inputs of a constant-time check: their kinds, and the textbook leaks that they find."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from minrpc import ConfigurationError, secret_inputs
from minrpc.counters.secret_inputs import LEAST

KEY = np.zeros(16, np.uint8)


def paths(taken: Callable[..., object], *arguments: object, secret: tuple[int, ...] = (0,)) -> set[object]:
    """The paths that a function in Python would take with these inputs."""
    return {taken(*call) for call in secret_inputs(arguments, secret).calls}


@pytest.mark.parametrize(
    "leak",
    [
        lambda x: bool(x & 0x80),
        lambda x: x > 100,
        lambda x: next((bit for bit in range(8) if x >> bit & 1), 8),
        lambda x: x == 0,
        lambda x: x == 255,
    ],
    ids=["x & 0x80", "x > 100", "early exit at a bit", "zero", "all ones"],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_textbook_leaks_of_a_number_are_seen(leak: Callable[[int], object], dtype: type) -> None:
    assert len(paths(lambda x: leak(x & 0xFF), dtype(0))) > 1


def test_a_comparison_that_leaves_early_is_seen_beyond_its_first_byte() -> None:
    def left_at(secret: np.ndarray, public: np.ndarray) -> int:
        return next((at for at in range(16) if secret[at] != public[at]), 16)

    found = paths(left_at, KEY, np.arange(16, dtype=np.uint8))
    assert {0, 15, 16} <= found
    assert len(found) > 3


def test_secrets_take_their_whole_range_and_public_arguments_stay() -> None:
    public = np.arange(4, dtype=np.int32)
    inputs = secret_inputs([KEY, public, 7, np.int16(0)], [0, 3], names=["key", "message", "n", "salt"])
    assert len(inputs.calls) == LEAST
    keys = np.array([call[0] for call in inputs.calls])
    assert keys.min() == 0
    assert keys.max() == 255
    salts = [call[3] for call in inputs.calls]
    assert min(salts) < -1000 < 1000 < max(salts)
    assert -1 in salts
    for call in inputs.calls:
        assert call[1] is public
        assert call[2] == 7
    text = str(inputs)
    assert "all zeros, all ones" in text
    assert "24 with one bit different" in text
    assert text.endswith("secret: key, salt; public: message, n")


def test_single_bit_differences_differ_by_one_bit_from_another_input() -> None:
    keys = [call[0].tobytes() for call in secret_inputs([KEY], [0]).calls]
    numbers = [int.from_bytes(key, "big") for key in keys]
    near = {min((number ^ other).bit_count() for other in numbers if other != number) for number in numbers}
    assert 1 in near


def test_a_secret_of_one_byte_is_tried_with_single_bits_other() -> None:
    """Each kind counts the calls of this kind: a copy of the base is no difference."""
    tried = secret_inputs([np.uint8(0)], secret=[0])
    base, flipped = tried.calls[2][0], [call[0] for call in tried.calls[3:27]]
    assert tried.kinds["with one bit different"] == len(flipped)
    assert {(value ^ base).bit_count() for value in flipped} == {1}


def test_two_secrets_are_tried_equal_to_each_other() -> None:
    def leak(a: int, b: int) -> bool:
        return a == b and 0 < a < 0xFFFFFFFF

    assert paths(leak, np.uint32(0), np.uint32(0), secret=(0, 1)) == {False, True}


def test_the_callers_own_inputs_are_tried_too() -> None:
    own = [[np.full(16, 3, np.uint8)], [np.full(16, 4, np.uint8)]]
    inputs = secret_inputs([KEY], [0], own=own)
    assert [call[0][0] for call in inputs.calls[:2]] == [3, 4]
    assert "2 given" in str(inputs)
    assert len(inputs.calls) == LEAST


def test_what_can_not_be_tried_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no argument is secret"):
        secret_inputs([KEY], [])
    with pytest.raises(ConfigurationError, match="argument 1 can't be secret"):
        secret_inputs([KEY, 3], [1])
    with pytest.raises(ConfigurationError, match="argument 2 can't be secret"):
        secret_inputs([KEY, 3], [2])
    with pytest.raises(ConfigurationError, match="at least 64"):
        secret_inputs([KEY], [0], tries=8)


def test_a_secret_is_not_equal_to_itself() -> None:
    """No input is described as equal to another argument if no other argument has its size."""
    made = secret_inputs([np.zeros(16, np.uint8), np.zeros(8, np.uint8)], {0})
    assert "equal to another argument" not in str(made)
