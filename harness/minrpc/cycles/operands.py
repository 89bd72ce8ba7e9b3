# SPDX-License-Identifier: Apache-2.0
"""Instructions whose cycles depend on their operands, and the rules by which operands decide.

QEMU's plugin reads the operands and looks their cycles up in a table: by the instruction, and by the class of
each of the two operands. The rules for Cortex-M3 and M4 were published by others, who measured TI's CC2650
and CC2652: the emulator of github.com/mimuw-distributed-systems-group/cmemu, commit 78d79ad.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from minrpc.cycles.instructions import InstructionSet

Words = npt.NDArray[np.int64]
"""Values of 32-bit registers, as unsigned numbers."""
Rule = Callable[[Words, Words, bool], Words]
"""A rule: cycles by the first and the second operand, and by whether they are signed."""


class Operation(NamedTuple):
    """Instructions of a class that have `bits` under `mask`. The first two bytes are the lower ones.

    signed: True if the instruction takes its operands as signed numbers.
    """

    kind: str
    mask: int
    bits: int
    signed: bool


OPERATIONS: Final[Mapping[InstructionSet, Sequence[Operation]]] = {
    "thumb": (
        Operation("div", 0x00F0FFF0, 0x00F0FB90, True),
        Operation("div", 0x00F0FFF0, 0x00F0FBB0, False),
        Operation("mul_long", 0x00F0FFF0, 0x0000FB80, True),
        Operation("mul_long", 0x00F0FFF0, 0x0000FBA0, False),
        Operation("mla_long", 0x00F0FFF0, 0x0000FBC0, True),
        Operation("mla_long", 0x00F0FFF0, 0x0000FBE0, False),
    ),
    "riscv32": (
        Operation("div", 0xFE00507F, 0x02004033, True),
        Operation("div", 0xFE00507F, 0x02005033, False),
    ),
}
"""The instructions that may have a rule; REM is one of RISC-V's divisions."""

_SIGN: Final = 1 << 31
_WORD: Final = 1 << 32
_ZEROS: Final = 33
CLASSES: Final = 2 * _ZEROS * 4
"""Number of classes of an operand."""


def magnitude(value: Words) -> Words:
    """The magnitude of signed numbers, 0 to 2**31."""
    return np.where(value & _SIGN, _WORD - value, value)


def leading_zeros(value: Words) -> Words:
    """The number of leading zeros; 32 for 0."""
    return 32 - np.frexp(value.astype(np.float64))[1].astype(np.int64)


def class_of(value: Words) -> Words:
    """The class of operands, as the plugin has it: the sign; of the magnitude the leading zeros, whether the
    lower half is 0, and whether it has a single bit or none."""
    size = magnitude(value)
    zeros = (value >> 31) * _ZEROS + leading_zeros(size)
    number: Words = zeros * 4 + 2 * (value & 0xFFFF == 0) + (size & (size - 1) == 0)
    return number


def examples() -> Words:
    """An operand of each class, by the class's number; any number for a class without operands."""
    number = np.arange(CLASSES)
    sign, zeros = np.divmod(number // 4, _ZEROS)
    top = np.where(zeros < 32, 1 << np.maximum(31 - zeros, 0), 0)
    other = np.where(number & 2, 1 << 16, 1)
    size = np.where(number & 1, top, top | other)
    return np.where(sign, _WORD - size, size) % _WORD


def _division(dividend: Words, divisor: Words, signed: bool) -> Words:
    over, under = (magnitude(dividend), magnitude(divisor)) if signed else (dividend, divisor)
    bits = leading_zeros(under) - leading_zeros(over)
    if signed:
        negative, power = divisor & _SIGN != 0, under & (under - 1) == 0
        bits += negative & power & (over != _SIGN)
        bits -= negative & ~power & (over == _SIGN)
    cycles = np.where(bits < 0, 3, 5 + bits // 4)
    return np.where((over == 0) | (under == 0), 2, cycles)


# Cycles of a long multiplication by which halves of the operands are not 0: the first operand's high and low
# half, the second's high and low half, as a number of 4 bits.
_MULTIPLICATION: Final = np.array([3, 3, 3, 3, 3, 3, 4, 4, 3, 4, 3, 4, 3, 4, 4, 5])
_ACCUMULATION: Final = np.array([3, 3, 3, 3, 3, 3, 5, 5, 3, 5, 5, 6, 3, 5, 6, 7])
# Signed operands take one more cycle if either is negative, or if the second is.
_BY_EITHER_SIGN: Final = (0b1010, 0b1110)
_BY_SECOND_SIGN: Final = (0b0110, 0b0111)


def _halves(first: Words, second: Words) -> Words:
    parts = (first >> 16, first & 0xFFFF, second >> 16, second & 0xFFFF)
    return sum(((part != 0) << shift for part, shift in zip(parts, (3, 2, 1, 0), strict=True)), 0 * first)


def _long_product(cycles: Words) -> Rule:
    def rule(first: Words, second: Words, signed: bool) -> Words:
        halves = _halves(first, second)
        taken: Words = cycles[halves]
        if signed:
            negative, other = first >= _SIGN, second >= _SIGN
            taken += np.isin(halves, _BY_EITHER_SIGN) & (negative | other)
            taken += np.isin(halves, _BY_SECOND_SIGN) & other
        return taken

    return rule


def _bits_of_divisor(dividend: Words, divisor: Words, signed: bool) -> Words:
    zeros = leading_zeros(divisor)
    if signed:
        negative = leading_zeros(_WORD - 1 - divisor) - 1
        zeros = np.where(divisor & _SIGN, negative, zeros)
    return 3 + zeros + 0 * dividend


def _divisor_of_zero(dividend: Words, divisor: Words, signed: bool) -> Words:
    del signed
    return np.where(divisor == 0, 2, 37) + 0 * dividend


RULES: Final[Mapping[str, Rule]] = {
    "arm division": _division,
    "cortex-m3 long multiplication": _long_product(_MULTIPLICATION),
    "cortex-m3 long accumulation": _long_product(_ACCUMULATION),
    "bits of the divisor": _bits_of_divisor,
    "divisor of 0": _divisor_of_zero,
}
"""The rules by the name that a core's file has."""


@cache
def table(rule: str, signed: bool) -> Words:
    """Cycles by the classes of the first and of the second operand, of shape (CLASSES, CLASSES)."""
    operands = examples()
    return RULES[rule](operands[:, np.newaxis], operands[np.newaxis, :], signed)
