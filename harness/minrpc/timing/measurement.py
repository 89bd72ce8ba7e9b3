# SPDX-License-Identifier: Apache-2.0
"""A device's counts for a timed function: whole ticks, since seconds would be rounded."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from struct import Struct
from typing import Final, Literal, Self

from minrpc.errors import ConfigurationError
from minrpc.timing.clock import DeviceClock, Timebase
from minrpc.timing.summary import Summary, summarize

# The device's answer, little-endian, as zephyr-app/runtime/evaluator.c writes it: a header (version, size,
# the rows' stride, how many further columns; the clock's rate), the columns' names, a row for each repeat.
_HEADER: Final = Struct("<BB3HQ")
_RECORD: Final = Struct("<QII")
_COLUMN: Final = Struct("<Q")
_COARSE: Final = 1 << 31
# Number of different readings that have a common divisor by chance at most once in a thousand times.
_ENOUGH: Final = 10
# Largest alignment of the stack on the supported processors, in bytes.
_ALIGNMENT: Final = 16
# Counters whose value is not a sum over the calls, and already without an empty function's.
PEAKS: Final = frozenset({"stack_bytes"})
Batches = Sequence[tuple[int, int]]
"""The value and the number of calls of each batch."""
MOST: Final = "cycles_most"
"""The upper end of the counter "cycles", which is an estimate; "cycles" is its lower end."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One repeat: the first batch that was long enough.

    ticks: ticks of all calls together, with the timer's own start and stop.
    number: calls in it.
    batches: the number of batches until one was long enough; this sample is the last.
    coarse: the cycle counter could not be trusted, and the device's slower clock was used instead.
    columns: further counters of the device over the same calls, by name.
    process: number of the start of the device in which it was measured, counted from 0.
    """

    ticks: int
    number: int
    batches: int = 1
    coarse: bool = False
    columns: Mapping[str, int] = field(default_factory=dict)
    process: int = 0

    @property
    def ticks_per_call(self) -> float:
        """Cycles per call, with its share of the overhead; for a batch without calls, the whole batch."""
        return self.ticks / (self.number or 1)


@dataclass(frozen=True, slots=True)
class Overhead:
    """The cost of measuring, in ticks, measured on the device itself.

    timer: starting and stopping the timer, once in each sample.
    call: one turn of the evaluator's loop with a call of an empty function. The compiler interleaves the two,
        so they are one number.
    step: smallest advance of the clock that was observed, in counts; many clocks are coarser than their unit.
    counters: the same two numbers of each further counter, in its unit.
    native: True if the empty function is of the runtime's own form; False for TVM's, also loaded C's. A
        device is asked by it; records do not keep it.
    """

    timer: float
    call: float
    step: int = 1
    counters: Mapping[str, tuple[float, float]] = field(default_factory=dict, hash=False)
    native: bool = field(default=False, compare=False)

    @classmethod
    def measured(
        cls, no_calls: Sequence[Sample], empty_calls: Sequence[Sample], *, native: bool = False
    ) -> Self:
        """The overhead, from samples of number 0, and of an empty function."""
        step = clock_step([sample.ticks for sample in (*no_calls, *empty_calls)])
        values = (
            [(sample.ticks, sample.number) for sample in samples] for samples in (no_calls, empty_calls)
        )
        return cls(*_overhead(*values), step, native=native)

    def with_counters(self, no_calls: Sequence[Sample], empty_calls: Sequence[Sample]) -> Self:
        """The overhead with that of the samples' counters, by the same rule; of a peak, an empty call's."""
        counters = {name: _counter_overhead(name, no_calls, empty_calls) for name in empty_calls[0].columns}
        return replace(self, counters=counters)

    def of(self, sample: Sample, counter: str = "") -> float:
        """The overhead within `sample`, per call, in ticks, or of a counter in its unit."""
        timer, call = self.counters[counter] if counter else (self.timer, self.call)
        return timer / (sample.number or 1) + call


def _counter_overhead(
    name: str, no_calls: Sequence[Sample], empty_calls: Sequence[Sample]
) -> tuple[float, float]:
    if name in PEAKS:
        return 0.0, float(min(sample.columns[name] for sample in empty_calls))
    samples = (no_calls, empty_calls)
    return _overhead(*([(sample.columns[name], sample.number) for sample in each] for each in samples))


def _overhead(no_calls: Batches, empty_calls: Batches) -> tuple[float, float]:
    """Cost of a batch without calls, and the further cost of each call of an empty function."""
    timer = statistics.median(value for value, _ in no_calls)
    return timer, max(0.0, statistics.median((value - timer) / number for value, number in empty_calls))


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Largest number of bytes that one call needed; None if the device can't report it.

    stack: of the function and its callees, minus the need of an empty function.
    arena: workspace, above the level before. heap: likewise, of the C library's or the kernel's.
    bound: the compiler's bound for the stack of the function and its callees; None if unknown. If the
        measured stack is larger, one of the two is wrong.
    """

    stack: int | None = None
    arena: int | None = None
    heap: int | None = None
    bound: int | None = None

    @property
    def beyond_bound(self) -> bool:
        """True if the measured stack exceeds the compiler's bound.

        The measurement finds written bytes: it can be too large by bytes at the end of a caller's frame that
        are never written.
        """
        return self.stack is not None and self.bound is not None and self.stack > self.bound + _ALIGNMENT

    @property
    def within_bound(self) -> bool:
        """True if the measured stack is below the compiler's bound: part of the stack was not written or not
        needed."""
        return self.stack is not None and self.bound is not None and self.stack + _ALIGNMENT < self.bound

    def joined(self, more: MemoryUse) -> MemoryUse:
        """Combines both: the smaller stack, since interrupts add to the stack, and the larger of the other
        values."""
        return replace(
            self,
            stack=_of_known(min, self.stack, more.stack),
            arena=_of_known(max, self.arena, more.arena),
            heap=_of_known(max, self.heap, more.heap),
        )


