# SPDX-License-Identifier: Apache-2.0
"""Processes that compile and link candidates while devices measure earlier candidates.

They are separate programs, not forks: they hold none of this process's devices and import nothing of the
tuning program. They have their own process groups, so that Ctrl-C at a terminal does not reach their
compilers, and they end with the process that started them.
"""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import NamedTuple

from minrpc.errors import BuildError, HarnessError, LinkerError
from minrpc.host.process import output_tail, spawn, stop_group
from minrpc.host.sandbox import is_up, sandboxed
from minrpc.library import Sources, compile_sources
from minrpc.library.compiling import Compiled
from minrpc.library.linking import LinkedImage
from minrpc.library.loading import link_ahead
from minrpc.library.toolset import Toolset
from minrpc.tuning.candidates import COMPILE_TIMEOUT_S, Outcome

_END_S = 5.0


class Built(NamedTuple):
    """The result of compiling a candidate.

    compiled, image: the objects, and the image linked for the expected address; None if that failed.
    outcome, reason: the kind of failure and its message.
    """

    seconds: float
    compiled: Compiled | None = None
    image: LinkedImage | None = None
    outcome: Outcome = "correct"
    reason: str = ""


def built(sources: Sources, toolset: Toolset, base: int | None) -> Built:
    """Compile, and link for `base`: None if linking needs symbols from a device."""
    begin = time.monotonic()
    try:
        compiled = compile_sources(sources, toolset)
        image = None if base is None else link_ahead(compiled, toolset, base)
    except LinkerError as error:
        return Built(time.monotonic() - begin, outcome="link", reason=reason_of(error))
    except BuildError as error:
        return Built(time.monotonic() - begin, outcome="compile", reason=reason_of(error))
    return Built(time.monotonic() - begin, compiled, image)


def reason_of(error: HarnessError) -> str:
    """The error in one line: its message, and the compiler's first error."""
    details = getattr(error, "output", "") or " ".join(error.details)
    first = next((line for line in details.splitlines() if "error" in line), "")
    return ": ".join(filter(None, (error.message, first.strip())))


class Compilers:
    """A compiler process for each processor. A context manager, which ends them.

    timeout_s: time limit for a candidate, in seconds; its compiler is then stopped.
    """

    def __init__(self, count: int | None = None, *, timeout_s: float = COMPILE_TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self.count = count or len(os.sched_getaffinity(0))
        self._threads = ThreadPoolExecutor(self.count, thread_name_prefix="minrpc-compile")
        self._idle: queue.SimpleQueue[_Compiler] = queue.SimpleQueue()

    def submit(self, sources: Sources, toolset: Toolset, base: int | None) -> Future[Built]:
        """Queue the sources for the next free process."""
        return self._threads.submit(self._build, sources, toolset, base)

    def _build(self, sources: Sources, toolset: Toolset, base: int | None) -> Built:
        try:
            compiler = self._idle.get_nowait()
        except queue.Empty:
            compiler = _Compiler()
        text = ""
        for _ in range(2):  # The process may have been killed, for instance by lack of memory.
            try:
                done = compiler.build(sources, toolset, base, self._timeout_s)
            except TimeoutError:
                compiler.end(at_once=True)
                reason = f"the compiler has run for {self._timeout_s:g} s and was stopped"
                return Built(self._timeout_s, outcome="compile", reason=reason)
            except (EOFError, OSError):
                text = compiler.end()
                compiler = _Compiler()
                continue
            self._idle.put(compiler)
            return done
        self._idle.put(compiler)
        return Built(0.0, outcome="compile", reason=f"the process that compiled it ended twice: {text}")

    def close(self) -> None:
        """End the processes; queued candidates are not built."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        while not self._idle.empty():
            self._idle.get().end()

    def __enter__(self) -> Compilers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Compiler:
    """One process, and the connection to it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            program = f"from {__name__} import serve; serve({theirs.fileno()}, sandbox={is_up()})"
            command = [sys.executable, "-P", "-c", program]
            self._process: subprocess.Popen[bytes] = spawn(command, pass_fds=[theirs.fileno()])
        self._output = output_tail(self._process, "compiler")
        self._connection = Connection(ours.detach())

    def build(self, sources: Sources, toolset: Toolset, base: int | None, timeout_s: float) -> Built:
        """The result of the build. Raises TimeoutError, and EOFError and OSError if the process has ended."""
        self._connection.send((sources, toolset, base))
        if not self._connection.poll(timeout_s):
            raise TimeoutError
        answer = self._connection.recv()
        if isinstance(answer, HarnessError):  # The error is not the candidate's: a tool or a file is missing.
            raise answer
        assert isinstance(answer, Built)
        return answer

    def end(self, *, at_once: bool = False) -> str:
        """End the process; returns its last output. at_once: also kill it while busy, with its compiler."""
        self._connection.close()
        stop_group(self._process, 0.0 if at_once else _END_S)
        self._output.close(_END_S)
        return self._output.text().strip().rpartition("\n")[2]


def serve(descriptor: int, *, sandbox: bool) -> None:
    """Build the candidates from the connection, until its other end is closed."""
    with Connection(descriptor) as connection, sandboxed(wanted=sandbox):
        while True:
            try:
                sources, toolset, base = connection.recv()
            except EOFError:
                return
            answer: Built | HarnessError
            try:
                answer = built(sources, toolset, base)
            except HarnessError as error:
                answer = HarnessError(error.message, stage=error.stage, next_step=error.next_step)
            connection.send(answer)
