# SPDX-License-Identifier: Apache-2.0
"""The calls of a check, their expected results, and the error of a result. No I/O here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

AnyArray = npt.NDArray[Any]

ELEMENTS: Final = 256
# glibc and picolibc both promise to stay below one unit in the last place.
EXP_ULPS: Final = 1.0


@dataclass(frozen=True)
class Case:
    """One call of `function` with `inputs` and, as its last argument, an array for the result.

    exact: the right result, in double precision for floats.
    limit: the largest error that passes, in ULPs; 0 for results that must be exact.
    """

    function: str
    inputs: tuple[AnyArray, ...]
    exact: AnyArray
    limit: float = 0.0

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return self.exact.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the inputs and the result."""
        return self.inputs[0].dtype

    @property
    def size(self) -> str:
        """The result's shape: "1024", "512x512"."""
        return "x".join(map(str, self.shape)) or "1"

    def error_of(self, result: AnyArray) -> float:
        """The largest error of `result`: in ULPs for floats, else the difference; NaN if the result has a
        NaN."""
        if self.dtype.kind != "f":
            return float(np.max(np.abs(result.astype(np.int64) - self.exact.astype(np.int64))))
        return float(np.max(ulps(result, self.exact)))

    def passes(self, error: float) -> bool:
        """True if the error is within the limit; False for NaN."""
        return error <= self.limit


def ulps(result: AnyArray, exact: AnyArray) -> AnyArray:
    """The distance of each element of `result` from `exact`, in units of the last place of the nearest
    float."""
    spacing = np.spacing(np.abs(exact).astype(result.dtype)).astype(np.float64)
    errors: AnyArray = np.abs(result.astype(np.float64) - exact) / spacing
    return errors


def cases() -> list[Case]:
    """The cases: add on few and on many elements of both types, and exp over all of its range."""
    random = np.random.default_rng(1)
    bytes_a, bytes_b = (random.integers(-128, 128, ELEMENTS, np.int8) for _ in range(2))
    floats_a, floats_b = (random.normal(0, 1000, ELEMENTS).astype(np.float32) for _ in range(2))
    exponents = np.linspace(-87, 88, ELEMENTS, dtype=np.float32)
    return [
        _same("add", np.add, np.array([2, 3], np.int8), np.array([4], np.int8)),
        _same("add", np.add, bytes_a, bytes_b),
        _same("add", np.add, floats_a, floats_b),
        Case("exp", (exponents,), np.exp(exponents.astype(np.float64)), EXP_ULPS),
    ]


def _same(name: str, function: Callable[..., AnyArray], *inputs: AnyArray) -> Case:
    """A case for which numpy's function gives the exact result."""
    return Case(name, inputs, function(*inputs))
