# SPDX-License-Identifier: Apache-2.0
"""The kernel to tune: a C function, its arguments, and its check. A value."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from minrpc.errors import ConfigurationError
from minrpc.library import Sources
from minrpc.tuning.candidates import Candidate

Arguments = Sequence[object]
Check = Callable[..., Any]
"""Reference: takes copies of the arguments, sets arrays in place and returns the result, like the kernel."""


Objective = Literal["time", "cycles"]


@dataclass(frozen=True)
class Kernel:
    """The kernel to tune.

    source: its C file. function: its name in the file. arguments: numpy arrays and numbers for each call.
    check: computes the right results; None to accept every candidate. include: directories of headers.
    check_every: N to check every N-th candidate by number; 0 to check only the best, at the end.
    number, repeat: for the time evaluator; the fastest repeat counts, since an interrupt may slow one.
    counters: names of counters, as for `measure`.
    objective: the quantity to minimize: time, or cycles by a core's table, which are then counted.
    rtol, atol: tolerances of floats.
    """

    source: Path
    function: str
    arguments: tuple[object, ...]
    check: Check | None = None
    include: tuple[Path, ...] = ()
    check_every: int = 1
    number: int = 1
    repeat: int = 3
    counters: tuple[str, ...] | str = ()
    rtol: float = 1e-5
    atol: float = 1e-6
    objective: Objective = "time"

    @property
    def unit(self) -> str:
        """The unit of a result's cost."""
        return "core cycles" if self.objective == "cycles" else "ticks"

    @property
    def counted(self) -> tuple[str, ...] | Literal["all"]:
        """The counters to measure: the requested counters, and the counters of the objective."""
        if isinstance(self.counters, str):
            return "all"
        return tuple(dict.fromkeys((*self.counters, *(("cycles",) if self.objective == "cycles" else ()))))

    def sources(self, candidate: Candidate) -> Sources:
        """The sources of a candidate. Raises ConfigurationError for missing files."""
        return Sources.of(
            self.source, include=self.include, flags=candidate.flags, defines=dict(candidate.defines)
        )

    def checks(self, candidate: Candidate) -> bool:
        """True if the candidate's results are checked, before and after it is measured."""
        every = self.check_every
        return self.check is not None and every > 0 and candidate.number % every == 0

    def wrong(self, function: Callable[..., Any]) -> str:
        """The error in the results of `function`; "" if they are right, or the kernel has no check."""
        if self.check is None:
            return ""
        given, expected = copy.deepcopy(self.arguments), copy.deepcopy(self.arguments)
        try:
            due = self.check(*expected)
        except Exception as error:  # The user's function may raise any error.
            name = getattr(self.check, "__name__", "the check")
            raise ConfigurationError(
                f"the check {name} has failed: {type(error).__name__}: {error}",
                stage="check",
                next_step="correct it; it is called with the kernel's arguments",
            ) from error
        result = function(*given)
        if due is not None and not self._equal(result, due):
            return f"returned {result!r}, not {due!r}"
        for number, (value, other) in enumerate(zip(given, expected, strict=True)):
            if isinstance(value, np.ndarray) and not self._equal(value, other):
                flat, right = value.ravel(), np.asarray(other).ravel()
                floating = flat.dtype.kind in "fc"
                near = np.isclose(flat, right, self.rtol, self.atol, True) if floating else flat == right
                place = int(np.flatnonzero(~near)[0])
                return f"argument {number}: element {place} is {flat[place]}, not {right[place]}"
        return ""

    def _equal(self, first: Any, other: Any) -> bool:  # noqa: ANN401 - arrays or numbers
        first, other = np.asarray(first), np.asarray(other)
        if first.dtype.kind in "fc" or other.dtype.kind in "fc":
            return bool(np.allclose(first, other, rtol=self.rtol, atol=self.atol, equal_nan=True))
        return bool(np.array_equal(first, other))
