# SPDX-License-Identifier: Apache-2.0
"""A device's counts for a timed function: whole cycles, since seconds would be rounded."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from struct import Struct
from typing import Final, Self

from minrpc.timing.clock import DeviceClock, Timebase
from minrpc.timing.summary import Summary, summarize

# The device's answer, little-endian, as zephyr-app/runtime/evaluator.c writes it: a header (version, size,
# the rows' stride, how many further columns; the clock's rate), the columns' names, a row for each repeat.
_HEADER: Final = Struct("<4HQ")
_RECORD: Final = Struct("<QII")
_COLUMN: Final = Struct("<Q")
_COARSE: Final = 1 << 31
# Number of different readings that have a common divisor by chance at most once in a thousand times.
_ENOUGH: Final = 10
# Largest alignment of the stack on the supported processors, in bytes.
_ALIGNMENT: Final = 16
# Counters whose value is not a sum over the calls.
PEAKS: Final = frozenset({"stack_bytes"})
MOST: Final = "cycles_most"
"""The upper end of the counter "cycles", which is an estimate; "cycles" is its lower end."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One repeat: the first batch that was long enough.

    cycles: cycles of all calls together, with the timer's own start and stop.
    number: calls in it.
    batches: the number of batches until one was long enough; this sample is the last.
    coarse: the cycle counter could not be trusted, and the device's slower clock was used instead.
    columns: further counters of the device over the same calls, by name.
    """

    cycles: int
    number: int
    batches: int = 1
    coarse: bool = False
    columns: Mapping[str, int] = field(default_factory=dict)

    @property
    def cycles_per_call(self) -> float:
        """Cycles per call, with its share of the overhead; for a batch without calls, the whole batch."""
        return self.cycles / (self.number or 1)


@dataclass(frozen=True, slots=True)
class Overhead:
    """The cost of measuring, in cycles, measured on the device itself.

    timer: starting and stopping the timer, once in each sample.
    call: one turn of the evaluator's loop with a call of an empty function. The compiler interleaves the two,
        so they are one number.
    step: smallest advance of the clock that was observed, in counts; many clocks are coarser than their unit.
    """

    timer: float
    call: float
    step: int = 1

    @classmethod
    def measured(cls, no_calls: Sequence[Sample], empty_calls: Sequence[Sample]) -> Self:
        """The overhead, from samples of number 0, and of an empty function."""
        timer = statistics.median(sample.cycles for sample in no_calls)
        calls = ((sample.cycles - timer) / sample.number for sample in empty_calls)
        step = clock_step([sample.cycles for sample in (*no_calls, *empty_calls)])
        return cls(timer, max(0.0, statistics.median(calls)), step)

    def of(self, sample: Sample) -> float:
        """The overhead within `sample`, in cycles per call."""
        return self.timer / sample.number + self.call


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

    @cached_property
    def cycles_per_call(self) -> tuple[float, ...]:
        """One value for each repeat."""
        if not self.subtracted:
            return tuple(sample.cycles_per_call for sample in self.samples)
        return tuple(sample.cycles_per_call - self.overhead.of(sample) for sample in self.samples)

    @property
    def seconds_per_call(self) -> tuple[float, ...]:
        """One value for each repeat."""
        return tuple(self.clock.seconds(cycles) for cycles in self.cycles_per_call)

    @cached_property
    def counters(self) -> dict[str, tuple[int, ...]]:
        """Further counters by name: one value for each repeat, of all its calls together."""
        names = self.samples[0].columns
        return {name: tuple(sample.columns[name] for sample in self.samples) for name in names}

    @staticmethod
    def per_call(name: str, sample: Sample) -> float:
        """A counter's value per call of `sample`; a peak is the peak of all its calls."""
        return sample.columns[name] / (1 if name in PEAKS else sample.number or 1)

    def counter_per_call(self, name: str) -> float:
        """A counter's typical value per call: the smallest if times are exact, else the median.

        The evaluator's own loop is in it: some instructions a call, and the cost of calling.
        """
        values = [self.per_call(name, sample) for sample in self.samples]
        return min(values) if self.clock.exact else statistics.median(values)

    @property
    def resolution_cycles(self) -> float:
        """The largest effect of one clock step, in cycles per call."""
        step = max(self.overhead.step, self.clock.step_cycles)
        return max(step / (sample.number or 1) for sample in self.samples)

    @cached_property
    def summary(self) -> Summary:
        """Statistics of the cycles per call."""
        return summarize(self.cycles_per_call, self.resolution_cycles)

    @property
    def typical_cycles(self) -> float:
        """Cycles per call: if times are exact, the shortest repeat (fewest interrupts), else the median."""
        return self.summary.min if self.clock.exact else self.summary.median

    @property
    def instructions(self) -> float | None:
        """The median of the instructions per call; None where they are not known."""
        each = self.clock.cycles_per_instruction
        return None if each is None else self.summary.median / float(each)

    @property
    def coarse(self) -> bool:
        """True if the device fell back on its slower clock in any repeat."""
        return any(sample.coarse for sample in self.samples)

    def net(self) -> Self:
        """The same measurement without the overhead of measuring. It may be below 0 because of noise."""
        return replace(self, subtracted=True)

    def joined(self, more: Measurement) -> Self:
        """This measurement with the samples of `more` after its own; both have the same counters."""
        memory = self.memory and more.memory and self.memory.joined(more.memory)
        return replace(
            self,
            clock=replace(self.clock, coarse_hz=self.clock.coarse_hz or more.clock.coarse_hz),
            samples=self.samples + more.samples,
            memory=memory or self.memory or more.memory,
            groups=self.groups or more.groups,
            doubtful=tuple(dict.fromkeys((*self.doubtful, *more.doubtful))),
        )


def clock_step(cycles: Sequence[int]) -> int:
    """The clock's step, in counts: the common divisor of many different readings.

    A few different readings may have a common divisor by chance: the result is 1 then.
    """
    different = set(cycles)
    return max(1, math.gcd(*different)) if len(different) >= _ENOUGH else 1


def parse_samples(answer: bytes, timebase: Timebase) -> tuple[DeviceClock, tuple[Sample, ...]]:
    """The measurement in the device's answer. Raises ValueError if the answer's layout is wrong or it has no
    rate."""
    if len(answer) < _HEADER.size:
        raise ValueError(f"{len(answer)} bytes are no list of samples")
    _, size, stride, columns, cycles_hz = _HEADER.unpack_from(answer)
    rows = len(answer) - size
    if size < _HEADER.size or stride < _RECORD.size + columns * _COLUMN.size or rows <= 0 or rows % stride:
        layout = f"{size} of header, rows of {stride}, {columns} columns"
        raise ValueError(f"{len(answer)} bytes are no list of samples: {layout}")
    if cycles_hz == 0:
        raise ValueError("the device's clock has no rate")
    names = answer[_HEADER.size : size].decode("ascii", "backslashreplace").split("\0")[:columns]
    if len(names) < columns or not all(names):
        raise ValueError(f"{columns} columns, and the names {names}")
    starts = range(size, len(answer), stride)
    return timebase.clock(cycles_hz), tuple(_sample(answer, start, names) for start in starts)


def _sample(answer: bytes, start: int, names: Sequence[str]) -> Sample:
    cycles, number, batches = _RECORD.unpack_from(answer, start)
    offsets = (start + _RECORD.size + i * _COLUMN.size for i in range(len(names)))
    columns = {name: _COLUMN.unpack_from(answer, at)[0] for name, at in zip(names, offsets, strict=True)}
    return Sample(cycles, number, batches & ~_COARSE, bool(batches & _COARSE), columns)
