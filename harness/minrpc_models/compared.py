# SPDX-License-Identifier: Apache-2.0
"""Compares a device's outputs with TVM's."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

TOLERANCE: Final = 1e-5
"""Allowed relative error: float results differ by the order of additions and by the math library. The limit
of float16 is two of its steps."""


WITNESS_TOLERANCE: Final = 1e-4
"""Allowed relative error of floats against another program's, which orders all operations in its own way."""

WITNESS_STEP: Final = 1e-6
"""Allowed absolute error, about eight steps of a float32 at 1: for sigmoids with small values only."""


class OutputDifference(NamedTuple):
    """The difference of two arrays of the same shape.

    error: the largest difference of finite elements, divided by the largest expected value; 0 for equal
        integers. None if nan or infinity are at other places than expected.
    special: number of nan and infinite elements; if `error` is None, number of elements at wrong places.
    tolerance: the largest allowed `error`.
    """

    error: float | None
    special: int
    tolerance: float = TOLERANCE

    @property
    def right(self) -> bool:
        """True if rounding can explain the difference."""
        return self.error is not None and self.error <= self.tolerance

    @property
    def size(self) -> str:
        """The error in words, if it is a number."""
        return f"largest error {self.error:.3g} of the largest value"

    def __str__(self) -> str:
        return self.told("TVM's")

    def told(self, whose: str) -> str:
        """The verdict in words. whose: the program that gave the expected values, such as "TVM's"."""
        if self.error is None:
            return f"WRONG, nan or infinity: {self.special:,} are at other places than {whose}"
        shown = f"{'right' if self.right else 'WRONG'}, {self.size}"
        return shown + (f"; nan or infinity: {self.special:,}, as {whose}" if self.special else "")


def witnessed(given: npt.NDArray[Any], expected: npt.NDArray[Any], steps: int = 1) -> OutputDifference:
    """The difference from another program's output. steps: allowed difference of integers, since that program
    may round differently."""
    deviation = difference(given, expected)
    largest = float(np.max(np.abs(expected[np.isfinite(expected)]).astype(np.float64), initial=0.0)) or 1.0
    if given.dtype.kind == "b":
        return deviation
    if given.dtype.kind in "iu":
        return deviation._replace(tolerance=steps / largest)
    return deviation._replace(tolerance=max(deviation.tolerance, WITNESS_TOLERANCE, WITNESS_STEP / largest))


def difference(given: npt.NDArray[Any], expected: npt.NDArray[Any], allowed: int = 0) -> OutputDifference:
    """The difference of `given` from `expected`. allowed: steps of integers that were rounded from floats."""
    if given.dtype.kind in "iub":  # float64 can't hold large integers: Python's are used.
        wrong = given != expected
        steps = [abs(int(value) - int(due)) for value, due in zip(given[wrong], expected[wrong], strict=True)]
        largest = max((abs(int(value)) for value in expected.flat), default=0) if steps else 0
        return OutputDifference(max(steps, default=0) / (largest or 1), 0, allowed / (largest or 1))
    item, due = given.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(due)
    same = np.where(finite, np.isfinite(item), (item == due) | (np.isnan(item) & np.isnan(due)))
    if not same.all():
        return OutputDifference(None, int(np.count_nonzero(~same)))
    error = np.max(np.abs(item[finite] - due[finite]), initial=0.0)
    scale = np.max(np.abs(due[finite]), initial=0.0)
    tolerance = max(TOLERANCE, 2 * float(np.finfo(given.dtype).eps))
    return OutputDifference(float(error / (scale or 1.0)), int(np.count_nonzero(~finite)), tolerance)
