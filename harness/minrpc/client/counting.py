# SPDX-License-Identifier: Apache-2.0
"""Timing in whole cycles, beside TVM's time evaluator: needs a device that runs this project's runtime."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import numpy as np

from minrpc.client.device_counters import NO_SLOT, PEAKS, device_counters
from minrpc.client.info import DeviceCounter
from minrpc.client.owner import Counters
from minrpc.client.rpc import RpcClient
from minrpc.client.time_evaluator import EvaluatorOptions
from minrpc.errors import ConfigurationError, DialectError, HarnessError, RemoteError
from minrpc.names import kind_of
from minrpc.timing import Measurement, Overhead
from minrpc.timing.clock import DeviceClock
from minrpc.timing.measurement import MOST, MemoryUse, Sample, parse_samples
from minrpc.wire.requests import free_handle
from minrpc.wire.values import CPU, Function, Module, TypeCode

if TYPE_CHECKING:  # Only for types: the client needs no target.
    from minrpc.targets import Target

COUNTING_EVALUATOR: Final = "minrpc.time_evaluator"

# The functions of these names do nothing; with number 0 they are not even called. The first has TVM's form,
# the second the runtime's own.
_EMPTY: Final = ("", " ")
# An option that the device takes as the name of a counter; it counts nothing.
_MASKED: Final = "interrupts_masked"
# A clock that lost overflows while interrupts were masked shows less than two thirds of the time. Shorter
# batches may differ as much for other reasons.
_LOST: Final = 0.75
_LONG_S: Final = 0.001
_EMPTY_CALLS: Final = 1000
_EMPTY_REPEATS: Final = 15
_EMPTY_PEAKS: Final = 3
# Samples of an empty function: the number of calls, and a counter of the device or none.
EmptySamples = Callable[..., tuple[Sample, ...]]


@dataclass(frozen=True, slots=True)
class Counted:
    """The counters that are read with each repeat.

    source: counts the device from outside (QEMU). names: the counters of `source` to read.
    device: counters that the device reads itself, each with its width in bits.
    memory: peaks of memory that the device reports. If it reports none, `names` has the source's stack
    counter.
    """

    source: Counters | None = None
    names: tuple[str, ...] = ()
    device: Mapping[str, int] = field(default_factory=dict)
    memory: tuple[str, ...] = ()

    @classmethod
    def chosen(cls, rpc: RpcClient, names: Sequence[str] | Literal["all"], *, memory: bool = False) -> Self:
        """Chooses counters of the device and of its outside source by name, or all available.

        Raises ConfigurationError for an unknown name, with the known names, and for memory where neither the
        device nor the source reports it.
        """
        names = _names(names)
        if not names and not memory:
            return cls()
        source = rpc.link.owner.counters
        outside = tuple(source.names) if source else ()
        every = device_counters(rpc)
        own = {counter.name: counter.bits for counter in every.values() if counter.name not in PEAKS}
        wanted = [*outside, *(name for name, bits in own.items() if bits)] if names == "all" else names
        _check_refused(wanted, source)
        wanted = _with_both_ends(wanted, outside)
        _check_names(wanted, outside, own, rpc.link.owner.target)
        peaks = _peaks(every, outside) if memory else ()
        if memory and not peaks:
            wanted = tuple(dict.fromkeys((*wanted, "stack_bytes")))
        return cls(
            source,
            tuple(name for name in wanted if name in outside and name not in peaks),
            {name: own[name] for name in wanted if name not in outside},
            peaks,
        )

    @property
    def asked_of_device(self) -> tuple[str, ...]:
        """The names that the device's evaluator has to read."""
        return (*self.memory, *self.device)

    def added_to(self, measurement: Measurement, batches: Sequence[Mapping[str, int]]) -> Measurement:
        """`measurement` with the counters of each repeat's last batch, whose time was kept."""
        ends = list(accumulate(sample.batches for sample in measurement.samples))
        if not ends or ends[-1] != len(batches):
            run = ends[-1] if ends else 0
            raise HarnessError(f"{run} batches were timed, and {len(batches)} were counted")
        kept = [{name: batches[end - 1][name] for name in self.names} for end in ends]
        samples = [
            replace(sample, columns={**columns, **sample.columns})
            for sample, columns in zip(measurement.samples, kept, strict=True)
        ]
        return replace(measurement, samples=tuple(samples))

    def net_of_empty(self, measurement: Measurement) -> Measurement:
        """`measurement` with the stack's depth less that of an empty function."""
        if "stack_bytes" not in self.names:
            return measurement
        empty = int(measurement.overhead.counters["stack_bytes"][1])
        return measurement.with_stack(lambda depth: max(0, depth - empty))

    def inclusive(self, name: str, address: int | None) -> Mapping[str, tuple[int, int]]:
        """Instructions and cycles of a function's calls so far, as `Counters.inclusive` gives them.

        address: as in `Counters.name_in_tree`.
        """
        if self.source is None or "instructions" not in self.names:
            return {}
        return self.source.inclusive(self.source.name_in_tree(name, address), cycles="cycles" in self.names)

    def doubtful(self, samples: Sequence[Sample]) -> tuple[str, ...]:
        """The device's counters that may have wrapped, assuming that none counts faster than the clock."""
        longest = max(sample.ticks for sample in samples)
        return tuple(name for name, bits in self.device.items() if bits < 64 and longest >> bits)


