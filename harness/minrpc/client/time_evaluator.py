# SPDX-License-Identifier: Apache-2.0
"""The device's time evaluator: its request and its results."""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from math import isfinite
from operator import index
from struct import iter_unpack
from typing import Any, Self

import numpy as np

from minrpc.client.rpc import RpcClient
from minrpc.errors import DialectError, RemoteError, TimerError
from minrpc.names import did_you_mean, kind_of
from minrpc.wire.values import CPU, Argument, Function, Module

RPC_TIME_EVALUATOR = "runtime.RPCTimeEvaluator"

# Numbers of arguments, newest first. A device that takes another number refuses the call, without further
# effect.
_ARITIES = (12, 11, 10, 8)
_COOLS_DOWN = 10


@dataclass(frozen=True, kw_only=True)
class EvaluatorOptions:
    """The options of `time_evaluator` and `measure`, as of TVM's `time_evaluator`.

    number: calls in the first batch. repeat: number of results.
    min_repeat_ms: batches grow until a batch takes this long, in milliseconds.
    limit_zero_time_iterations: batches that may measure zero before the device gives up.
    cooldown_interval_ms, repeats_to_cooldown: length of the device's pauses, and repeats between them.
    """

    number: int = 10
    repeat: int = 1
    min_repeat_ms: int = 0
    limit_zero_time_iterations: int = 100
    cooldown_interval_ms: int = 0
    repeats_to_cooldown: int = 1

    def __post_init__(self) -> None:
        least = {"number": 1, "repeat": 1, "repeats_to_cooldown": 1}
        for name, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise TypeError(f"{name} is a whole number, not {value!r}")
            if value < least.get(name, 0):
                raise ValueError(f"{name} is at least {least.get(name, 0)}, not {value}")
            object.__setattr__(self, name, index(value))  # The wire carries no integer of numpy's.

    @classmethod
    def of(cls, given: Mapping[str, int]) -> Self:
        """Options from keywords. Raises TypeError for an unknown name, ValueError for an invalid value."""
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                near = did_you_mean(name, known) or f"there is {', '.join(known)}"
                raise TypeError(f"a measurement has no option {name!r}; {near}")
        return cls(**given)

    def timeout_s(self, call_timeout_s: float) -> float:
        """Limit in seconds. A batch that is almost long enough is followed by a longer batch."""
        asked_s = self.repeat * (4 * self.min_repeat_ms + self.cooldown_interval_ms) / 1000
        return call_timeout_s + asked_s

    def arguments(self, arity: int, module: Module, name: str, counters: str = "") -> list[Argument]:
        """The evaluator's arguments for a device of this arity: 12, 11, 10 or 8.

        counters: names that a counting evaluator reads beside the time.
        """
        zeros = [self.limit_zero_time_iterations] if arity >= 11 else []
        cooldown = [self.cooldown_interval_ms, self.repeats_to_cooldown] if arity >= _COOLS_DOWN else []
        cache_flush = [0] if arity >= 12 else []
        numbers = [*CPU, self.number, self.repeat, self.min_repeat_ms, *zeros, *cooldown, *cache_flush]
        return [module, name, *numbers, counters]

    def create(self, rpc: RpcClient, module: Module, name: str) -> int:
        """The handle of an evaluator of `name` in `module`.

        Raises RemoteError when the device makes none.
        """
        maker = rpc.global_function(RPC_TIME_EVALUATOR)
        if not maker:
            raise DialectError(f"the device has no {RPC_TIME_EVALUATOR}: it can't time functions")
        known = rpc.facts.evaluator_arity or (_ARITIES[0] if rpc.ours else None)
        refusals: list[RemoteError] = []
        for arity in (known,) if known else _ARITIES:
            try:
                made = rpc.call(maker, self.arguments(arity, module, name), f"time {name}")
            except RemoteError as error:
                refusals.append(error)
                continue
            rpc.facts.evaluator_arity = arity
            if self.cooldown_interval_ms and arity < _COOLS_DOWN:
                warnings.warn(
                    f"time {name}: the device's runtime knows no cool-down, it measures without a rest",
                    stacklevel=3,  # stacklevel: the caller of `RemoteModule.time_evaluator`.
                )
            return _handle_of(made)
        raise refusals[0]


def _handle_of(made: object) -> int:
    if isinstance(made, Function):
        return made.handle
    raise DialectError(f"{RPC_TIME_EVALUATOR} returned {made!r}, which is no function")


@dataclass(frozen=True)
class TimingResult:
    """Results in seconds per call, as TVM's `time_evaluator` gives them.

    results: one for each repeat.
    """

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean of the results."""
        return statistics.fmean(self.results)

    @property
    def median(self) -> float:
        """Median of the results."""
        return statistics.median(self.results)

    @property
    def min(self) -> float:
        """Smallest of the results."""
        return min(self.results)

    @property
    def max(self) -> float:
        """Largest of the results."""
        return max(self.results)

    @property
    def std(self) -> float:
        """Standard deviation of the results, as numpy's std (ddof=0)."""
        return statistics.pstdev(self.results)

    def __str__(self) -> str:
        return (
            f"mean {self.mean:.3e} s, median {self.median:.3e} s, min {self.min:.3e} s, "
            f"max {self.max:.3e} s, std {self.std:.1e} s of {len(self.results)}"
        )


class TimeEvaluator:
    """Measures a function on the device. Call it with the function's own arguments."""

    def __init__(self, measure: Callable[..., Any], name: str, options: EvaluatorOptions) -> None:
        self.name = name
        self.options = options
        self._measure = measure

    def __call__(self, *args: object) -> TimingResult:
        """Measure.

        Raises as `RemoteFunction` does, DialectError when the answer holds no times, and TimerError for
        times that an advancing timer can't give.
        """
        times = self._measure(*args)
        repeat = self.options.repeat
        if not isinstance(times, bytes) or len(times) != 8 * repeat:
            got = f"{len(times)} bytes" if isinstance(times, bytes) else kind_of(times)
            raise DialectError(f"timing {self.name} gave {got} instead of {repeat} times of 8 bytes")
        results = tuple(value for (value,) in iter_unpack("<d", times))
        self._check(results)
        return TimingResult(results)

    def _check(self, results: tuple[float, ...]) -> None:
        """Raise TimerError if the device's timer failed, not if the function is too short for it."""
        shown = ", ".join(f"{result:g}" for result in results)
        if not all(isfinite(result) and result >= 0.0 for result in results):
            raise TimerError(f"timing {self.name}: the device's timer went back: {shown} s")
        if self.options.min_repeat_ms and not any(results):
            wanted = f"batches grew to take {self.options.min_repeat_ms} ms"
            raise TimerError(
                f"timing {self.name}: the device's timer does not advance: {wanted} and took 0 s"
            )

    def __repr__(self) -> str:
        return f"TimeEvaluator({self.name!r}, {self.options})"
