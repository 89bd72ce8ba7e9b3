# SPDX-License-Identifier: Apache-2.0
"""Child processes that can't outlive this process, and their output.

A child has a process group of its own, so that it is stopped with all its children, and it gets SIGKILL from
the kernel when the thread that started it ends (PR_SET_PDEATHSIG): a harness that is killed leaves nothing
behind. That thread therefore lives as long as this process. Output goes through a pipe into a bounded buffer
in memory; there is no file to remove.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import math
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Final

from minrpc.errors import ConfigurationError, MissingError
from minrpc.host import process_session, sandbox

# Wall time for the answer of a tool, which takes milliseconds to seconds: a machine may have other work.
_ANSWER_S: Final = 120.0
# The output of a command that has ended is in its pipe by then.
_AFTER_END_S: Final = 2.0
_PR_SET_PDEATHSIG: Final = 1
_stopped_by: ContextVar[int | None] = ContextVar("stopped by", default=None)
_TAIL_BYTES: Final = 256 * 1024
_COMPILER_SAYS: Final = 1 << 20
_PIPE_BYTES: Final = 64 * 1024  # the default capacity of a pipe on Linux; pipe(7)
# Devices are started on Linux only; elsewhere this package can be imported, and an error gives this reason.
if sys.platform == "linux":
    _libc = ctypes.CDLL(None, use_errno=True)

# Two harnesses seldom begin with the same CPU. Counting is one step for all threads.
_turns: Final = itertools.count(os.getpid())


class _Launcher:
    """The thread that starts processes. A forked child of this process has none of its threads, and creates
    its own."""

    def __init__(self) -> None:
        self.renew()
        if sys.platform != "win32":
            os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="minrpc-launcher")

    def run(self, start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        """The first thread of a process also lives as long as the process."""
        if threading.get_native_id() == os.getpid():
            return start()
        return self._thread.submit(start).result()


_launcher = _Launcher()


class TextTail:
    """The last bytes of a pipe's output, read by a thread so that the writer never blocks for long."""

    def __init__(self, pipe: IO[bytes], name: str) -> None:
        self._name = name
        self._bytes = bytearray()
        self._total = 0
        self._lock = threading.Condition()
        self._begin(pipe)

    def _begin(self, pipe: IO[bytes]) -> None:
        os.set_blocking(pipe.fileno(), False)
        self._pipe = pipe
        self._ended = False
        self._thread = threading.Thread(target=self._follow, name=f"minrpc-{self._name}", daemon=True)
        self._thread.start()

    def text(self, position: int = 0) -> str:
        """The output after `position`, at most the last 256 KiB; bytes that are not UTF-8 are escaped."""
        with self._lock:
            self._take()
            kept = self._bytes[max(0, len(self._bytes) - self._total + position) :]
            return kept.decode("utf-8", "backslashreplace").replace("\r\n", "\n")

    @property
    def position(self) -> int:
        """Number of received bytes."""
        with self._lock:
            self._take()
            return self._total

    @property
    def ended(self) -> bool:
        """True if all writers are gone."""
        return self._ended

    def since(self, position: int, wait_s: float) -> tuple[bytes, int]:
        """The kept output after `position`, and the position behind it.

        Waits for its first byte, at most `wait_s` seconds, and not beyond the end.
        """
        with self._lock:
            self._take()
            self._lock.wait_for(lambda: self._total > position or self._ended, wait_s)
            new = self._total - position
            return (bytes(self._bytes[-new:]) if new else b""), self._total

    def finish(self, timeout_s: float) -> None:
        """Wait for the end of the pipe: when all writers are gone, the text is complete after this call."""
        self._thread.join(timeout_s)

    def go_on(self, pipe: IO[bytes], timeout_s: float) -> None:
        """Append the output of another process, after the end of the present one's."""
        self.close(timeout_s)
        self._begin(pipe)

    def close(self, timeout_s: float) -> None:
        """Stop reading and close the pipe. If a writer still runs, the reader's thread keeps the pipe."""
        self.finish(timeout_s)
        if not self._thread.is_alive():
            self._pipe.close()

    def _follow(self) -> None:
        readable = select.poll()
        readable.register(self._pipe.fileno(), select.POLLIN)
        while not self._ended:
            readable.poll()
            with self._lock:
                self._take()

    def _take(self) -> None:
        """Take the pipe's bytes by a single read. The caller holds the lock."""
        if self._ended:
            return
        try:
            data = os.read(self._pipe.fileno(), _PIPE_BYTES)
        except BlockingIOError:
            return
        self._ended = not data
        self._total += len(data)
        self._bytes += data
        del self._bytes[:-_TAIL_BYTES]
        self._lock.notify_all()


