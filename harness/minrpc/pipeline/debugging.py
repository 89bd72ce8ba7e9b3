# SPDX-License-Identifier: Apache-2.0
"""A debugger at a call: gdb in this terminal, with the symbols of the firmware and of loaded code."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from minrpc.client import Session
from minrpc.errors import ConfigurationError, HarnessError, MissingError
from minrpc.library import CFunctions, library_of
from minrpc.running import RunningDevice
from minrpc.running.gdb_server import GdbServer, gdb_server as _server_of

_PROGRAMS: Final = ("gdb-multiarch", "gdb")
# A person thinks longer than a call lasts.
_WITHOUT_LIMIT_S: Final = 1e6
_END_S: Final = 10.0


@contextmanager
def debug(
    lib: CFunctions, function: str, *, gdb: Sequence[str] = (), gdb_server: str | None = None
) -> Iterator[None]:
    """gdb in this terminal, stopped at the first call of `function` in the block:

    with minrpc.debug(lib, "scale"):
        lib.scale(data, 64, 3)

    gdb has the symbols and sources of the firmware and of everything that is loaded. Calls in the block have
    no time limit, and Ctrl-C is gdb's. The block ends when gdb has ended.

    gdb: further arguments for gdb, such as ["-batch", "-ex", "backtrace"].
    gdb_server: HOST:PORT of a board's probe (OpenOCD, pyOCD, probe-rs); QEMU and processes need none.

    Raises KeyError for an unknown function, ConfigurationError for a board without `gdb_server` and for a
    device that was not started here, MissingError without gdb, HarnessError if gdb ends before it attaches.
    """
    library = library_of(lib)
    symbol = library[function].function.symbol
    session: Session = library.session
    running = session.owner
    if not isinstance(running, RunningDevice) or running.image is None:
        raise ConfigurationError(
            f"{session.name}: its program is not known here", next_step="open the device by open_device"
        )
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="minrpc-gdb-")))
        server = stack.enter_context(_server_of(running, directory, gdb_server))
        script = directory / "commands"
        ready = directory / "ready"
        os.mkfifo(ready)
        commands = [
            *symbol_commands(running, directory),
            server.attach,
            f"break -qualified -function {symbol}",
        ]
        script.write_text("\n".join([*commands, f"shell echo > '{ready}'", "continue", ""]))
        stack.enter_context(_keyboard_is_gdbs())
        stack.enter_context(_without_limit(session))
        stack.enter_context(_gdb(["-x", str(script), *gdb], ready, server))
        yield


def symbol_commands(running: RunningDevice, directory: Path) -> list[str]:
    """gdb's commands that read the symbols; their files are written into `directory`."""
    assert running.image is not None
    program = running.image.program.elf
    content = program.content
    for code in running.image.loaded:
        content = type(program)(content, program.name).without_reserved(code.base)
    parts = [content, *(code.content for code in running.image.loaded)]
    files = [directory / f"{number}.elf" for number in range(len(parts))]
    for file, part in zip(files, parts, strict=True):
        file.write_bytes(part)
    places = running.firmware.places.named if running.firmware is not None else {}
    return [
        "set confirm off",
        *(f"set substitute-path {name} {path}" for name, path in places.items()),
        f"file {files[0]}",
        *(f"add-symbol-file {file}" for file in files[1:]),
    ]


@contextmanager
def _gdb(arguments: Sequence[str], ready: Path, server: GdbServer) -> Iterator[None]:
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        raise MissingError("gdb is not installed", next_step="run `sudo apt-get install gdb-multiarch`")
    # In this process's group, since gdb reads the terminal.
    with subprocess.Popen([program, "-q", "-nx", *arguments]) as process:
        ended = threading.Thread(target=_release, args=(process, server), name="minrpc-gdb")
        ended.start()
        try:
            _await(ready, process)
            yield
            _end(process, "the block with the debugger is over")
        except BaseException as error:
            _end(process, f"{type(error).__name__}: {error}")
            raise
        finally:
            ended.join()


def _release(process: subprocess.Popen[bytes], server: GdbServer) -> None:
    """Let the device run on when gdb has ended: a call may wait for it."""
    process.wait()
    server.release()


def _end(process: subprocess.Popen[bytes], text: str) -> None:
    """Give the user of gdb its prompt back, as Ctrl-C does; without a terminal gdb ends, or is ended."""
    if sys.stdin is not None and sys.stdin.isatty():
        if process.poll() is None:
            print(f"minrpc: {text}; `quit` ends gdb", file=sys.stderr)
            process.send_signal(signal.SIGINT)
        return
    for end in (process.terminate, process.kill):
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            end()


def _await(ready: Path, process: subprocess.Popen[bytes]) -> None:
    """Return once gdb is attached. Raises HarnessError if it ends before."""
    told = os.open(ready, os.O_RDONLY | os.O_NONBLOCK)
    ended = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(told, select.POLLIN)
        poll.register(ended, select.POLLIN)
        if told not in dict(poll.poll()):
            raise HarnessError("gdb ended before it was attached", next_step="its messages above say why")
    finally:
        os.close(told)
        os.close(ended)


@contextmanager
def _keyboard_is_gdbs() -> Iterator[None]:
    """Ctrl-C goes to gdb and to this process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # Unlike SIG_IGN, a handler is not inherited.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _without_limit(session: Session) -> Iterator[None]:
    before, session.call_timeout_s = session.call_timeout_s, _WITHOUT_LIMIT_S
    try:
        yield
    finally:
        session.call_timeout_s = before