def _of_known(choose: Callable[[int, int], int], first: int | None, other: int | None) -> int | None:
    if first is None or other is None:
        return other if first is None else first
    return choose(first, other)


@dataclass(frozen=True, slots=True)
class MeasuredCode:
    """The machine code of a measured function.

    function_bytes: of the function itself, without its callees; 0 where that is not known.
    symbols: bytes by symbol of the code that was loaded for the call, if any.
    compiler, flags: of that code, from its debug information and its caller; "" if unknown.
    """

    function_bytes: int = 0
    symbols: Mapping[str, int] = field(default_factory=dict, hash=False)
    compiler: str = ""
    flags: str = ""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """A function's timing on one device; units are in the names.

    samples: one for each repeat, in the order they were taken, as the device counted them.
    overhead: the cost of measuring on this device.
    subtracted: True if the overhead is subtracted from figures per call; never from `samples`.
    memory: memory that a call needed, if it was requested.
    groups: counters that were measured one group after another, as the device could not count all at once.
    doubtful: counters so narrow that they may have wrapped within a repeat.
    estimate: the source of the counter "cycles", and its error against hardware; "" without it.
    inclusive: instructions, and estimated "cycles", per call of the function with its callees, without the
        cost of calling it and without interrupts; empty where nothing counts them.
    arguments: types and shapes of arrays, values of numbers. code: the function's machine code, if known.
    """

    name: str
    clock: DeviceClock
    samples: tuple[Sample, ...]
    overhead: Overhead
    subtracted: bool = False
    memory: MemoryUse | None = None
    groups: tuple[tuple[str, ...], ...] = ()
    doubtful: tuple[str, ...] = ()
    estimate: str = ""
    inclusive: Mapping[str, float] = field(default_factory=dict, hash=False)
    arguments: tuple[str, ...] = ()
    code: MeasuredCode = MeasuredCode()

    @cached_property
    def ticks_per_call(self) -> tuple[float, ...]:
        """One value for each repeat."""
        if not self.subtracted:
            return tuple(sample.ticks_per_call for sample in self.samples)
        return tuple(sample.ticks_per_call - self.overhead.of(sample) for sample in self.samples)

    @property
    def seconds_per_call(self) -> tuple[float, ...]:
        """One value for each repeat."""
        return tuple(self.clock.seconds(ticks) for ticks in self.ticks_per_call)

    @cached_property
    def counters(self) -> dict[str, tuple[int, ...]]:
        """Further counters by name: one value for each repeat, of all its calls together."""
        names = self.samples[0].columns
        return {name: tuple(sample.columns[name] for sample in self.samples) for name in names}

    def per_call(self, name: str, sample: Sample) -> float:
        """A counter's value per call of `sample`, net if this measurement is; a peak is that of all calls."""
        gross = sample.columns[name] / (1 if name in PEAKS else sample.number or 1)
        return gross - self.overhead.of(sample, name) if self.subtracted and name not in PEAKS else gross

    def counter_per_call(self, name: str) -> float:
        """A counter's typical value per call: the smallest if times are exact, else the median.

        Unless this measurement is net, it has the cost of calling, and its share of starting the counters.
        """
        values = [self.per_call(name, sample) for sample in self.samples]
        return min(values) if self.clock.exact else statistics.median(values)

    @cached_property
    def processes(self) -> int:
        """The number of starts of the device that the samples are of."""
        return len({sample.process for sample in self.samples})

    @property
    def summarized_by(self) -> Literal["repeat", "process"]:
        """The source of each value in `summarized`."""
        return "repeat" if self.processes == 1 or self.clock.exact else "process"

    @cached_property
    def summarized(self) -> tuple[float, ...]:
        """The ticks per call that the summary is of: of each repeat, or the median of each of several starts.

        On a host's clock repeats of one process are alike, and differ from another process's.
        """
        if self.summarized_by == "repeat":
            return self.ticks_per_call
        starts: dict[int, list[float]] = {}
        for sample, ticks in zip(self.samples, self.ticks_per_call, strict=True):
            starts.setdefault(sample.process, []).append(ticks)
        return tuple(statistics.median(each) for each in starts.values())

    @property
    def resolution_ticks(self) -> float:
        """The largest effect of one clock step, in ticks per call."""
        step = max(self.overhead.step, self.clock.step_ticks)
        return max(step / (sample.number or 1) for sample in self.samples)

    @cached_property
    def summary(self) -> Summary:
        """Statistics of the ticks per call, `summarized`."""
        return summarize(self.summarized, self.resolution_ticks)

    @property
    def typical_ticks(self) -> float:
        """Cycles per call: if times are exact, the shortest repeat (fewest interrupts), else the median."""
        return self.summary.min if self.clock.exact else self.summary.median

    @property
    def instructions(self) -> float | None:
        """The median of the instructions per call; None where they are not known."""
        each = self.clock.ticks_per_instruction
        return None if each is None else self.summary.median / float(each)

    @property
    def coarse(self) -> bool:
        """True if the device fell back on its slower clock in any repeat."""
        return any(sample.coarse for sample in self.samples)

    def with_stack(self, change: Callable[[int], int]) -> Self:
        """The same measurement with the stack's depth changed: the counter's, and `memory`'s, where known."""
        memory = self.memory
        if memory is not None and memory.stack is not None:
            memory = replace(memory, stack=change(memory.stack))
        if "stack_bytes" not in self.counters:
            return replace(self, memory=memory)
        columns = [dict(sample.columns) for sample in self.samples]
        for each in columns:
            each["stack_bytes"] = change(each["stack_bytes"])
        changed = zip(self.samples, columns, strict=True)
        samples = tuple(replace(sample, columns=each) for sample, each in changed)
        return replace(self, samples=samples, memory=memory)

    def net(self) -> Self:
        """The same measurement without the overhead of measuring, in time and in all counters.

        A value may be below 0 because of noise. Raises ConfigurationError for counters whose overhead is not
        known, such as a meter's readings.
        """
        unknown = self.counters.keys() - self.overhead.counters.keys() - PEAKS
        if unknown:
            raise ConfigurationError(
                f"the overhead of {', '.join(sorted(unknown))} is not known: there is no net value",
                next_step="measure without it, or use gross values",
            )
        return replace(self, subtracted=True)

    def of_process(self, process: int) -> Self:
        """The same measurement, of another start of the device."""
        return replace(self, samples=tuple(replace(sample, process=process) for sample in self.samples))

    def joined(self, more: Measurement) -> Self:
        """This measurement with the samples of `more` after its own; both have the same counters."""
        memory = self.memory and more.memory and self.memory.joined(more.memory)
        calls, further = (sum(sample.number for sample in item.samples) or 1 for item in (self, more))
        return replace(
            self,
            clock=replace(self.clock, coarse_hz=self.clock.coarse_hz or more.clock.coarse_hz),
            samples=self.samples + more.samples,
            memory=memory or self.memory or more.memory,
            groups=self.groups or more.groups,
            inclusive={
                name: (self.inclusive[name] * calls + more.inclusive[name] * further) / (calls + further)
                for name in self.inclusive
                if name in more.inclusive
            },
            doubtful=tuple(dict.fromkeys((*self.doubtful, *more.doubtful))),
        )


