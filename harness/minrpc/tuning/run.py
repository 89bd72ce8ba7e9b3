# SPDX-License-Identifier: Apache-2.0
"""Tries candidates on devices: a pool of processes compiles, each device takes what is compiled.

A candidate that crashes or hangs is an outcome: its device is replaced, and it is tried once more, alone on a
fresh one, so that the verdict is the candidate's.
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import queue
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from minrpc.client import Device
from minrpc.errors import (
    BuildError,
    DeadlineError,
    DeviceMemoryError,
    EmulatorExitedError,
    HarnessError,
    LinkClosedError,
    RemoteError,
    SessionTerminatedError,
)
from minrpc.firmware import Firmware
from minrpc.library import GuardError, Sources, compile_sources
from minrpc.library.compiling import Compiled
from minrpc.library.linking import LinkError
from minrpc.library.loading import load_compiled
from minrpc.library.toolset import Toolset, toolset_of
from minrpc.pipeline import open_device
from minrpc.timing import Measurement
from minrpc.tuning.candidates import Candidate, Outcome, Result, Space
from minrpc.tuning.strategies import STRATEGIES

Arguments = Sequence[object]
Check = Callable[..., Any]
"""Takes copies of the arguments, changes arrays in place as the kernel should, and returns what it should."""

CALL_S: Final = 10.0
"""What one call of a candidate may take of the device's time."""


@dataclass(frozen=True)
class Kernel:
    """What is tuned.

    source: its C file. function: in it. arguments: numpy arrays and numbers that it is called with.
    check: what is right; None to believe every candidate. include: directories of headers.
    number, repeat: of its time evaluator; the quickest repeat counts, since an interrupt may fall into one.
    counters: names to be counted, as `measure` takes them.
    rtol, atol: how near floats must be.
    """

    source: Path
    function: str
    arguments: tuple[object, ...]
    check: Check | None = None
    include: tuple[Path, ...] = ()
    number: int = 1
    repeat: int = 3
    counters: tuple[str, ...] | str = ()
    rtol: float = 1e-5
    atol: float = 1e-6


def tune(
    kernel: Kernel,
    space: Space,
    firmware: Firmware,
    *,
    strategy: str = "all",
    budget: int | None = None,
    jobs: int = 1,
    seed: int = 0,
    done: Collection[int] = (),
    call_timeout_s: float = CALL_S,
) -> Generator[Result, None, None]:
    """Try candidates on `jobs` devices of `firmware`, and give what came of each as it is known.

    strategy: a name in `STRATEGIES`. budget: at most so many candidates; None for all that it proposes.
    done: numbers that are not tried again.

    The results are the same with any number of devices; their order is not. Stopping the iteration ends
    everything that was started. Raises what starting a device raises; a candidate raises nothing.
    """
    toolset = toolset_of(firmware)
    chooser = STRATEGIES[strategy](space, seed)
    limit = len(space) if budget is None else budget
    with _Devices(kernel, firmware, toolset, jobs, call_timeout_s) as devices, _compilers() as pool:
        waiting: dict[int, Future[Any]] = {}
        proposed = 0
        while True:
            # Enough is compiled ahead to keep every device busy.
            while proposed < limit and len(waiting) < 2 * jobs + (os.cpu_count() or 1):
                number = chooser.ask()
                if number is None:
                    limit = proposed
                    break
                if number in done:
                    continue
                proposed += 1
                waiting[number] = pool.submit(_compile, kernel, space[number], toolset)
                devices.put(space[number], waiting[number])
            if not waiting:
                return
            result = devices.get()
            del waiting[result.candidate.number]
            chooser.tell(result)
            yield result


def _compile(kernel: Kernel, candidate: Candidate, toolset: Toolset) -> tuple[Compiled | Result, float]:
    """In a process of the pool: the objects, or what is wrong; and the seconds that it took."""
    begin = time.monotonic()
    try:
        sources = Sources.of(
            kernel.source, include=kernel.include, flags=candidate.flags, defines=dict(candidate.defines)
        )
        compiled: Compiled | Result = compile_sources(sources, toolset)
    except LinkError as error:
        compiled = _invalid(candidate, "link", error)
    except BuildError as error:
        compiled = _invalid(candidate, "compile", error)
    return compiled, time.monotonic() - begin


def _invalid(candidate: Candidate, outcome: Outcome, error: HarnessError) -> Result:
    details = getattr(error, "output", "") or " ".join(error.details)
    first = next((line for line in details.splitlines() if "error" in line), "")
    return Result(candidate, outcome, ": ".join(filter(None, (error.message, first.strip()))))


@contextmanager
def _compilers() -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes hold none of this process's devices: they are not forks of it."""
    pool = ProcessPoolExecutor(os.cpu_count() or 1, mp_context=multiprocessing.get_context("forkserver"))
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_Job = tuple[Candidate, "Future[tuple[Compiled | Result, float]]"]


