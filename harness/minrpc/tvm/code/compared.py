# SPDX-License-Identifier: Apache-2.0
"""What a device gave beside what TVM gives."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

TOLERANCE: Final = 1e-5
"""Float results differ in the order of additions and in the math library; float16's by two steps."""


class OutputDifference(NamedTuple):
    """Of two arrays of one shape.

    error: the largest difference in parts of the largest value, 0 for integers that are equal; of what is
        finite. None where nan or infinity are not at the same places.
    special: how many elements are nan or infinity, as they should be; else how many are not as they should.
    tolerance: how large the error may be.
    """

    error: float | None
    special: int
    tolerance: float = TOLERANCE

    @property
    def right(self) -> bool:
        """Whether that is what rounding may do."""
        return self.error is not None and self.error <= self.tolerance

    def __str__(self) -> str:
        if self.error is None:
            return f"WRONG, nan or infinity: {self.special:,} are at other places than TVM's"
        verdict = "right" if self.right else "WRONG"
        shown = f"{verdict}, largest error {self.error:.3g} of the largest value"
        return shown + (f"; nan or infinity: {self.special:,}, as TVM's" if self.special else "")


def difference(given: npt.NDArray[Any], expected: npt.NDArray[Any]) -> OutputDifference:
    """Of what came from what should have come."""
    if given.dtype.kind in "iub":  # float64 has no room for large integers: Python's own, where they differ.
        wrong = given != expected
        steps = [abs(int(value) - int(due)) for value, due in zip(given[wrong], expected[wrong], strict=True)]
        largest = max((abs(int(value)) for value in expected.flat), default=0) if steps else 0
        return OutputDifference(max(steps, default=0) / (largest or 1), 0, 0.0)
    item, due = given.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(due)
    same = np.where(finite, np.isfinite(item), (item == due) | (np.isnan(item) & np.isnan(due)))
    if not same.all():
        return OutputDifference(None, int(np.count_nonzero(~same)))
    error = np.max(np.abs(item[finite] - due[finite]), initial=0.0)
    scale = np.max(np.abs(due[finite]), initial=0.0)
    tolerance = max(TOLERANCE, 2 * float(np.finfo(given.dtype).eps))
    return OutputDifference(float(error / (scale or 1.0)), int(np.count_nonzero(~finite)), tolerance)