def _names(given: Sequence[str] | str) -> Sequence[str]:
    """A list of names, or "all". Raises TypeError for other than texts."""
    names = (given,) if isinstance(given, str) and given != "all" else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"counters are a list of names or 'all', not {given!r}")
    return names


def _check_refused(wanted: Sequence[str], source: Counters | None) -> None:
    for name in wanted:
        if source and name in source.refused:
            raise ConfigurationError(
                f"{name} is not available here: {source.refused[name]}", next_step="count instructions"
            )


def _with_both_ends(wanted: Sequence[str], outside: Sequence[str]) -> Sequence[str]:
    """An estimate has both ends: the least and the most."""
    if "cycles" not in wanted or MOST not in outside:
        return wanted
    return list(dict.fromkeys([*wanted, MOST]))


def _check_names(
    wanted: Sequence[str], outside: Sequence[str], own: Mapping[str, int], target: Target | None
) -> None:
    there = [*outside, *(name for name, bits in own.items() if bits)]
    for name in wanted:
        if own.get(name) == 0 and name not in outside:
            raise ConfigurationError(
                f"{name} is not available here: the kernel, the emulator or the core does not count it",
                details=[f"there is {', '.join(there)}"] if there else (),
                next_step="leave it out",
            )
    unknown = [name for name in wanted if name not in there]
    if unknown:
        raise ConfigurationError(
            f"this device has no counter {', '.join(unknown)}",
            details=[f"it has {', '.join(there)}" if there else "nothing counts it"],
            next_step="ask for one of these" if outside else _what_counts(target),
        )


def _what_counts(target: Target | None) -> str:
    """Advice for a device that nothing counts from outside."""
    if target is None:
        return "under QEMU, start it with counters=True, or --counters"
    if target.in_qemu:
        return "start it with counters=True, or --counters"
    return "name a platform that runs under QEMU: see `minrpc platforms`"


def _peaks(every: Mapping[str, DeviceCounter], outside: Sequence[str]) -> tuple[str, ...]:
    peaks = tuple(name for name in PEAKS if name in every)
    if not peaks and "stack_bytes" not in outside:
        raise ConfigurationError(
            "this firmware does not report a call's need of memory",
            next_step="build it with -DMINRPC_COUNTERS=ON, CONFIG_MINRPC_COUNTERS=y on Zephyr",
        )
    return peaks