def output_tail(process: subprocess.Popen[bytes], name: str) -> TextTail:
    """The output of a process that `spawn` started, or its standard error if it has a link."""
    return TextTail(output_of(process), name)


def output_of(process: subprocess.Popen[bytes]) -> IO[bytes]:
    """The pipe of `output_tail`."""
    pipe = process.stdout or process.stderr
    assert pipe is not None
    return pipe


def spawn(
    argv: Sequence[str],
    *,
    link: int | None = None,
    pass_fds: Sequence[int] = (),
    on_one_cpu: bool = False,
    ends_itself: bool = False,
    foreign: bool = False,
) -> subprocess.Popen[bytes]:
    """Start `argv` in its own process group; the kernel kills it when this process ends.

    It has no input; its standard output and error both go to its `stdout` pipe.
    link: an open file that is its standard input and output; only errors then go to a pipe, `stderr`.
    on_one_cpu: all its threads share one of the CPUs that this process may use; each process gets the next
        CPU.
    ends_itself: the program itself has the kernel kill it when this process ends. The child then runs no code
        of ours, so this process is not copied first, which takes milliseconds.
    foreign: it runs foreign code, in `minrpc.host.sandbox` if that is up.
    """
    confined = foreign and sandbox.is_up()
    return _start(
        argv,
        input_from=subprocess.DEVNULL if link is None else link,
        output=subprocess.PIPE if link is None else link,
        errors=subprocess.STDOUT if link is None else subprocess.PIPE,
        pass_fds=pass_fds,
        cpu=_next_cpu() if on_one_cpu else None,
        ends_itself=ends_itself or confined,
        kind=sandbox.Confined if confined else subprocess.Popen,
    )


def _next_cpu() -> int:
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[next(_turns) % len(allowed)]


