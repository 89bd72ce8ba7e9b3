# SPDX-License-Identifier: Apache-2.0
"""Deadlines that a busy host can't break.

A deadline charges the time that the device could use: the emulator's running time plus its sleeping time. It
does not charge the time that the emulator or this process waits for a processor. On a board it charges wall
time. A total deadline in wall time limits all stages together, so that nothing waits for ever.

Reading the kernel's counters (`ProcessClock`, `WallClock`) is apart from the arithmetic (`charged_between`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from minrpc.errors import DeadlineError

_CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")

# A deadline may start from a sample of this age, so that calls in quick succession do not each read /proc.
_SAMPLE_AGE_S = 0.25
_SAMPLE_SHARE = 0.02
_LINE_BYTES = 4096
# Seconds that a read may wait before it checks its deadline.
_SOON_S = 0.01


@dataclass(frozen=True, slots=True)
class ClockSample:
    """A clock's readings at one instant; all times in seconds, all but `runnable` only ever grow.

    wall_s: monotonic host time.
    cpu_s: CPU time that the device's process has used, all threads together.
    queued_s: time that it waited for a processor; None where the kernel does not count that.
    runnable: True when one of its threads was running or waited for a processor.
    """

    wall_s: float
    cpu_s: float = 0.0
    queued_s: float | None = 0.0
    runnable: bool = False


def charged_between(start: ClockSample, end: ClockSample) -> float:
    """Seconds to charge from `start` to `end`: at most the wall time between them, at least the device's
    running time.

    The waits of the device and of this process overlap, so their sum may exceed the wall time.
    """
    wall = max(0.0, end.wall_s - start.wall_s)
    ran = min(wall, max(0.0, end.cpu_s - start.cpu_s))
    if end.runnable:  # The kernel counts a wait only when it is over, and the device may wait now.
        return ran
    if start.queued_s is None or end.queued_s is None:
        return wall
    return max(ran, wall - max(0.0, end.queued_s - start.queued_s))


class Clock(Protocol):
    """Reads the time that a deadline charges."""

    def now(self) -> float:
        """Seconds since a fixed instant, in the caller's wall time."""

    def sample(self, max_age_s: float = 0.0) -> ClockSample:
        """A reading of the clock; may be an earlier reading, up to `max_age_s` old."""


class WallClock:
    """Plain host time, for boards and for the total deadline."""

    def now(self) -> float:
        return time.monotonic()

    def sample(self, max_age_s: float = 0.0) -> ClockSample:
        return ClockSample(time.monotonic())


@dataclass(frozen=True, slots=True)
class ThreadTimes:
    """One thread's counters. queued_s: None if the kernel does not count it."""

    cpu_s: float
    queued_s: float | None
    runnable: bool = False


def parse_stat(stat: bytes) -> ThreadTimes:
    """Parses /proc/PID/task/TID/stat: fields 3, 14 and 15 of proc(5)."""
    fields = stat[stat.rindex(b")") + 2 :].split()
    ticks = int(fields[11]) + int(fields[12])
    return ThreadTimes(ticks / _CLOCK_TICKS_PER_S, None, fields[0] in (b"R", b"D"))


def parse_schedstat(schedstat: bytes) -> ThreadTimes:
    """Parses /proc/PID/task/TID/schedstat: nanoseconds run, nanoseconds queued, time slices."""
    run, queued, *_ = schedstat.split()
    return ThreadTimes(int(run) / 1e9, int(queued) / 1e9)


def read_thread(task: str) -> ThreadTimes | None:
    """The counters of the thread below `task` (/proc/PID/task/TID), or None when it has ended."""
    try:
        times = parse_stat(_line(f"{task}/stat"))
    except (FileNotFoundError, ProcessLookupError):
        return None
    try:
        counted = parse_schedstat(_line(f"{task}/schedstat"))
    except (FileNotFoundError, ProcessLookupError):
        return times
    return ThreadTimes(counted.cpu_s, counted.queued_s, times.runnable)


def _line(path: str) -> bytes:
    """The first line of a file of /proc. Fast: called for each thread, whenever a deadline begins."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _LINE_BYTES)
    finally:
        os.close(descriptor)


def read_threads(pid: int) -> dict[int, ThreadTimes]:
    """The counters of every thread of `pid`, by thread id; empty when it has ended."""
    tasks = f"/proc/{pid}/task"
    try:
        ids = os.listdir(tasks)
    except (FileNotFoundError, ProcessLookupError):
        return {}
    times = {int(tid): read_thread(f"{tasks}/{tid}") for tid in ids}
    return {tid: spent for tid, spent in times.items() if spent is not None}


class _Queueing:
    """Adds up one process's queued time: between two readings only its longest waiting thread counts."""

    def __init__(self) -> None:
        self._before: dict[int, float] = {}
        self._total = 0.0

    def add(self, threads: Mapping[int, ThreadTimes]) -> float | None:
        queued = {tid: thread.queued_s for tid, thread in threads.items() if thread.queued_s is not None}
        if len(queued) < len(threads):
            return None
        self._total += max((now - self._before.get(tid, now) for tid, now in queued.items()), default=0.0)
        self._before = queued
        return self._total