class Measurer:
    """Measures a function on the device. Call it with the function's own arguments.

    unmasked: the same measurement with interrupts enabled, where this one masks them.
    address: of the C function behind the packed function, if it is known.
    """

    def __init__(
        self,
        evaluator: Callable[[Sequence[str]], Callable[..., Any]],
        name: str,
        options: EvaluatorOptions,
        parse: Callable[[bytes], Measurement],
        counted: Counted,
        empty_stack: Callable[[bool], int],
        overhead: Callable[[bool], Overhead],
        unmasked: Callable[..., Any] | None = None,
        address: int | None = None,
    ) -> None:
        self.name = name
        self._address = address
        self.options = options
        self._evaluator = evaluator
        self._measure = evaluator(counted.asked_of_device)
        self._parse = parse
        self._counted = counted
        self._empty_stack = empty_stack
        self._overhead = overhead
        self._unmasked = unmasked

    def __call__(self, *args: object) -> Measurement:
        """Measure.

        Raises as `RemoteFunction` does, DialectError when the answer holds no samples, and HarnessError when
        the device's clock lost time while interrupts were masked.
        """
        counted = self._counted
        unmasked = self._parsed(self._unmasked(*args), args) if self._unmasked else None
        calls = counted.inclusive(self.name, self._address)
        before = counted.source.windows if counted.source and counted.names else 0
        measured = self._in_groups(counted.asked_of_device, args, self._measure)
        if counted.source and counted.names:
            # The source's counters belong to the first group, whose times are kept.
            batches = counted.source.of_batches(before, counted.names)
            ran = sum(sample.batches for sample in measured.samples)
            inclusive = _per_call(calls, counted.inclusive(self.name, self._address))
            measured = replace(counted.added_to(measured, batches[:ran]), inclusive=inclusive)
            if "cycles" in counted.names:
                measured = replace(measured, estimate=counted.source.estimate)
        if counted.names or counted.device:
            overhead = self._overhead(measured.overhead.native)
            measured = counted.net_of_empty(replace(measured, overhead=overhead))
        if unmasked is not None:
            _require_whole(measured, unmasked)
        if not counted.asked_of_device:
            return measured
        return replace(self._with_memory(measured), doubtful=counted.doubtful(measured.samples))

    def _parsed(self, answer: object, args: Sequence[object]) -> Measurement:
        measured = self._parse(_expect_bytes(answer, self.name))
        return replace(measured, arguments=argument_texts(args))

    def _in_groups(
        self, names: Sequence[str], args: Sequence[object], measure: Callable[..., Any]
    ) -> Measurement:
        """Measures all counters at once if the device can, else one half after the other."""
        try:
            return self._parsed(measure(*args), args)
        except RemoteError as error:
            if NO_SLOT not in str(error) or len(names) < 2:
                raise
        middle = len(names) // 2
        first, then = (
            self._in_groups(half, args, self._evaluator(half)) for half in (names[:middle], names[middle:])
        )
        samples = [
            replace(sample, columns={**sample.columns, **other.columns})
            for sample, other in zip(first.samples, then.samples, strict=True)
        ]
        groups = (
            *(first.groups or (tuple(names[:middle]),)),
            *(then.groups or (tuple(names[middle:]),)),
        )
        return replace(first, samples=tuple(samples), groups=groups)

    def _with_memory(self, measured: Measurement) -> Measurement:
        """Moves peaks out of samples. A call's stack is the smallest sample: others include interrupts."""
        peaks = self._counted.memory
        if not peaks:
            return measured
        seen = {name: [sample.columns[name] for sample in measured.samples] for name in peaks}
        stack = None
        if "stack_bytes" in seen:
            empty = self._empty_stack(measured.overhead.native)
            stack = max(0, min(seen["stack_bytes"]) - empty)
        arena, heap = (max(seen[name]) if name in seen else None for name in ("arena_bytes", "heap_bytes"))
        samples = [
            replace(
                sample, columns={name: value for name, value in sample.columns.items() if name not in peaks}
            )
            for sample in measured.samples
        ]
        return replace(measured, samples=tuple(samples), memory=MemoryUse(stack, arena, heap))

    def __repr__(self) -> str:
        return f"Measurer({self.name!r}, {self.options})"


def argument_texts(args: Sequence[object]) -> tuple[str, ...]:
    """Types and shapes of arrays, "float32[2,3]"; values of numbers; types of other arguments."""
    return tuple(map(_argument_text, args))


def _argument_text(value: object) -> str:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape and dtype is not None:
        return f"{dtype}[{','.join(map(str, shape))}]"
    return str(value) if isinstance(value, int | float | np.number) else type(value).__name__


def _per_call(
    before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]
) -> dict[str, float]:
    since = {name: (total - before[name][0], n - before[name][1]) for name, (total, n) in after.items()}
    return {name: total / calls for name, (total, calls) in since.items() if calls}


def _require_whole(measured: Measurement, unmasked: Measurement) -> None:
    """Raise HarnessError when a clock lost time because the interrupt that counts its overflows was masked.

    Not checked for the host's clock: masking does not stop it, and its times vary.
    """
    clock, due = measured.clock, min(unmasked.ticks_per_call)
    for sample in measured.samples:
        long = due * sample.number >= _LONG_S * clock.ticks_hz
        if clock.mode != "wall" and long and sample.ticks_per_call < _LOST * due:
            seconds = due * sample.number / clock.ticks_hz
            raise HarnessError(
                f"the clock lost time while interrupts were masked for {seconds:.3g} s: "
                "it counts its overflows by an interrupt",
                stage=f"time {measured.name}",
                next_step="time fewer calls in a batch, use less data, or leave out interrupts_masked",
            )