def ask_tool(
    command: Sequence[str], *, text: str | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a tool that answers a question, such as `gcc --version`, to its end, whatever its exit status.

    text: its standard input; by default none. env: its environment; by default this process's.

    Raises MissingError for a tool that can't be started, or does not end.
    """
    try:
        return subprocess.run(
            command,
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_S,
            check=False,
            env=env,
        )
    except OSError as error:
        raise MissingError(f"{command[0]} can't be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        reason = f"`{shlex.join(command)}` did not end within {_ANSWER_S:g} s"
        raise MissingError(reason, next_step="run it by hand") from error


def shell_words(text: str) -> list[str]:
    """The words of a command, as a shell splits them. Raises ConfigurationError for an open quotation."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ConfigurationError(f"{text}: {str(error).lower()}", next_step="close the quotation") from error


def run_command(argv: Sequence[str], limit_s: float) -> tuple[int | None, str]:
    """Run `argv` to its end: its exit status, None when it was killed after `limit_s` s, and output."""
    process = spawn(argv)
    output = output_tail(process, "command")
    status = exited_within(process, limit_s)
    stop_group(process)
    output.close(_AFTER_END_S)
    return status, output.text()


@contextmanager
def stopped_by(descriptor: int) -> Iterator[None]:
    """In the block, and its thread, compilers are stopped once `descriptor` is readable."""
    before = _stopped_by.set(descriptor)
    try:
        yield
    finally:
        _stopped_by.reset(before)


def run_compiler(
    command: Sequence[str], directory: Path, limit_s: float, env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run a compiler or linker in `directory`: its exit status, and the begin of its output.

    env: its environment; by default this process's.

    Raises FileNotFoundError, subprocess.TimeoutExpired.
    """
    words = sandbox.compiler_command(command, directory)
    with (
        (directory / "output").open("w+b") as output,
        subprocess.Popen(words, cwd=directory, env=env, stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        try:
            status = exited_within(process, limit_s, _stopped_by.get())
        finally:
            process.kill()
        if status is None:
            raise subprocess.TimeoutExpired(words, limit_s)
        output.seek(0)
        return status, output.read(_COMPILER_SAYS).decode(errors="replace")


def spawn_logged(
    argv: Sequence[str], log: Path, *, cwd: Path, env: Mapping[str, str], pass_fds: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Does the same as `spawn`, with the output added to the file `log`, below the command.

    It has a session of its own, since build tools put their children into further process groups, and a
    leader that ends them all when this process ends: see `minrpc.host.process_session`.
    """
    if shutil.which(argv[0], path=env.get("PATH")) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
    with log.open("ab") as output:
        output.write(f"$ {shlex.join(argv)}\n".encode())
        output.flush()
        led = argv
        if sys.platform == "linux":
            led = [sys.executable, "-I", "-S", process_session.__file__, str(os.getpid()), *argv]
        return _start(
            led, output=output, pass_fds=pass_fds, cwd=cwd, env=env, new_session=True, ends_itself=True
        )


def spawn_on(argv: Sequence[str], terminal: int) -> subprocess.Popen[bytes]:
    """Does the same as `spawn`, with the open file `terminal` as its input, output and errors."""
    return _start(argv, input_from=terminal, output=terminal, pass_fds=())


def _start(
    argv: Sequence[str],
    *,
    output: int | IO[bytes],
    pass_fds: Sequence[int],
    input_from: int = subprocess.DEVNULL,
    errors: int = subprocess.STDOUT,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    cpu: int | None = None,
    new_session: bool = False,
    ends_itself: bool = False,
    kind: type[subprocess.Popen[bytes]] = subprocess.Popen,
) -> subprocess.Popen[bytes]:
    parent = os.getpid()
    ready = ends_itself and cpu is None

    def start() -> subprocess.Popen[bytes]:
        return kind(
            argv,
            stdin=input_from,
            stdout=output,
            stderr=errors,
            pass_fds=pass_fds,
            cwd=cwd,
            env=env,
            process_group=None if new_session else 0,
            start_new_session=new_session,
            preexec_fn=None if ready or sys.platform != "linux" else lambda: _before_exec(parent, cpu),
        )

    return _launcher.run(start)


def _before_exec(parent: int, cpu: int | None) -> None:
    """Runs in the child, between fork and exec."""
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def stop_group(process: subprocess.Popen[bytes], grace_s: float = 0.0) -> int:
    """Wait `grace_s` seconds for the end of `process`, then kill it with its group; its exit status."""
    exited_within(process, grace_s)
    _kill_group(process.pid)
    return process.wait()


def stop_session(process: subprocess.Popen[bytes]) -> int:
    """Kill a process that `spawn_logged` started and all in its session, and wait for it; its exit status."""
    _kill_group(process.pid)
    process_session.kill_session(process.pid)
    return process.wait()


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def describe_status(status: int) -> str:
    """An exit status in words, as `subprocess.Popen.returncode` gives it."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def exited_within(process: subprocess.Popen[bytes], seconds: float, until: int | None = None) -> int | None:
    """The exit status, waiting up to `seconds` for it; None while the process runs on.

    until: a descriptor that ends the wait when it is readable. `process.wait` with a limit looks only every
        50 ms.
    """
    if process.poll() is None and seconds > 0.0:
        try:
            end = os.pidfd_open(process.pid)
        except ProcessLookupError:  # Another thread has waited for it meanwhile.
            return process.poll()
        try:
            ended = select.poll()
            for descriptor in (end, *([] if until is None else [until])):
                ended.register(descriptor, select.POLLIN)
            ended.poll(math.ceil(seconds * 1000))
        finally:
            os.close(end)
    return process.poll()
