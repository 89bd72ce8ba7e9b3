# SPDX-License-Identifier: Apache-2.0
"""What is tuned: a C function, what it is called with, and what is right. A value."""

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
"""Takes copies of the arguments, changes arrays in place as the kernel should, and returns what it should."""


Objective = Literal["time", "cycles"]


@dataclass(frozen=True)
class Kernel:
    """What is tuned.

    source: its C file. function: in it. arguments: numpy arrays and numbers that it is called with.
    check: what is right; None to believe every candidate. include: directories of headers.
    check_every: of the candidates each so many-th is checked, by its number; 0 for the best only, at the end.
    number, repeat: of its time evaluator; the quickest repeat counts, since an interrupt may fall into one.
    counters: names to be counted, as `measure` takes them.
    objective: what the best has least of: time, or cycles as a core's table has them, which are counted then.
    rtol, atol: how near floats must be.
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
    def counted(self) -> tuple[str, ...] | Literal["all"]:
        """The counters that are measured: what is asked for, and what the objective takes."""
        if isinstance(self.counters, str):
            return "all"
        return tuple(dict.fromkeys((*self.counters, *(("cycles",) if self.objective == "cycles" else ()))))

    def sources(self, candidate: Candidate) -> Sources:
        """What is compiled for a candidate. Raises ConfigurationError for files that are not there."""
        return Sources.of(
            self.source, include=self.include, flags=candidate.flags, defines=dict(candidate.defines)
        )

    def checks(self, candidate: Candidate) -> bool:
        """Whether its results are looked at, before and after it is measured."""
        every = self.check_every
        return self.check is not None and every > 0 and candidate.number % every == 0

    def wrong(self, function: Callable[..., Any]) -> str:
        """What is wrong with the results of `function`; "" when they are right, or nobody says what is."""
        if self.check is None:
            return ""
        given, expected = copy.deepcopy(self.arguments), copy.deepcopy(self.arguments)
        try:
            due = self.check(*expected)
        except Exception as error:  # Whatever the user's function raises.
            name = getattr(self.check, "__name__", "the check")
            raise ConfigurationError(
                f"{name}, which says what is right, has failed: {type(error).__name__}: {error}",
                stage="check",
                next_step="correct it; it is called with the kernel's arguments",
            ) from error
        result = function(*given)
        if due is not None and not self._equal(result, due):
            return f"returned {result!r}, not {due!r}"
        for number, (value, other) in enumerate(zip(given, expected, strict=True)):
            if isinstance(value, np.ndarray) and not self._equal(value, other):
                flat, right = value.ravel(), np.asarray(other).ravel()
                near = np.isclose(flat, right, self.rtol, self.atol, equal_nan=True)
                place = int(np.flatnonzero(~near)[0])
                return f"argument {number}: element {place} is {flat[place]}, not {right[place]}"
        return ""

    def _equal(self, first: Any, other: Any) -> bool:  # noqa: ANN401 - arrays or numbers
        first, other = np.asarray(first), np.asarray(other)
        if first.dtype.kind in "fc" or other.dtype.kind in "fc":
            return bool(np.allclose(first, other, rtol=self.rtol, atol=self.atol, equal_nan=True))
        return bool(np.array_equal(first, other))
