# SPDX-License-Identifier: Apache-2.0
"""Failures of a run: exceptions that name the next step.

All derive from `HarnessError`. `str(error)` is a report that fits one screen: the event, the stage, the
missing event and the time waited (wall time and the emulator's CPU time, seconds), the end of the device's
console, the last bytes on the wire, and the next step. `error.message` is the first line of it alone.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Self

STACK_RAN_OUT: Final = "the stack ran out"
"""Begins the message of a crash by a stack overflow."""

_WIDTH = 110
_CONSOLE_LINES = 8
_WIRE_BYTES = 48
_WIRE_LINES = 4
# Control characters except tabs and ends of lines: ESC and C1 move the cursor, BEL rings.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")


def visible(text: str) -> str:
    """`text` for a terminal: control characters, which a device may have sent, become escapes."""
    return _CONTROLS.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


class HarnessError(Exception):
    """Base of all failures.

    Every keyword is optional, and facts that are not known where the error is raised can be added further out
    by `add_context`: the client knows the wire, the device's owner knows its console.

    stage: the step that failed: "build", "boot", "session", "call add".
    waited_for: the missing event, in words that follow "waited for".
    wall_s, cpu_s: seconds that passed, and seconds of CPU time the emulator used of them.
    console_tail: the device's console, text; only its end is shown.
    wire_tail: the last bytes that came over the link, or an already formatted trace.
    next_step: advice to the user; each class has a default.
    details: further lines, the most important first.
    """

    own_code = False
    """True if a device crashed in its own code: other code may have damaged its memory before."""
    default_next_step: ClassVar[str] = "run `minrpc doctor`: it checks all that is needed here"
    most_details: ClassVar[int] = 8

    def __init__(
        self,
        message: str,
        *,
        stage: str | None = None,
        waited_for: str | None = None,
        wall_s: float | None = None,
        cpu_s: float | None = None,
        console_tail: str | None = None,
        wire_tail: bytes | str | None = None,
        next_step: str | None = None,
        details: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.stage = stage
        self.waited_for = waited_for
        self.wall_s = wall_s
        self.cpu_s = cpu_s
        self.console_tail = console_tail
        self.wire_tail = wire_tail
        self.next_step = next_step or self.default_next_step
        self.details = tuple(details)

    @property
    def message(self) -> str:
        """The failure in one line."""
        return str(self.args[0])

    def add_context(
        self,
        *,
        stage: str | None = None,
        waited_for: str | None = None,
        wall_s: float | None = None,
        cpu_s: float | None = None,
        console_tail: str | None = None,
        wire_tail: bytes | str | None = None,
    ) -> Self:
        """Fill in missing facts, and return the error itself. Facts that are set are kept."""
        self.stage = self.stage or stage
        self.waited_for = self.waited_for or waited_for
        self.wall_s = wall_s if self.wall_s is None else self.wall_s
        self.cpu_s = cpu_s if self.cpu_s is None else self.cpu_s
        self.console_tail = console_tail if self.console_tail is None else self.console_tail
        self.wire_tail = wire_tail if self.wire_tail is None else self.wire_tail
        return self

    def shows_all_of(self, console: str) -> bool:
        """True if this report has each line of a console's text."""
        tail = (self.console_tail or "").strip()
        return tail == console.strip() and len(tail.splitlines()) <= _CONSOLE_LINES

    def __str__(self) -> str:
        return "\n".join(map(visible, self._report()))

    def _report(self) -> list[str]:
        lines = [self.message]
        for line in self.details[: self.most_details]:
            lines += _wrap(line)
        if self.stage:
            lines.append(f"  stage: {self.stage}")
        if self.waited_for or self.wall_s is not None:
            lines.append(f"  waited: {self._waited()}")
        lines += _console_lines(self.console_tail)
        lines += _wire_lines(self.wire_tail)
        lines.append(f"  next: {self.next_step}")
        return lines

    def _waited(self) -> str:
        parts = [f"for {self.waited_for}"] if self.waited_for else []
        if self.wall_s is not None:
            parts.append(f"{self.wall_s:.1f} s")
        if self.cpu_s is not None:
            parts.append(f"(the emulator ran for {self.cpu_s:.1f} s of it)")
        return " ".join(parts)


def _wrap(line: str) -> list[str]:
    """All of `line`, wrapped and never cut: many tools put the advice at the end of a message."""
    text = line.expandtabs(4)
    indent = "  " + text[: len(text) - len(text.lstrip())]
    wrapped = textwrap.wrap(
        text.strip(), _WIDTH, initial_indent=indent, subsequent_indent=indent + "    ", break_on_hyphens=False
    )
    return wrapped or [""]


def _clip(line: str) -> str:
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"


def _console_lines(text: str | None) -> list[str]:
    if text is None:
        return []
    lines = text.strip().splitlines()
    if not lines:
        return ["  console: nothing was printed"]
    return ["  console, last lines:", *(_clip("    | " + line) for line in lines[-_CONSOLE_LINES:])]


