# SPDX-License-Identifier: Apache-2.0
"""Judges candidates on a device: loads, checks and times them.

A crash, a hang or a changed clock is an outcome: the device is replaced, and the candidate is tried once
more, alone on a fresh device, so that no other candidate can be the cause.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from minrpc.errors import (
    BoardLostError,
    ClockError,
    ConfigurationError,
    DeadlineError,
    DeviceMemoryError,
    DialectError,
    EmulatorExitedError,
    GuardError,
    HarnessError,
    LinkClosedError,
    LinkerError,
    LinkError,
    NothingHeardError,
    RemoteError,
    SessionError,
    TimerError,
)
from minrpc.firmware import Firmware
from minrpc.host.deadline import Deadline
from minrpc.library import LoadedLibrary
from minrpc.library.arguments import plan_call
from minrpc.library.loading import check_build, load_compiled, remember
from minrpc.library.toolset import Toolset
from minrpc.pipeline import Device, connect, open_device
from minrpc.running import start
from minrpc.targets import Target
from minrpc.timing import Measurement
from minrpc.timing.clock import DeviceClock
from minrpc.tuning.candidates import Candidate, CandidateResult
from minrpc.tuning.compilers import Built, reason_of
from minrpc.tuning.kernel import Kernel

CANDIDATE_TIMEOUT_S: Final = 10.0
"""Time limit for a call of a candidate, in seconds of the device."""

_RESET_S: Final = 60.0
# Number of empty calls timed between candidates: their time stays the same unless a candidate has changed
# the clock.
_EMPTY_CALLS: Final = 200
# Allowed relative change of that time, by the clock's mode: a board has interrupts and caches, a host load.
_TIME_TOLERANCE: Final = {"exact": 0.05, "board": 0.5, "wall": float("inf")}
# Factors for the calls in a batch, for kernels that take less time than measuring.
_LONGER: Final = (1, 10, 100, 1000)

# A candidate that overwrites the runtime's memory, or writes to its link, can cause any of these.
_CRASHES: Final = (
    EmulatorExitedError,
    LinkClosedError,
    SessionError,
    NothingHeardError,
    LinkError,
    DialectError,
)
_SPOILING: Final = ("crash", "hang", "clock")
"""Outcomes after which a candidate is tried again on a fresh device."""


def candidate_limit_s(target: Target, given: float | None = None) -> float:
    """The time limit for a call of a candidate: the given one, else the target's, at most 10 s."""
    return given or min(target.call_timeout_s, CANDIDATE_TIMEOUT_S)


