# SPDX-License-Identifier: Apache-2.0
"""Timing in whole cycles, beside TVM's time evaluator: needs a device that runs this project's runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final, Literal, Self

from minrpc.client.owner import Counters
from minrpc.client.rpc import RpcClient
from minrpc.client.timing import EvaluatorOptions
from minrpc.errors import ConfigurationError, DialectError, HarnessError
from minrpc.timing import Measurement, Overhead
from minrpc.timing.clock import DeviceClock
from minrpc.timing.measurement import Sample, parse_samples
from minrpc.wire.requests import free_handle
from minrpc.wire.values import CPU, Function, Module, TypeCode

COUNTING_EVALUATOR: Final = "minrpc.time_evaluator"

# The function of this name does nothing; with number 0 not even it is called.
_EMPTY: Final = ""
_EMPTY_CALLS: Final = 1000
_EMPTY_REPEATS: Final = 15


@dataclass(frozen=True, slots=True)
class Counted:
    """Which counters of what counts the device from outside go with each repeat."""

    source: Counters
    names: tuple[str, ...]

    @classmethod
    def chosen(cls, source: Counters | None, names: Sequence[str] | Literal["all"]) -> Self | None:
        """Those of `source` by name, or all; None where none was asked for.

        Raises ConfigurationError for a name that is not there, with those that are.
        """
        there = tuple(source.names) if source else ()
        wanted = there if names == "all" else tuple(names)
        unknown = [name for name in wanted if name not in there]
        if unknown:
            raise ConfigurationError(
                f"this device has no counter {', '.join(unknown)}",
                details=[f"it has {', '.join(there)}" if there else "nothing counts it"],
                next_step=None if there else "under QEMU, start it with counters=True, or --counters",
            )
        return cls(source, wanted) if source and wanted else None

    def added_to(self, measurement: Measurement, batches: Sequence[Mapping[str, int]]) -> Measurement:
        """`measurement` with the counters of each repeat's last batch, the one that was kept."""
        ends = list(accumulate(sample.batches for sample in measurement.samples))
        if not ends or ends[-1] != len(batches):
            run = ends[-1] if ends else 0
            raise HarnessError(f"{run} batches were timed, and {len(batches)} were counted")
        kept = [{name: batches[end - 1][name] for name in self.names} for end in ends]
        samples = [
            replace(sample, columns={**sample.columns, **columns})
            for sample, columns in zip(measurement.samples, kept, strict=True)
        ]
        return replace(measurement, samples=tuple(samples))


class Measurer:
    """Measures a function on the device. Call it with the function's own arguments."""

    def __init__(
        self,
        measure: Callable[..., Any],
        name: str,
        options: EvaluatorOptions,
        parse: Callable[[bytes], Measurement],
        counted: Counted | None = None,
    ) -> None:
        self.name = name
        self.options = options
        self._measure = measure
        self._parse = parse
        self._counted = counted

    def __call__(self, *args: object) -> Measurement:
        """Measure. Raises as `RemoteFunction` does, and DialectError when anything but samples comes back."""
        if self._counted is None:
            return self._parse(_expect_bytes(self._measure(*args), self.name))
        before = self._counted.source.windows
        answer = _expect_bytes(self._measure(*args), self.name)
        # Before the overhead is measured, in batches of its own.
        batches = self._counted.source.of_batches(before)
        return self._counted.added_to(self._parse(answer), batches)

    def __repr__(self) -> str:
        return f"Measurer({self.name!r}, {self.options})"


def create_evaluator(rpc: RpcClient, module: Module, name: str, options: EvaluatorOptions) -> int:
    """The handle of an evaluator that counts cycles. Raises RemoteError when the device makes none."""
    return _create(rpc, options.arguments(12, module, name), name)


def measurement(rpc: RpcClient, module: Module, name: str, answer: bytes) -> Measurement:
    """What the device's `answer` says about `name`. Measures the overhead first, once in a session."""
    clock, samples = _parse(rpc, answer, name)
    if any(sample.coarse for sample in samples):
        clock = replace(clock, coarse_hz=_coarse_hz(rpc))
    return Measurement(name=name, clock=clock, samples=samples, overhead=overhead(rpc, module))


def _coarse_hz(rpc: RpcClient) -> int:
    """The rate of the slower clock, in whose ticks such samples are."""
    reading = rpc.device_info().clock
    return reading.coarse_hz if reading else 0


def overhead(rpc: RpcClient, module: Module) -> Overhead:
    """What measuring costs on this device: measured on it, once in a session."""
    with rpc.lock:
        if rpc.facts.overhead is None:
            timer, calls = (_empty_samples(rpc, module, number) for number in (0, _EMPTY_CALLS))
            rpc.facts.overhead = Overhead.measured(timer, calls)
        return rpc.facts.overhead


def _empty_samples(rpc: RpcClient, module: Module, number: int) -> tuple[Sample, ...]:
    arguments = [module, _EMPTY, *CPU, number, _EMPTY_REPEATS, 0, 0, 0, 1, 0, ""]
    handle = _create(rpc, arguments, "the empty function")
    stage = "measure the overhead"
    try:
        return _parse(rpc, _expect_bytes(rpc.call(handle, (), stage), stage), stage)[1]
    finally:
        rpc.release(rpc.generation, free_handle(handle, TypeCode.FUNCTION))


def _create(rpc: RpcClient, arguments: list[Any], name: str) -> int:
    maker = rpc.global_function(COUNTING_EVALUATOR)
    if not maker:
        raise DialectError(
            f"the device has no {COUNTING_EVALUATOR}: it can't count cycles",
            next_step="use time_evaluator, which gives seconds",
        )
    made = rpc.call(maker, arguments, f"time {name}")
    if not isinstance(made, Function):
        raise DialectError(f"{COUNTING_EVALUATOR} returned {made!r}, which is no function")
    return made.handle


def _parse(rpc: RpcClient, answer: bytes, name: str) -> tuple[DeviceClock, tuple[Sample, ...]]:
    try:
        return parse_samples(answer, rpc.link.owner.timebase)
    except ValueError as error:
        raise DialectError(f"timing {name}: {error}") from error


def _expect_bytes(answer: object, name: str) -> bytes:
    if isinstance(answer, bytes):
        return answer
    raise DialectError(f"timing {name} gave a {type(answer).__name__} instead of samples")
