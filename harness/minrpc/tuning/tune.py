# SPDX-License-Identifier: Apache-2.0
"""Tries candidates on devices: processes compile, devices measure the compiled candidates."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import NamedTuple, Protocol

from minrpc.errors import BoardLostError, ConfigurationError
from minrpc.firmware import Firmware
from minrpc.library.loading import likely_base
from minrpc.library.toolset import Toolset, toolset_of
from minrpc.tuning.candidates import COMPILE_TIMEOUT_S, Candidate, CandidateResult, Space, best
from minrpc.tuning.compilers import Built, Compilers
from minrpc.tuning.judging import CANDIDATE_TIMEOUT_S, Bench
from minrpc.tuning.kernel import Kernel
from minrpc.tuning.strategies import STRATEGIES, Strategy

log = logging.getLogger("minrpc.tuning")


class Workers(Protocol):
    """Protocol: judges candidates, on devices of this machine or of other machines."""

    ahead: int
    """Number of queued candidates that keeps all devices busy."""

    def put(self, candidate: Candidate, *, check: bool | None = None) -> None:
        """Queue a candidate; `check` as for `Bench.judge`."""

    def get(self) -> CandidateResult:
        """The next finished result. Raises the error of a device that could not be started."""


def tune(
    kernel: Kernel,
    space: Space,
    firmware: Firmware,
    *,
    strategy: str = "all",
    budget: int | None = None,
    jobs: int = 1,
    seed: int = 0,
    known: Iterable[CandidateResult] = (),
    call_timeout_s: float = CANDIDATE_TIMEOUT_S,
    workers: AbstractContextManager[Workers] | None = None,
    ports: Sequence[str] = (),
    compile_timeout_s: float = COMPILE_TIMEOUT_S,
) -> Generator[CandidateResult, None, None]:
    """Try candidates on `jobs` devices of `firmware`, and yield each result when it is known.

    jobs: not more devices than candidates are started.
    strategy: a name in `STRATEGIES`. budget: largest number of candidates; None for all proposals.
    known: results of an earlier run: they are not tried again, and the strategy learns from them.
    workers: judge the candidates, in place of `jobs` devices of this machine.
    ports: serial ports of boards that run `firmware`, in place of `jobs` devices. They share the queue; if a
        board does not come back after a crash or a hang, another board takes its candidate over.
    compile_timeout_s: time limit for compiling and linking a candidate, in seconds of this machine.

    If only the best is checked, the check comes last: a wrong result is then yielded again, as invalid. The
    results are the same with any number of devices; their order is not. Stopping the iteration ends all
    devices and processes. Raises as starting a device does; a candidate's failure raises nothing.
    """
    if strategy not in STRATEGIES:
        raise ConfigurationError(
            f"there is no strategy {strategy!r}", next_step=f"take one of {', '.join(STRATEGIES)}"
        )
    if jobs < 1:
        raise ConfigurationError(f"jobs is at least 1, not {jobs}", next_step="leave it out")
    results = {item.candidate.number: item for item in known}
    chooser = STRATEGIES[strategy](space, seed)
    for item in results.values():
        chooser.tell(item)
    limit = len(space) if budget is None else min(budget, len(space))
    if workers is None:
        devices = max(1, min(jobs, limit))
        workers = Devices(kernel, firmware, devices, call_timeout_s, ports, compile_timeout_s)
    with workers as running:
        for result in _search(space, chooser, running, limit, results):
            results[result.candidate.number] = result
            yield result
        if kernel.check is not None and kernel.check_every == 0:
            yield from _verified(running, results)


def _search(
    space: Space, chooser: Strategy, workers: Workers, limit: int, known: dict[int, CandidateResult]
) -> Generator[CandidateResult, None, None]:
    waiting = 0
    proposed = 0
    done = frozenset(known)
    while True:
        while proposed < limit and waiting < workers.ahead:
            number = chooser.ask()
            if number is None:
                limit = proposed
            elif number not in done:
                proposed += 1
                waiting += 1
                workers.put(space[number])
        if not waiting:
            return
        result = workers.get()
        waiting -= 1
        chooser.tell(result)
        yield result


def _verified(
    workers: Workers, results: dict[int, CandidateResult]
) -> Generator[CandidateResult, None, None]:
    """Checks the best result, then the next best, until a result is right; yields wrong results as
    invalid."""
    while (leader := best(results.values())) is not None:
        workers.put(leader.candidate, check=True)
        result = workers.get()
        results[result.candidate.number] = result
        yield result
        if result.valid:
            return


class _Job(NamedTuple):
    """A candidate, and its result from a lost board."""

    candidate: Candidate
    building: Future[Built]
    check: bool | None
    before: CandidateResult | None = None


class Devices:
    """Threads, each with a device, which take candidates from one queue and put results into another.

    With `ports`, each thread has a port.
    """

    def __init__(
        self,
        kernel: Kernel,
        firmware: Firmware,
        jobs: int = 1,
        call_timeout_s: float = CANDIDATE_TIMEOUT_S,
        ports: Sequence[str] = (),
        compile_timeout_s: float = COMPILE_TIMEOUT_S,
    ) -> None:
        self._kernel = kernel
        self._toolset: Toolset = toolset_of(firmware)
        places: Sequence[str | None] = ports or [None] * jobs
        benches = [Bench(kernel, firmware, self._toolset, call_timeout_s, port) for port in places]
        self._compilers = Compilers(timeout_s=compile_timeout_s)
        self.ahead = 2 * len(benches) + self._compilers.count
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[CandidateResult | BaseException] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._left = len(benches)
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, args=(bench,), name=f"tune-{number}")
            for number, bench in enumerate(benches)
        ]

    def __enter__(self) -> Devices:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for _thread in self._threads:
            self._jobs.put(None)
        self._compilers.close()
        for thread in self._threads:
            thread.join()

    def put(self, candidate: Candidate, *, check: bool | None = None) -> None:
        """Does the same as `Workers`."""
        base = likely_base(self._toolset)
        building = self._compilers.submit(self._kernel.sources(candidate), self._toolset, base)
        self._jobs.put(_Job(candidate, building, check))

    def get(self) -> CandidateResult:
        """Does the same as `Workers`."""
        result = self._results.get()
        if isinstance(result, BaseException):
            raise result
        return result

    def _work(self, bench: Bench) -> None:
        try:
            with bench:
                while (job := self._jobs.get()) is not None and not self._stop.is_set():
                    try:
                        again = job.before is not None
                        built = job.building.result()
                        result = bench.judge(job.candidate, built, check=job.check, again=again)
                    except BoardLostError as error:
                        self._hand_over(job, error)
                        return
                    self._results.put(result)
        except BaseException as error:  # `get` raises the error again.
            self._results.put(error)

    def _hand_over(self, job: _Job, lost: BoardLostError) -> None:
        """Queue the candidate for another board; if no board is left, its result on the lost board is
        final."""
        with self._lock:
            self._left -= 1
            left = self._left
        verdict = lost.verdict or job.before
        if left:
            log.warning("%s; %d left: %s", lost.message, left, "; ".join(lost.details))
            self._jobs.put(job._replace(before=verdict))
            return
        if verdict is not None:
            self._results.put(replace(verdict, reason=f"{verdict.reason}; {lost.message}"))
        self._results.put(lost)