def _wire_lines(wire: bytes | str | None) -> list[str]:
    if wire is None:
        return []
    if isinstance(wire, str):
        return ["  wire:", *(_clip("    " + line) for line in wire.splitlines()[-_WIRE_LINES:])]
    if not wire:
        return ["  wire: no byte came"]
    rows = [wire[-_WIRE_BYTES:][i : i + 24].hex(" ") for i in range(0, min(len(wire), _WIRE_BYTES), 24)]
    return ["  wire, last bytes received:", *("    " + row for row in rows)]


class ConfigurationError(HarnessError):
    """An option, an environment variable or a platform file is wrong."""

    default_next_step = "correct it, or run `minrpc platforms` for the names that are known"


class NoSuchBoardError(ConfigurationError):
    """The user's Zephyr has no board of that name."""


class ProgramFileError(ConfigurationError):
    """A program, an object or an archive can't be read: it is another kind of file, damaged or cut off."""

    default_next_step = "build it again, or name another file"


class ModuleError(ConfigurationError):
    """The file is not a TVM module for a device."""

    default_next_step = "load a file that export_library or write_to_file made for the device: .c, .o or .tar"


class BuildError(HarnessError):
    """The build of the firmware failed. `log_path` holds the tool's whole output, `details` its first
    errors."""

    default_next_step = "correct the first error above; the whole output is in the log file"
    most_details = 14

    def __init__(
        self,
        message: str,
        *,
        log_path: Path | None = None,
        details: Sequence[str] = (),
        next_step: str | None = None,
    ) -> None:
        super().__init__(message, stage="build", details=details, next_step=next_step)
        self.log_path = log_path

    def _report(self) -> list[str]:
        lines = super()._report()
        if self.log_path is not None:
            lines.insert(-1, f"  log: {self.log_path}")
        return lines


class CompileError(BuildError):
    """A source did not compile. The compiler's whole output follows."""

    default_next_step = "correct the first error above"

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message, next_step=self.default_next_step)
        self.stage = "compile"
        self.output = output

    def _report(self) -> list[str]:
        lines = super()._report()
        return [lines[0], *self.output.strip().splitlines()[:60], *lines[1:]]


class LinkerError(BuildError):
    """The code to load does not link against the firmware."""

    default_next_step = "add the source or the archive that has it: sources=[...] or libraries=[...]"


class UndefinedSymbolsError(LinkerError):
    """Symbols that neither the sources, nor the libraries, nor the firmware have. names: the symbols."""

    def __init__(self, message: str, names: Sequence[str] = (), details: Sequence[str] = ()) -> None:
        super().__init__(message, details=details, next_step=self.default_next_step)
        self.stage = "link"
        self.names = tuple(names)


class MissingError(HarnessError):
    """A required package is not installed, or is too old."""

    default_next_step = "run `minrpc doctor`: it prints the command that installs the missing package"


class ToolchainMissingError(MissingError):
    """No compiler for the platform's processor."""


class ZephyrMissingError(MissingError):
    """No Zephyr workspace was found, or it can't be used."""

    default_next_step = (
        "run `west init ~/zephyrproject && cd ~/zephyrproject && west update`, and set ZEPHYR_BASE to "
        "~/zephyrproject/zephyr"
    )


class QemuMissingError(MissingError):
    """The QEMU program that the platform needs is not installed, or is too old."""


class EmulatorExitedError(HarnessError):
    """The emulator, or the posix device, ended by itself.

    status: its exit status, negative for a signal (as in `subprocess.Popen.returncode`); None when not known.
    """

    default_next_step = "its output has the reason; `minrpc doctor` checks the tools that it needs"

    def __init__(self, message: str, *, status: int | None = None, details: Sequence[str] = ()) -> None:
        super().__init__(message, details=details)
        self.status = status


class MonitorError(HarnessError):
    """QEMU refused a command of its monitor."""

    default_next_step = "report this together with the version that `minrpc doctor` prints"


class NothingHeardError(HarnessError):
    """Not one byte came over the link after boot."""

    default_next_step = "check that the firmware was built for this platform and which UART carries RPC"


class SessionError(HarnessError):
    """The device refused the session or never answered its start."""

    default_next_step = "reset the device; check that nothing else talks to it and that baud rates agree"


class SessionTerminatedError(SessionError):
    """The device ended the running session: it rebooted, or another client took over."""

    default_next_step = "open the device again; if it reboots by itself, its console shows the reason"


class SessionEndedError(SessionError, ValueError):
    """An array, a function or a library belongs to a session that has ended."""

    default_next_step = "load the library again, and make its arrays again"


class RemoteError(HarnessError):
    """The device answered a request with an exception. `text` is the device's."""

    default_next_step = "check the call's arguments against the function's signature; the session goes on"

    @property
    def text(self) -> str:
        """The device's text."""
        return self.message


class FunctionNotFoundError(HarnessError, LookupError):
    """The device, or a module on it, has no function of that name."""

    default_next_step = "check the name, and that the function is linked into the firmware"


