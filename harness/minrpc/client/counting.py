# SPDX-License-Identifier: Apache-2.0
"""Timing in whole cycles, beside TVM's time evaluator: needs a device that runs this project's runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from minrpc.client.rpc import RpcClient
from minrpc.client.timing import EvaluatorOptions
from minrpc.errors import DialectError
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


class Measurer:
    """Measures a function on the device. Call it with the function's own arguments."""

    def __init__(
        self,
        measure: Callable[..., Any],
        name: str,
        options: EvaluatorOptions,
        parse: Callable[[bytes], Measurement],
    ) -> None:
        self.name = name
        self.options = options
        self._measure = measure
        self._parse = parse

    def __call__(self, *args: object) -> Measurement:
        """Measure. Raises as `RemoteFunction` does, and DialectError when anything but samples comes back."""
        return self._parse(_expect_bytes(self._measure(*args), self.name))

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