@dataclass
class Bench:
    """A device, replaced after a candidate has spoiled it. A context manager, which ends the device.

    serial_port: the port of a board that runs the firmware; the board is reset if its reset command is known.
        None to start the firmware here.
    """

    kernel: Kernel
    firmware: Firmware
    toolset: Toolset
    call_timeout_s: float = CANDIDATE_TIMEOUT_S
    serial_port: str | None = None
    _device: Device | None = field(default=None, init=False)
    _spoiled: bool = field(default=False, init=False)
    _time_before: tuple[float, DeviceClock] = field(init=False)

    def __enter__(self) -> Bench:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def judge(
        self, candidate: Candidate, built: Built, *, check: bool | None = None, again: bool = False
    ) -> CandidateResult:
        """The result of a candidate; after a crash, a hang or a changed clock, the result of a second try.

        check: True to check its outputs, before and after timing; None for the kernel's setting.
        again: True if the candidate has already spoiled another device.

        Raises as starting a device does, BoardLostError if a board can't be opened again.
        """
        if built.compiled is None:
            return CandidateResult(candidate, built.outcome, built.reason, stage_s={"compile": built.seconds})
        check = self.kernel.checks(candidate) if check is None else check
        result = self._try(candidate, built, check, None)
        if result.outcome in _SPOILING and not again:
            result = self._try(candidate, built, check, result)
        return replace(result, stage_s={"compile": built.seconds, **result.stage_s})

    def close(self) -> None:
        """End the device."""
        device, self._device = self._device, None
        if device is not None:
            device.close()

    def _spoil(self) -> None:
        """Ends the device: the next candidate gets another; a board is reset."""
        self.close()
        self._spoiled = True

    def _open(self) -> Device:
        if self._device is None:
            if self.serial_port is None:
                self._device = open_device(
                    self.firmware, call_timeout_s=self.call_timeout_s, counters=bool(self.kernel.counted)
                )
            else:
                self._device = self._attached(self.serial_port)
            self._time_before = _time_of_empty_calls(self._device)
            if self._time_before[0] <= 0:
                raise TimerError(f"{self._device.name}: its clock stands still", stage="tune")
        return self._device

    def _attached(self, port: str) -> Device:
        target = self.firmware.target.changed(serial_port=port, call_timeout_s=self.call_timeout_s)
        running = start(target)
        try:
            if self._spoiled and running.can_reset:
                running.reset(Deadline("reset", _RESET_S, running.clock))
            device = connect(running, on_close=running.stop)
            device.connect()
            check_build(device, self.firmware)
        except BaseException:
            running.stop()
            raise
        self._spoiled = False
        return device

    def _reopened(self, before: CandidateResult | None) -> Device:
        """A session on a board that has been opened before."""
        try:
            return self._open()
        except HarnessError as error:
            if self.serial_port is None:
                raise
            lost = BoardLostError(
                f"{self.serial_port} does not answer any more",
                details=[error.message],
                stage=error.stage or "tune",
            )
            lost.verdict = before
            raise lost from error

    def _try(
        self, candidate: Candidate, built: Built, check: bool, before: CandidateResult | None
    ) -> CandidateResult:
        result = self._tried(candidate, built, check, before)
        if result.outcome in ("crash", "hang"):
            self._spoil()
            return result
        wrong = self._wrong_clock()
        if wrong:
            self._spoil()
            if result.outcome in ("correct", "clock"):
                return replace(result, outcome="clock", reason=wrong, cost=0.0, seconds=0.0, counters={})
        return result

    def _wrong_clock(self) -> str:
        """The error of the device's clock after a candidate has run; "" if the clock is right."""
        assert self._device is not None
        due, clock = self._time_before
        try:
            took, _ = _time_of_empty_calls(self._device)
        except (*_CRASHES, DeadlineError, RemoteError) as error:
            return f"the device's clock could not be read after it: {error.message}"
        if took <= 0 or abs(took - due) > _TIME_TOLERANCE[clock.mode] * due:
            return (
                f"{_EMPTY_CALLS} empty calls take {took:,.0f} ticks of the device's clock after it, "
                f"{due:,.0f} before: it has changed the timer or its interrupts"
            )
        return ""

    def _tried(
        self, candidate: Candidate, built: Built, check: bool, before: CandidateResult | None
    ) -> CandidateResult:
        device = self._reopened(before)
        stages: dict[str, float] = {}
        try:
            return self._measured(device, candidate, built, check, stages)
        except DeviceMemoryError as error:
            result = CandidateResult(candidate, "no room", reason_of(error))
        except ClockError as error:
            result = CandidateResult(candidate, "clock", error.message)
        except (GuardError, RemoteError) as error:
            result = CandidateResult(candidate, "wrong", error.message)
        except LinkerError as error:
            result = CandidateResult(candidate, "link", reason_of(error))
        except DeadlineError as error:
            result = CandidateResult(candidate, "hang", error.message)
        except _CRASHES as error:
            result = CandidateResult(candidate, "crash", error.message)
        return replace(result, stage_s=stages)

    def _measured(
        self, device: Device, candidate: Candidate, built: Built, check: bool, stages: dict[str, float]
    ) -> CandidateResult:
        kernel, compiled = self.kernel, built.compiled
        assert compiled is not None
        with _timed(stages, "load"):
            if built.image is not None:
                remember(compiled, self.toolset, built.image)
            library = load_compiled(device, compiled, self.toolset)
        with library:
            _require_callable(library, kernel)
            if check:
                with _timed(stages, "check"):
                    wrong = kernel.wrong(library[kernel.function])
                if wrong:
                    return CandidateResult(candidate, "wrong", wrong, stage_s=stages)
            with _timed(stages, "measure"):
                measured, ticks = _timed_call(library, kernel)
            if not ticks:
                reason = "it takes less time than the device's clock can measure"
                return CandidateResult(candidate, "clock", reason, stage_s=stages)
            if check:
                with _timed(stages, "check"):
                    wrong = kernel.wrong(library[kernel.function])
                if wrong:
                    return CandidateResult(candidate, "wrong", f"after it was timed: {wrong}", stage_s=stages)
            counters = {name: measured.counter_per_call(name) for name in measured.counters}
            stack = max(compiled.stack_use.values(), default=0)
            size = library.device_bytes
            seconds = measured.clock.seconds(ticks)
            cost = counters["cycles"] if kernel.objective == "cycles" else ticks
        return CandidateResult(candidate, "correct", "", cost, seconds, size, stack, counters, stages, ticks)


def _timed_call(library: LoadedLibrary, kernel: Kernel) -> tuple[Measurement, float]:
    """The measurement, and the ticks of a call: 0 if even the longest batch is too short to measure."""
    for longer in _LONGER:
        number = longer * kernel.number
        timer = library.measure(kernel.function, number=number, repeat=kernel.repeat, counters=kernel.counted)
        measured = timer(*copy.deepcopy(kernel.arguments))
        ticks = _fewest(measured, number)
        if ticks > 0:
            break
    return measured, ticks


def _time_of_empty_calls(device: Device) -> tuple[float, DeviceClock]:
    """Cycles of a batch of empty calls, and the device's clock."""
    measured = device.system_lib().measure("", number=_EMPTY_CALLS, repeat=3)()
    return min(measured.ticks_per_call) * _EMPTY_CALLS, measured.clock


def _require_callable(library: LoadedLibrary, kernel: Kernel) -> None:
    """Raise ConfigurationError if the function is missing, or takes other arguments."""
    try:
        function = library[kernel.function].function
        plan_call(function, kernel.arguments, library.facts.pointer_size, guard=0)
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(
            str(error.args[0]), stage=f"call {kernel.function}", next_step="correct the function or --arg"
        ) from error


def _fewest(measured: Measurement, number: int) -> float:
    """Cycles of a call, without the cost of measuring.

    Under icount, a batch is rounded to whole instructions: without rounding, the counter's phase of one tick
    would make two runs differ. Rounding needs ticks shorter than half an instruction.
    """
    each = measured.clock.ticks_per_instruction
    if each is None:
        return max(0.0, min(measured.net().ticks_per_call))
    overhead = measured.overhead
    batch = round(min(measured.ticks_per_call) * number / each)
    batch -= round(overhead.timer / each) + number * round(overhead.call / each)
    return float(max(0, batch) * each / number)


@contextmanager
def _timed(stages: dict[str, float], name: str) -> Iterator[None]:
    begin = time.monotonic()
    try:
        yield
    finally:
        stages[name] = time.monotonic() - begin