class DeviceMemoryError(RemoteError):
    """The device has too little memory for an allocation."""

    default_next_step = "free arrays that are no longer used, or build with a larger arena"


class ClockError(RemoteError):
    """A function has changed the device's clock while it was timed: its time is not known."""

    default_next_step = "time the function without the part that sets the clock"


class GuardError(RemoteError):
    """A function wrote outside of an array among its arguments."""

    default_next_step = "correct the function, or the count in its call; the session goes on"


class AccessError(GuardError):
    """A function accessed memory that it may not use, on a device that was opened with `check="memory"`."""

    default_next_step = "correct the function; its results are not taken, and the session goes on"


class LoadError(HarnessError):
    """Code can't be loaded into this device."""

    default_next_step = (
        "build its firmware with -DMINRPC_CODE_LOADING=ON, on Zephyr with CONFIG_MINRPC_CODE_LOADING=y"
    )


class RegisterError(HarnessError):
    """C accessed a register that Python can't answer, or the target can't trap accesses."""

    default_next_step = "name the register's peripheral in minrpc.registers, or correct the C code"


class LinkError(HarnessError):
    """Bytes were lost or damaged on the link. `counts` holds the counts by name."""

    default_next_step = "lower the baud rate, check the cable, or send smaller pieces"

    def __init__(
        self, message: str, *, counts: Mapping[str, int] | None = None, wire_tail: bytes | str | None = None
    ) -> None:
        self.counts = dict(counts or {})
        shown = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        super().__init__(message, wire_tail=wire_tail, details=[f"counted: {shown}"] if shown else [])


class LinkClosedError(HarnessError):
    """The far end of the link is gone: the emulator ended, or the socket or terminal was closed.

    by_us: this side had closed it.
    """

    by_us = False
    default_next_step = "see why the device went away: its console and the emulator's status say more"


class PortGoneError(LinkClosedError):
    """The serial port does not exist, or it vanished while in use (unplugged, or the board's USB reset)."""

    default_next_step = "plug the board in again; `ls /dev/serial/by-id` names the ports that are there"


class PortDeniedError(HarnessError):
    """The user may not open the serial port; for a moment also a port that udev is still setting up."""

    default_next_step = "add yourself to the port's group (`ls -l` shows it, often dialout) and log in again"


class PortBusyError(HarnessError):
    """Another process holds the serial port.

    holders: each as "name (pid N)"; empty when they may not be seen.
    """

    default_next_step = "end the process that holds it, or wait until it has finished"

    def __init__(self, message: str, *, holders: Sequence[str] = ()) -> None:
        shown = ", ".join(holders) or "a process of another user"
        super().__init__(message, stage="open link", details=[f"held by {shown}"])
        self.holders = tuple(holders)


class BoardBusyError(PortBusyError):
    """Another process uses each board that matches.

    holders: each as "BOARD: pid N of USER (COMMAND) for TIME"; BOARD is the port where a port is named.
    """

    default_next_step = "wait for it with --wait-board 10m, or end the process that holds it"


class AmbiguousBoardError(HarnessError):
    """Several boards match. `candidates` lists them."""

    default_next_step = "name one by its path under /dev/serial/by-id"

    def __init__(self, message: str, *, candidates: Sequence[str] = ()) -> None:
        super().__init__(message, stage="find board", details=candidates)
        self.candidates = tuple(candidates)


class FlashError(HarnessError):
    """The flash runner failed. `details` holds its last lines."""

    default_next_step = "run `west flash` by hand in the build directory and read the runner's output"


class ResetError(HarnessError):
    """A board can't be reset from here, or its reset command failed. `details` holds its output."""

    default_next_step = "reset it by its button, or correct reset_command or reset_line in minrpc.toml"


class WrongBoardError(HarnessError):
    """The device at a link was built for another board than the named board."""

    default_next_step = "name the connected board, or the port of the other board"


class BoardLostError(HarnessError):
    """A board does not answer any more, so it can't judge further candidates."""

    default_next_step = "reset it; reset_command or reset_line in minrpc.toml would do that after a crash"

    verdict: Any = None
    """The `tuning` result of its candidate; None without a result."""


class DialectError(HarnessError):
    """Host and device do not speak the same dialect of the protocol."""

    default_next_step = "give the TVM version that the device was built from, or rebuild its firmware"


class TimerError(HarnessError):
    """The device's timer does not advance, or it went back."""

    default_next_step = "check the timer of the device's firmware; a platform in QEMU has `--timing exact`"


class DeadlineError(HarnessError):
    """Time ran out. `stage`, `wall_s` and `cpu_s` are the step and the time.

    written: for a write that was cut short, the number of bytes that were sent.
    limit: the name of the limit if the user can set it, "call" or "total"; else "".
    """

    default_next_step = "look at the console; if the work is only slow, raise the stage's limit"
    written: int = 0
    limit: str = ""