class _Devices:
    """Threads with a device each, which take candidates from one queue and put results into another."""

    def __init__(
        self, kernel: Kernel, firmware: Firmware, toolset: Toolset, jobs: int, call_timeout_s: float
    ) -> None:
        self._bench = (kernel, firmware, toolset, call_timeout_s)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Result | BaseException] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work, name=f"tune-{number}") for number in range(jobs)]

    def __enter__(self) -> _Devices:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for _thread in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def put(self, candidate: Candidate, compiled: Future[tuple[Compiled | Result, float]]) -> None:
        self._jobs.put((candidate, compiled))

    def get(self) -> Result:
        """What came of any candidate. Raises what a device that could not be started raised."""
        result = self._results.get()
        if isinstance(result, BaseException):
            raise result
        return result

    def _work(self) -> None:
        try:
            with _Bench(*self._bench) as bench:
                while (job := self._jobs.get()) is not None and not self._stop.is_set():
                    candidate, compiling = job
                    compiled, seconds = compiling.result()
                    result = compiled if isinstance(compiled, Result) else bench.judge(candidate, compiled)
                    self._results.put(_with_stage(result, "compile", seconds))
        except BaseException as error:  # It is raised again where the results are taken.
            self._results.put(error)


def _with_stage(result: Result, stage: str, seconds: float) -> Result:
    return replace(result, stage_s={stage: seconds, **result.stage_s})


@dataclass
class _Bench:
    """One device, replaced when a candidate has spoiled it."""

    kernel: Kernel
    firmware: Firmware
    toolset: Toolset
    call_timeout_s: float
    _device: Device | None = field(default=None, init=False)

    def __enter__(self) -> _Bench:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def judge(self, candidate: Candidate, compiled: Compiled) -> Result:
        """What comes of a candidate; a crash or a hang is tried once more on a fresh device."""
        result = self._try(candidate, compiled)
        if result.outcome in ("crash", "hang"):
            self._close()
            result = self._try(candidate, compiled)
            if result.outcome in ("crash", "hang"):
                self._close()
        return result

    def _open(self) -> Device:
        if self._device is None:
            self._device = open_device(self.firmware, call_timeout_s=self.call_timeout_s)
        return self._device

    def _close(self) -> None:
        device, self._device = self._device, None
        if device is not None:
            device.close()

    def _try(self, candidate: Candidate, compiled: Compiled) -> Result:
        device = self._open()
        stages: dict[str, float] = {}
        try:
            return self._measured(device, candidate, compiled, stages)
        except DeviceMemoryError as error:
            result = _invalid(candidate, "no room", error)
        except (GuardError, RemoteError) as error:
            result = Result(candidate, "wrong", error.message)
        except LinkError as error:
            result = _invalid(candidate, "link", error)
        except DeadlineError as error:
            result = Result(candidate, "hang", error.message)
        except (EmulatorExitedError, LinkClosedError, SessionTerminatedError) as error:
            result = Result(candidate, "crash", error.message)
        return replace(result, stage_s=stages)

    def _measured(
        self, device: Device, candidate: Candidate, compiled: Compiled, stages: dict[str, float]
    ) -> Result:
        kernel = self.kernel
        with _timed(stages, "load"):
            library = load_compiled(device, compiled, self.toolset)
        with library:
            with _timed(stages, "check"):
                wrong = _check(kernel, library[kernel.function])
            if wrong:
                return Result(candidate, "wrong", wrong, stage_s=stages)
            with _timed(stages, "measure"):
                options = {"number": kernel.number, "repeat": kernel.repeat, "counters": kernel.counters}
                measured = library.measure(kernel.function, **options)(*copy.deepcopy(kernel.arguments))
            cycles = _fewest(measured, kernel.number)
            counters = {name: measured.counter_per_call(name) for name in measured.counters}
            stack = max(compiled.stack_use.values(), default=0)
            size = library.device_bytes
            seconds = measured.clock.seconds(cycles)
        return Result(candidate, "correct", "", cycles, seconds, size, stack, counters, stage_s=stages)


def _fewest(measured: Measurement, number: int) -> float:
    """Cycles of a call. Under icount, of a whole number of instructions in a batch: the counter's phase,
    a tick more or less, would make two runs differ. A tick must be shorter than half an instruction for that.
    """
    each = measured.clock.cycles_per_instruction
    if each is None:
        return min(measured.cycles_per_call)
    return float(round(min(measured.cycles_per_call) * number / each) * each / number)


@contextmanager
def _timed(stages: dict[str, float], name: str) -> Iterator[None]:
    begin = time.monotonic()
    try:
        yield
    finally:
        stages[name] = time.monotonic() - begin


def _check(kernel: Kernel, function: Callable[..., Any]) -> str:
    """What is wrong with the kernel's results; "" when they are right, or nobody says what that is."""
    if kernel.check is None:
        return ""
    given, expected = copy.deepcopy(kernel.arguments), copy.deepcopy(kernel.arguments)
    result, due = function(*given), kernel.check(*expected)
    if due is not None and not _equal(result, due, kernel):
        return f"returned {result!r}, not {due!r}"
    for number, (one, other) in enumerate(zip(given, expected, strict=True)):
        if isinstance(one, np.ndarray) and not _equal(one, other, kernel):
            flat, right = one.ravel(), np.asarray(other).ravel()
            place = int(np.flatnonzero(~np.isclose(flat, right, kernel.rtol, kernel.atol, equal_nan=True))[0])
            return f"argument {number}: element {place} is {flat[place]}, not {right[place]}"
    return ""


def _equal(one: Any, other: Any, kernel: Kernel) -> bool:  # noqa: ANN401 - arrays or numbers
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype.kind in "fc" or other.dtype.kind in "fc":
        return bool(np.allclose(one, other, rtol=kernel.rtol, atol=kernel.atol, equal_nan=True))
    return bool(np.array_equal(one, other))
