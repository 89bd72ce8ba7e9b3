# SPDX-License-Identifier: Apache-2.0
"""Structs as Python values: what is written replaces what was there, and no more than that."""

from __future__ import annotations

import numpy as np
import pytest
from minrpc.library.structs import StructValue, bytes_of, make_struct
from minrpc.program.c_types import Field, Pointer, Record, Scalar

INT = Scalar("int", 4, "int")
UNSIGNED = Scalar("unsigned int", 4, "uint")
FLAGS = Record(
    "struct",
    "flags",
    4,
    complete=True,
    fields=(
        Field("low", UNSIGNED, 0, 3, 0),
        Field("middle", INT, 0, 7, 3),
        Field("high", UNSIGNED, 0, 22, 10),
    ),
)
ONE = Record("struct", "one", 8, complete=True, fields=(Field("p", Pointer(INT, 8), 0),))
TWO = Record("struct", "two", 16, complete=True, fields=(Field("a", ONE, 0), Field("b", ONE, 8)))


@pytest.mark.parametrize("middle", [0, 1, -1, 63, -64])
def test_a_bit_field_takes_each_value_after_any_other(middle: int) -> None:
    made = make_struct(FLAGS, "flags", {"low": 7, "middle": -1, "high": (1 << 22) - 1})
    made.middle = middle
    assert (made.low, made.middle, made.high) == (7, middle, (1 << 22) - 1)
    made.low = 0
    assert (made.low, made.middle, made.high) == (0, middle, (1 << 22) - 1)
    made.high = 1
    assert bytes_of(made) == ((middle & 0x7F) << 3 | 1 << 10).to_bytes(4, "little")


def pointed() -> tuple[StructValue, np.ndarray, np.ndarray]:
    x, y = np.zeros(3, np.int32), np.ones(4, np.int32)
    made = make_struct(TWO, "two", {})
    made.a.p, made.b.p = x, y
    return made, x, y


def target(value: StructValue, member: str) -> object:
    """What the pointer in that member points to."""
    found: object = getattr(value, member).p
    return found


def test_a_pointer_that_is_none_again_forgets_its_array() -> None:
    made, x, y = pointed()
    made.b.p = None
    assert target(made, "a") is x
    assert target(made, "b") is None
    made.a = make_struct(ONE, "one", {})
    assert target(made, "a") is None
    made.b.p = y
    assert target(made, "b") is y


def test_a_struct_inside_is_copied_with_its_own_pointers_alone() -> None:
    made, x, y = pointed()
    other = make_struct(TWO, "two", {})
    other.a = made.a
    assert target(other, "a") is x
    assert target(other, "b") is None
    other.b = made.b
    assert target(other, "a") is x
    assert target(other, "b") is y
    other.a = made.b
    assert target(other, "a") is y
