# SPDX-License-Identifier: Apache-2.0
"""Rules by operands: published examples by hand, and the tables that the plugin reads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from minrpc import ConfigurationError
from minrpc.cycles import Core, load_core
from minrpc.cycles.operands import CLASSES, OPERATIONS, RULES, Words, class_of, examples, table

WORDS = st.lists(
    st.one_of(
        st.integers(0, 2**32 - 1),
        st.builds(lambda bits, shift: (bits << shift) % 2**32, st.integers(0, 2**17), st.integers(0, 31)),
        st.builds(lambda shift: 2**32 - (1 << shift), st.integers(0, 31)),
    ),
    min_size=1,
)


def words(*values: int) -> Words:
    return np.array(values, np.int64)


def cycles(rule: str, first: int, second: int, *, signed: bool) -> int:
    [taken] = RULES[rule](words(first), words(second), signed).tolist()
    return int(taken)


# Measured by others on CC2650 and CC2652; the manuals of Arm give the least and the most only.
@pytest.mark.parametrize(
    ("dividend", "divisor", "signed", "due"),
    [
        (0, 5, False, 2),
        (5, 0, True, 2),
        (1, 2, False, 3),
        (8, 8, False, 5),
        (8 << 4, 8, False, 6),
        (8 << 3, 8, False, 5),
        (2**32 - 1, 1, False, 12),
        (2**32 - 16, 2, True, 5),
        # A negative power of two as the divisor: it counts as if the quotient had a bit more.
        (7 << 20, 2**32 - (1 << 19), True, 6),
        (7 << 20, 1 << 19, True, 5),
        (15 << 20, 2**32 - (1 << 20), True, 6),
        (15 << 20, 1 << 20, True, 5),
        # The most negative dividend: the quotient has a bit less, unless the divisor is such a power.
        (1 << 31, 2**32 - (3 << 26), True, 5),
        (1 << 31, 3 << 26, True, 6),
        (1 << 31, 2**32 - (1 << 27), True, 6),
    ],
)
def test_arms_division(dividend: int, divisor: int, signed: bool, due: int) -> None:
    assert cycles("arm division", dividend, divisor, signed=signed) == due


HIGH, LOW, BOTH, NEGATIVE = 0x7000_0000, 7, 0x7000_0007, 0x8000_0000


@pytest.mark.parametrize(
    ("first", "second", "unsigned", "signed"),
    [
        (0, BOTH, (3, 3), (3, 3)),
        (LOW, LOW, (3, 3), (3, 3)),
        (HIGH, HIGH, (3, 5), (3, 5)),
        (HIGH, NEGATIVE, (3, 5), (4, 6)),
        (LOW, HIGH, (4, 5), (4, 5)),
        (LOW, NEGATIVE, (4, 5), (5, 6)),
        (NEGATIVE, LOW, (4, 5), (4, 5)),
        (LOW, NEGATIVE + LOW, (4, 5), (5, 6)),
        (HIGH, BOTH, (4, 6), (4, 6)),
        (BOTH, HIGH, (4, 6), (4, 6)),
        (NEGATIVE, BOTH, (4, 6), (4, 6)),
        (BOTH, NEGATIVE, (4, 6), (5, 7)),
        (BOTH, LOW, (4, 5), (4, 5)),
        (BOTH, BOTH, (5, 7), (5, 7)),
        (NEGATIVE + LOW, NEGATIVE + LOW, (5, 7), (5, 7)),
    ],
)
def test_long_products_of_the_cortex_m3(
    first: int, second: int, unsigned: tuple[int, int], signed: tuple[int, int]
) -> None:
    rules = ("cortex-m3 long multiplication", "cortex-m3 long accumulation")
    for rule, plain, with_sign in zip(rules, unsigned, signed, strict=True):
        assert cycles(rule, first, second, signed=False) == plain
        assert cycles(rule, first, second, signed=True) == with_sign


@pytest.mark.parametrize(
    ("divisor", "unsigned", "signed"),
    [(0, 35, 35), (1, 34, 34), (1 << 31, 3, 3), (2**32 - 1, 3, 34), (2**32 - 2, 3, 33), (3, 33, 33)],
)
def test_bits_of_the_divisor(divisor: int, unsigned: int, signed: int) -> None:
    assert cycles("bits of the divisor", 9, divisor, signed=False) == unsigned
    assert cycles("bits of the divisor", 9, divisor, signed=True) == signed


def test_a_divisor_of_0() -> None:
    assert cycles("divisor of 0", 9, 0, signed=True) == 2
    assert cycles("divisor of 0", 0, 1, signed=True) == 37


@given(WORDS, WORDS, st.sampled_from(sorted(RULES)), st.booleans())
def test_a_rules_table_has_what_the_rule_gives(
    some: list[int], others: list[int], rule: str, signed: bool
) -> None:
    first, second = words(*some)[:, np.newaxis], words(*others)[np.newaxis, :]
    found = table(rule, signed)[class_of(first), class_of(second)]
    assert (found == RULES[rule](first, second, signed)).all()


def test_examples_are_of_their_classes() -> None:
    found = class_of(examples())
    used = np.unique(found)
    # Two signs of 31 sizes, in three kinds each, fewer if a half can't be 0; and 0.
    assert (found[used] == used).all()
    assert used.max() < CLASSES


@pytest.mark.parametrize("name", ["cortex-m3", "cortex-m4", "cv32e40p", "ibex"])
def test_a_cores_operations_fit_a_byte(name: str) -> None:
    core = load_core(name)
    tables = [core.by_operands(operation) for operation in core.operations]
    assert tables
    assert min(int(item.min()) for item in tables) == 0
    assert max(int(item.max()) for item in tables) < 256


def test_a_core_without_rules_has_no_operations() -> None:
    assert load_core("cortex-m0").operations == []
    assert len(load_core("cortex-m4").operations) == 2
    assert len(load_core("cortex-m3").operations) == len(OPERATIONS["thumb"])


def test_a_row_that_replaces_another_has_its_rule_or_none() -> None:
    row = 'extends = "cortex-m4"\n[[cost]]\nkinds = ["div"]\ncycles = {}\n'
    assert Core.read("mine", row.format("[2, 12]")).operations == []
    with pytest.raises(
        ConfigurationError, match="there is no rule 'luck' of operands; there is arm division"
    ):
        Core.read("mine", row.format('[2, 12]\noperands = "luck"'))
    with pytest.raises(ConfigurationError, match=r"'arm division' gives 2 to 12 cycles, not \[2, 9\]"):
        Core.read("mine", row.format('[2, 9]\noperands = "arm division"'))
