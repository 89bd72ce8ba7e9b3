# SPDX-License-Identifier: Apache-2.0
"""Leakage of a function on a core's RTL: Welch's t of register bits that change, by fixed and random secrets.

The method is TVLA's (Goodwill et al., "A testing methodology for side-channel resistance validation", 2011),
with its threshold. The measurement is a simulation: changed bits of the register file, without noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from minrpc.errors import ConfigurationError
from minrpc.rtl import CallTrace

THRESHOLD: Final = 4.5
LEAST: Final = 100
"""Traces below which a variance is not known well."""


@dataclass(frozen=True, slots=True)
class Leakage:
    """t: Welch's t of each cycle, signed. pc: its address in the pipeline. traces: of both groups."""

    t: npt.NDArray[np.float64]
    pc: npt.NDArray[np.uint32]
    traces: int

    @property
    def worst(self) -> int:
        """The cycle with the largest |t|."""
        return int(np.argmax(np.abs(self.t)))

    @property
    def leaks(self) -> npt.NDArray[np.intp]:
        """The cycles above the threshold."""
        return np.flatnonzero(np.abs(self.t) > THRESHOLD)

    def __bool__(self) -> bool:
        """True if no cycle is above the threshold."""
        return not len(self.leaks)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Arguments of each call.

    given: arrays, whose bytes are drawn anew for each call, and numbers.
    secret: positions of arrays that are the secret; shares: of arrays whose halves' exclusive or is it.
    """

    given: Sequence[npt.NDArray[Any] | int | float]
    secret: frozenset[int] = frozenset()
    shares: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if not self.secret | self.shares:
            raise ConfigurationError("no secret is named", next_step="name a parameter: --secret or --shares")
        for at in self.secret | self.shares:
            value = self.given[at] if at < len(self.given) else None
            if not isinstance(value, np.ndarray) or (at in self.shares and value.nbytes % 2):
                raise ConfigurationError(
                    f"argument {at + 1} is no array{' with two halves' * (at in self.shares)}",
                    next_step="a secret is an array, such as uint8[16]; its shares are its two halves",
                )

    def drawn(self, random: np.random.Generator, fixed: np.random.Generator | None) -> list[Any]:
        """New arguments. fixed: draws the secret; None: `random` does."""
        return [
            self._array(at, value, random, fixed or random) if isinstance(value, np.ndarray) else value
            for at, value in enumerate(self.given)
        ]

    def _array(
        self, at: int, like: npt.NDArray[Any], random: np.random.Generator, secrets: np.random.Generator
    ) -> npt.NDArray[Any]:
        own = secrets if at in self.secret else random
        content = np.frombuffer(own.bytes(like.nbytes), np.uint8).copy()
        if at in self.shares:
            half = like.nbytes // 2
            content[half:] = content[:half] ^ np.frombuffer(secrets.bytes(half), np.uint8)
        return content.view(like.dtype).reshape(like.shape)


def leakage(call: Callable[..., CallTrace], inputs: Inputs, traces: int, seed: int = 0) -> Leakage:
    """Welch's t over `traces` calls, in random order with a fixed and with a random secret.

    call: calls the function and gives the trace. Raises ConfigurationError for too few traces, and for calls
    that take different times.
    """
    if traces < LEAST:
        raise ConfigurationError(f"{traces} traces are too few", next_step=f"take at least {LEAST}")
    random = np.random.default_rng(seed)
    is_fixed = random.permutation(np.arange(traces) % 2 == 0)
    recorded = [
        call(*inputs.drawn(random, np.random.default_rng(seed + 1) if fixed else None)) for fixed in is_fixed
    ]
    lengths = {len(trace.pc) for trace in recorded}
    if len(lengths) > 1:
        raise ConfigurationError(
            f"the calls take {min(lengths):,} to {max(lengths):,} cycles: their time leaks already",
            next_step="look for the branch with `minrpc time --constant-time`",
        )
    changed = np.array([trace.changed for trace in recorded], np.float64)
    return Leakage(welch_t(changed[is_fixed], changed[~is_fixed]), recorded[0].pc, traces)


def welch_t(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Welch's t of each column of two groups; infinite where constants differ."""
    difference = a.mean(axis=0) - b.mean(axis=0)
    error = np.sqrt(a.var(axis=0, ddof=1) / len(a) + b.var(axis=0, ddof=1) / len(b))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0, 0.0, difference / error)