def clock_step(ticks: Sequence[int]) -> int:
    """The clock's step, in counts: the common divisor of many different readings.

    A few different readings may have a common divisor by chance: the result is 1 then.
    """
    different = set(ticks)
    return max(1, math.gcd(*different)) if len(different) >= _ENOUGH else 1


def parse_samples(answer: bytes, timebase: Timebase) -> tuple[DeviceClock, tuple[Sample, ...], bool]:
    """The measurement in the device's answer, and True if the function is of the runtime's own form.

    Raises ValueError if the answer's layout is wrong or it has no rate.
    """
    if len(answer) < _HEADER.size:
        raise ValueError(f"{len(answer)} bytes are no list of samples")
    _, native, size, stride, columns, ticks_hz = _HEADER.unpack_from(answer)
    rows = len(answer) - size
    if size < _HEADER.size or stride < _RECORD.size + columns * _COLUMN.size or rows <= 0 or rows % stride:
        layout = f"{size} of header, rows of {stride}, {columns} columns"
        raise ValueError(f"{len(answer)} bytes are no list of samples: {layout}")
    if ticks_hz == 0:
        raise ValueError("the device's clock has no rate")
    names = answer[_HEADER.size : size].decode("ascii", "backslashreplace").split("\0")[:columns]
    if len(names) < columns or not all(names):
        raise ValueError(f"{columns} columns, and the names {names}")
    starts = range(size, len(answer), stride)
    return timebase.clock(ticks_hz), tuple(_sample(answer, start, names) for start in starts), bool(native)


def _sample(answer: bytes, start: int, names: Sequence[str]) -> Sample:
    ticks, number, batches = _RECORD.unpack_from(answer, start)
    offsets = (start + _RECORD.size + i * _COLUMN.size for i in range(len(names)))
    columns = {name: _COLUMN.unpack_from(answer, at)[0] for name, at in zip(names, offsets, strict=True)}
    return Sample(ticks, number, batches & ~_COARSE, bool(batches & _COARSE), columns)