def masked(rpc: RpcClient) -> tuple[str, ...]:
    """The counter name that asks an evaluator to mask interrupts. Raises ConfigurationError."""
    if not device_counters(rpc):
        raise ConfigurationError(
            "this firmware can't mask interrupts while it times",
            next_step="build it with -DMINRPC_COUNTERS=ON, CONFIG_MINRPC_COUNTERS=y on Zephyr",
        )
    return (_MASKED,)


def create_evaluator(
    rpc: RpcClient, module: Module, name: str, options: EvaluatorOptions, counters: Sequence[str] = ()
) -> int:
    """The handle of an evaluator that counts cycles and `counters`.

    Raises RemoteError when the device makes none.
    """
    return _create(rpc, options.arguments(12, module, name, ",".join(counters)), name)


def empty_stack(rpc: RpcClient, module: Module, native: bool) -> int:
    """Bytes of stack that an empty function of the form uses, measured once per session."""
    with rpc.lock:
        if native not in rpc.facts.empty_stack:
            arguments = [module, _EMPTY[native], *CPU, 1, _EMPTY_PEAKS, 0, 0, 0, 1, 0, "stack_bytes"]
            samples = _answer_of(rpc, arguments)
            rpc.facts.empty_stack[native] = min(sample.columns["stack_bytes"] for sample in samples)
        return rpc.facts.empty_stack[native]


def measurement(rpc: RpcClient, module: Module, name: str, answer: bytes) -> Measurement:
    """The measurement of `name` in the device's `answer`. Measures the overhead first, once per session."""
    clock, samples, native = _parse(rpc, answer, name)
    if any(sample.coarse for sample in samples):
        reading = rpc.device_info().clock  # The slower clock's ticks are the unit of such samples.
        clock = replace(clock, coarse_hz=reading.coarse_hz if reading else 0)
    return Measurement(name=name, clock=clock, samples=samples, overhead=overhead(rpc, module, native))


def overhead(rpc: RpcClient, module: Module, native: bool) -> Overhead:
    """The overhead of measuring a function of the form, measured on the device once per session."""
    with rpc.lock:
        known = rpc.facts.overheads.get((native, ()))
        if known is None:
            empty = partial(_empty_samples, rpc, module, _EMPTY[native])
            known = Overhead.measured(empty(0), empty(_EMPTY_CALLS), native=native)
            rpc.facts.overheads[native, ()] = known
        return known


def counter_overhead(
    rpc: RpcClient,
    module: Module,
    counted: Counted,
    native: bool,
) -> Overhead:
    """The overhead with that of the counters, measured on the device once per session."""
    names = (*counted.names, *counted.device)
    with rpc.lock:
        known = rpc.facts.overheads.get((native, names))
        if known is None:
            empty = partial(_empty_samples, rpc, module, _EMPTY[native])
            samples = (_counted_samples(empty, number, counted) for number in (0, _EMPTY_CALLS))
            known = overhead(rpc, module, native).with_counters(*samples)
            rpc.facts.overheads[native, names] = known
        return known


def _counted_samples(empty: EmptySamples, number: int, counted: Counted) -> list[Sample]:
    """Samples of the empty function with all counters; the device may have room for only one of its own."""
    source = counted.source
    before = source.windows if source else 0
    samples = list(empty(number))
    batches = source.of_batches(before, counted.names) if source and counted.names else [{} for _ in samples]
    each = [empty(number, name) for name in counted.device]
    return [
        replace(sample, columns=dict(ChainMap(batch, *(dict(one.columns) for one in own))))
        for sample, batch, *own in zip(samples, batches, *each, strict=True)
    ]


def _empty_samples(
    rpc: RpcClient, module: Module, name: str, number: int, counter: str = ""
) -> tuple[Sample, ...]:
    return _answer_of(rpc, [module, name, *CPU, number, _EMPTY_REPEATS, 0, 0, 0, 1, 0, counter])


def _answer_of(rpc: RpcClient, arguments: list[Any]) -> tuple[Sample, ...]:
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


def _parse(rpc: RpcClient, answer: bytes, name: str) -> tuple[DeviceClock, tuple[Sample, ...], bool]:
    try:
        return parse_samples(answer, rpc.link.owner.timebase)
    except ValueError as error:
        raise DialectError(f"timing {name}: {error}") from error


def _expect_bytes(answer: object, name: str) -> bytes:
    if isinstance(answer, bytes):
        return answer
    raise DialectError(f"timing {name} gave {kind_of(answer)} instead of samples")
