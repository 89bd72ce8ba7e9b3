# SPDX-License-Identifier: Apache-2.0
"""Runs commands one after another: each has a limit, all together have a limit, and no process is left.

A step that has used up its time is ended with all its processes, and named. Steps that did not run are named,
too. The end is a table of the steps' wall time and processor time.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

# Seconds for a step that was told to end, to say where it stood.
_LAST_WORDS_S: Final = 15.0
# Seconds in which the processes that a finished step has left must end by themselves.
_ENDING_S: Final = 5.0
_POLL_S: Final = 0.05
_SET_CHILD_SUBREAPER: Final = 36


@dataclass(frozen=True, slots=True)
class Step:
    """A command with its limit.

    limit_s: wall time in seconds, several times the usual time on a slow machine.
    environment: variables that are set, or, where the value is None, unset.
    skipped: the reason why the command can't run here; then it is named and is no failure.
    """

    name: str
    command: tuple[str, ...] = ()
    limit_s: float = 600.0
    directory: Path | None = None
    environment: Mapping[str, str | None] = field(default_factory=dict)
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a step.

    problem: "" if the step passed.
    ran: False for a step that was skipped, or for which no time was left.
    interrupted: the user ended the step.
    """

    name: str
    problem: str = ""
    wall_s: float = 0.0
    cpu_s: float = 0.0
    ran: bool = True
    interrupted: bool = False


class Steps:
    """Runs steps until their total time is used up; keeps their outcomes."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._end = time.monotonic() + limit_s
        self.outcomes: list[Outcome] = []
        # Processes whose parents have ended become children of this process, which can end them.
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    @property
    def has_failed(self) -> bool:
        return any(outcome.problem for outcome in self.outcomes)

    def run(self, step: Step) -> bool:
        """Runs a step, unless no time is left. Returns True if it passed.

        Raises KeyboardInterrupt after the end of an interrupted step and its processes.
        """
        if step.skipped:
            _say(f"SKIPPED {step.name}: {step.skipped}")
            self.outcomes.append(Outcome(f"{step.name}: {step.skipped}", ran=False))
            return True
        left_s = self._end - time.monotonic()
        if left_s <= 0:
            self.note(step.name, f"did not run: the {_minutes(self._limit_s)} of all steps had passed")
            return False
        _say(step.name)
        limit = f"{_minutes(step.limit_s)} of this step"
        if left_s < step.limit_s:
            limit = f"{_minutes(self._limit_s)} of all steps"
        outcome = _run(step, min(left_s, step.limit_s), limit)
        _say(f"{step.name}: {outcome.wall_s:.0f} s")
        self.outcomes.append(outcome)
        if outcome.interrupted:
            raise KeyboardInterrupt
        return not outcome.problem

    def note(self, name: str, problem: str) -> None:
        """Notes a failure of steps that did not run."""
        self.outcomes.append(Outcome(name, problem, ran=False))

    def report(self) -> Iterator[str]:
        """The lines at the end: the steps' times, then what was skipped, what failed, and the verdict."""
        yield "     wall   processors  step"
        for outcome in self.outcomes:
            if outcome.ran:
                yield f"{outcome.wall_s:7.1f} s  {outcome.cpu_s:8.1f} s  {outcome.name}"
        ran = [outcome for outcome in self.outcomes if outcome.ran]
        yield f"{sum(o.wall_s for o in ran):7.1f} s  {sum(o.cpu_s for o in ran):8.1f} s  all"
        yield ""
        for outcome in self.outcomes:
            if not outcome.ran and not outcome.problem:
                yield f"== SKIPPED {outcome.name}"
        for outcome in self.outcomes:
            if outcome.problem:
                yield f"== FAILED {outcome.name}: {outcome.problem}"
        if not self.has_failed:
            yield "== all passed"


def _run(step: Step, limit_s: float, limit: str) -> Outcome:
    begin, cpu_before = time.monotonic(), _children_s()
    environment = os.environ | {k: v for k, v in step.environment.items() if v is not None}
    for name in [name for name, value in step.environment.items() if value is None]:
        environment.pop(name, None)
    problem, interrupted = "", False
    process: subprocess.Popen[bytes] | None = None  # Also if the interrupt comes while it is started.
    try:
        process = subprocess.Popen(
            step.command,
            cwd=step.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        status = process.wait(limit_s)
        end = time.monotonic() + _ENDING_S
        while _descendants() and time.monotonic() < end:
            _pause(process)
        if status != 0:
            problem = f"exit status {status}" if status > 0 else f"ended by signal {-status}"
    except OSError as error:
        problem = f"can't be started: {error}"
    except (subprocess.TimeoutExpired, KeyboardInterrupt) as why:
        interrupted = isinstance(why, KeyboardInterrupt)
        reason = "interrupted" if interrupted else f"cut: the {limit} had passed"
        problem = f"{reason}, while these ran: {_named(_descendants())}"
        # pytest and others name their current test when they are interrupted, and remove their files.
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
            _wait(process, _LAST_WORDS_S)
    finally:
        left = _end_all(process)
    if left and not problem:
        problem = f"left processes: {left}"
    times = time.monotonic() - begin, _children_s() - cpu_before
    return Outcome(step.name, problem, *times, interrupted=interrupted)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


def _end_all(process: subprocess.Popen[bytes] | None) -> str:
    """Ends all processes below this process; returns the names of those that still ran."""
    left = ""
    while found := _descendants():
        left = left or _named(found)
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _pause(process)
    if process is not None:
        process.wait()
    return left


def _pause(process: subprocess.Popen[bytes] | None) -> None:
    """Takes the ended processes that this process has inherited, and waits."""
    if process is not None:
        process.poll()
    for pid, (parent, state) in _states().items():
        if parent == os.getpid() and state == "Z" and (process is None or pid != process.pid):
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
    time.sleep(_POLL_S)


def _states() -> dict[int, tuple[int, str]]:
    """The parent and the state of each process."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            found[int(entry.name)] = int(parent), state
    return found


def _descendants() -> list[int]:
    """All processes below this one that have not ended, parents first."""
    states, found = _states(), [os.getpid()]
    for parent in found:
        found += [pid for pid, (above, _) in states.items() if above == parent]
    return [pid for pid in found[1:] if states[pid][1] != "Z"]


def _named(pids: Iterable[int]) -> str:
    """The command lines of processes, in short."""
    names = []
    for pid in pids:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        line = " ".join(words).strip()
        if line:
            names.append(f"{line[:117]}..." if len(line) > 120 else line)
    return "; ".join(dict.fromkeys(names)) or "none"


def _children_s() -> float:
    """Processor time in seconds of all processes that have ended below this process."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"


def _say(text: str) -> None:
    print(f"\n== {text}", flush=True)