class ProcessClock:
    """The time of the process `pid`, and of this process, which must run to see an answer."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._device, self._own = _Queueing(), _Queueing()
        self._last: ClockSample | None = None

    def now(self) -> float:
        return time.monotonic()

    def sample(self, max_age_s: float = 0.0) -> ClockSample:
        if self._last is None or time.monotonic() - self._last.wall_s > max_age_s:
            self._last = self._read()
        return self._last

    def _read(self) -> ClockSample:
        threads = read_threads(self._pid)
        queued = (self._device.add(threads), self._own.add(read_threads(os.getpid())))
        return ClockSample(
            wall_s=time.monotonic(),
            cpu_s=sum(thread.cpu_s for thread in threads.values()),
            queued_s=None if queued[0] is None or queued[1] is None else queued[0] + queued[1],
            runnable=any(thread.runnable for thread in threads.values()),
        )


class Deadline:
    """`budget_s` seconds of the time that `charge` counts, for one stage.

    stage: a name for messages, "boot", "session", "call add".
    charge: the device's clock; None for wall time.
    total: a second deadline, which also ends this deadline.
    whole_s: the limit for messages, of which `budget_s` is the part that is left; None if it is all of it.
    """

    __slots__ = ("_begin_s", "_clock", "_sample", "_total", "budget_s", "stage", "whole_s")

    def __init__(
        self,
        stage: str,
        budget_s: float,
        charge: Clock | None = None,
        total: Deadline | None = None,
        whole_s: float | None = None,
    ) -> None:
        self.stage = stage
        self.budget_s = budget_s
        self.whole_s = budget_s if whole_s is None else whole_s
        self._clock = charge or WallClock()
        self._total = total
        self._begin_s = self._clock.now()
        # An older sample charges this budget with earlier work.
        self._sample = self._clock.sample(min(_SAMPLE_AGE_S, budget_s * _SAMPLE_SHARE))

    @property
    def _start(self) -> ClockSample:
        """Created at its first use, which comes after the budget's wall time has passed."""
        return replace(self._sample, wall_s=self._begin_s)

    @property
    def wall_s(self) -> float:
        """Seconds since the deadline was made."""
        return self._clock.now() - self._begin_s

    @property
    def cpu_s(self) -> float:
        """Seconds of CPU time that the device's process used since the deadline was made."""
        return max(0.0, self._clock.sample().cpu_s - self._start.cpu_s)

    def remaining(self) -> float:
        """Seconds to wait before the next check; 0.0 when the time is up.

        The clock is not read while wall time is left, since the charge never exceeds the wall time.
        """
        left = self.budget_s - self._clock.now() + self._begin_s
        if left <= 0.0:
            left = self.budget_s - charged_between(self._start, self._clock.sample())
        if self._total is not None:
            left = min(left, self._total.remaining())
        return left if left > 0.0 else 0.0

    def expired(self) -> bool:
        """True if the time is up."""
        return self.remaining() == 0.0

    def check(self, waited_for: str) -> None:
        """Raise DeadlineError if the time is up: for bytes that come, but not the awaited ones."""
        if self.expired():
            raise self.error(waited_for)

    def error(self, waited_for: str) -> DeadlineError:
        """The error for a passed deadline: names the deadline that passed, and the awaited event."""
        limit = ""
        if self._total is not None and self._total.expired():
            limit, message = "total", f"the total time limit of {self._total.budget_s:g} s has passed"
        else:
            message = f"stage {self.stage!r} did not come to its end within {round(self.whole_s, 3):g} s"
        error = DeadlineError(
            message, stage=self.stage, waited_for=waited_for, wall_s=self.wall_s, cpu_s=self._cpu_known()
        )
        error.limit = limit
        return error

    def _cpu_known(self) -> float | None:
        return None if isinstance(self._clock, WallClock) else self.cpu_s


class ByteLink(Protocol):
    """The part of a transport that is used here."""

    def read(self, timeout_s: float) -> bytes: ...
    def write(self, data: bytes, timeout_s: float) -> None: ...


def read_before(link: ByteLink, deadline: Deadline, waited_for: str) -> bytes:
    """The next bytes of the link, at least one byte.

    When the time is up, the link is read once more, so that bytes that have already arrived count.

    Raises DeadlineError, and the link's errors.
    """
    data = link.read(_SOON_S)  # Fast path: usually a byte has arrived, and no clock is read.
    while not data:
        left = deadline.remaining()
        data = link.read(left)
        if not data and left == 0.0:
            raise deadline.error(waited_for)
    return data


def write_before(link: ByteLink, data: bytes, deadline: Deadline) -> None:
    """Write all of `data`. A write that was cut short is continued while the deadline has time left.

    Raises DeadlineError, and the link's errors.
    """
    try:
        link.write(data, 0.0)  # Fast path: usually there is room, and the limit is not computed.
    except DeadlineError as error:
        _write_rest(link, data, error.written, deadline)


def _write_rest(link: ByteLink, data: bytes, written: int, deadline: Deadline) -> None:
    view = memoryview(data)[written:]
    while True:
        left = deadline.remaining()
        try:
            link.write(bytes(view), left)
        except DeadlineError as error:
            view = view[error.written :]
            if left == 0.0:
                failure = deadline.error(f"the device to take {len(view)} more of {len(data)} bytes")
                failure.written = len(data) - len(view)
                raise failure from error
        else:
            return
