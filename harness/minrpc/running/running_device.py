# SPDX-License-Identifier: Apache-2.0
"""A running device: its link, its console, its clock, and how it is stopped."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import IO, Final, NamedTuple, Self

from minrpc.client.owner import ASKING
from minrpc.counters import QemuCounters
from minrpc.counters.image import Image, LoadedCode
from minrpc.errors import (
    DeadlineError,
    EmulatorExitedError,
    HarnessError,
    LinkClosedError,
    SessionTerminatedError,
)
from minrpc.firmware.firmware import Firmware
from minrpc.host.deadline import Clock, Deadline, ProcessClock
from minrpc.host.forks import stay_own
from minrpc.host.process import (
    TextTail,
    describe_status,
    exited_within,
    output_of,
    output_tail,
    stop_group,
)
from minrpc.host.sandbox import program_of
from minrpc.replay import MemoryCheck
from minrpc.rtl import Recording
from minrpc.running.board import can_reset, come_back, reset_board
from minrpc.running.crash import Registers, explain, hang, parse_registers, stack_words
from minrpc.running.last_words import last_words, place_told
from minrpc.running.lease import Lease
from minrpc.running.process_memory import ProcessMemory
from minrpc.running.qemu_monitor import QemuMonitor
from minrpc.running.shared_memory import SharedMemory
from minrpc.running.strays import is_told, stray_error, strays
from minrpc.targets import Icount, Platform, Target, Timing
from minrpc.targets.target import UNKNOWN_BOARD
from minrpc.timing.clock import Timebase
from minrpc.transport import FdTransport, ParentsLink, Transport, is_tcp, processes_with_open

# Seconds until an emulator that was asked to end is killed: it only has to leave its main loop.
_QUIT_S: Final = 5.0
# A program whose link hung up ends by itself, and has time for its last output.
_HANG_UP_S: Final = 0.5
# Seconds to wait for a process after its link has closed.
_EXIT_S: Final = 2.0
# QEMU's monitor commands for a machine that does not answer.
_LOOK_S: Final = 2.0
_RESET_S: Final = 10.0
_START_S: Final = 30.0
_NO_RESET: Final = (
    "it may still run: reset the board; reset_line or reset_command in minrpc.toml would reset it"
)
_WHAT_ENDS_IT: Final = (
    "look in the function for a fault within a fault, or a write to a register that ends the machine"
)
_WHAT_ENDS_A_PROGRAM: Final = "look in the function for a call that ends the program, such as _exit"
_WHAT_RESETS_IT: Final = (
    "look in the function for a reset, such as NVIC_SystemReset, or a watchdog: no crash was reported"
)
# Prefix of the name of a stage in which a function runs.
_CALL: Final = "call "
_STACK_WORDS: Final = 512
_OUTPUT_LINES: Final = 6


class Started(NamedTuple):
    """A new process of the firmware, with this process's ends.

    qemu, console: QEMU's monitor and the console's output.
    release: closes this process's copy of the device's end, once the emulator has opened it.
    """

    process: subprocess.Popen[bytes]
    link: FdTransport
    qemu: QemuMonitor | None = None
    console: IO[bytes] | None = None
    release: Callable[[], None] | None = None


@dataclass(eq=False)
class RunningDevice:
    """A device with an open link. Also a context manager, which stops it.

    target: the target that was started or attached to.
    transport: the link that carries RPC.
    clock: the clock that a Deadline for this device charges.
    timing: "exact" (QEMU counts instructions), "wall" (host time), "board".
    firmware: the firmware that was built and started; None for a device that was attached to.
    icount: QEMU's instruction counting, with "exact".
    process: the emulator, or the device's own process; None for a board.
    console_tail: the console; None if there is none.
    output_tail: the emulator's own output.
    memory: device memory that this process shares; None if there is none.
    counters: counters of the guest in QEMU, if it was started with them.
    recording: calls on a core's RTL, cycle by cycle.
    access_check: records and judges calls in QEMU, if it was started with it.
    lease: the right to use the board; None for a device that was started here.
    hangs: True if a function on a board has not returned, and the next session begins with a reset.
    spawn_again: starts another process of the same program; an emulator's waits for `run`. None for a board.
    tells_strays: the emulator's output has accesses to addresses at which its machine has nothing.
    """

    name: str
    target: Target
    transport: Transport
    clock: Clock
    timing: Timing
    firmware: Firmware | None = None
    icount: Icount | None = None
    process: subprocess.Popen[bytes] | None = None
    console_tail: TextTail | None = None
    output_tail: TextTail | None = None
    qemu: QemuMonitor | None = None
    memory: SharedMemory | None = None
    counters: QemuCounters | None = None
    recording: Recording | None = None
    access_check: MemoryCheck | None = None
    lease: Lease | None = None
    spawn_again: Callable[[], Started] | None = None
    tells_strays: bool = False
    hangs: bool = field(default=False, init=False)
    _before_session: int = field(default=0, init=False)
    _looked_at: int = field(default=0, init=False)
    # The emulator's output up to the first session.
    _of_boot: frozenset[str] = field(default=frozenset(), init=False)
    _stopped: bool = field(default=False, init=False)
    _ended: EmulatorExitedError | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        stay_own(self)

    def leave_to(self, process: int) -> None:
        """Does the same as `Owner.leave_to` of forks."""
        self._stopped = True
        self.transport = ParentsLink(self.transport, process)

    @property
    def platform(self) -> Platform:
        """The platform of its target."""
        return self.target.platform

    @property
    def console_text(self) -> str:
        """The end of the device's output; "" if it has no console."""
        return self.console_tail.text() if self.console_tail else ""

    @property
    def output(self) -> str:
        """The end of the emulator's own output."""
        return self.output_tail.text() if self.output_tail else ""

    @property
    def timebase(self) -> Timebase:
        """The source of the device's clock."""
        shift = self.icount.shift if self.icount else None
        source, counts = self.platform.clock, self.platform.clock_counts
        return Timebase(mode=self.timing, source=source, counts=counts, icount_shift=shift)

    def names_of_board(self) -> tuple[str, ...]:
        """The names that the user has for the board at a link; none if the user named none."""
        platform = self.platform
        if not self.target.attached or platform.name == UNKNOWN_BOARD:
            return ()
        return (platform.zephyr_board,) if platform.zephyr_board else (platform.name,)

    def alive(self) -> bool:
        """True if the process runs; always True for a board, which can't be checked."""
        return self.process is None or self.process.poll() is None

    def is_unplugged(self) -> bool:
        """True if a board's link is gone; False for a link that does not tell without a transfer."""
        link = self.transport
        return self.process is None and isinstance(link, FdTransport) and link.is_gone()

    def check(self) -> None:
        """Raise EmulatorExitedError when the process has ended by itself and no request has reported that."""
        if not self._stopped and not self.alive() and self._ended is None:
            raise self._exited()

    def start_again(self) -> str:
        """Does the same as `Owner.start_again`. A board is reset before the next session."""
        if self.process is None:
            self.hangs = self.can_reset
            return "the board is reset before the next session" if self.hangs else _NO_RESET
        if self._stopped or self._was_ended():
            return ""
        try:
            self.reset(Deadline("reset", _RESET_S, self.clock))
        except HarnessError:
            return ""
        return "it was started again: arrays, functions and libraries are gone"

    def _was_ended(self) -> bool:
        """True if the process was killed from outside, or because this side has closed the link."""
        assert self.process is not None
        link = self.transport
        closed = isinstance(link, FdTransport) and link.fileno() < 0
        return closed or self.process.poll() in (-signal.SIGKILL, -signal.SIGTERM)

    def link_for_session(self, deadline: Deadline) -> Transport | None:
        """Does the same as `Owner.link_for_session`. Raises as `reset` does."""
        if not self.hangs:
            return None
        before = self.transport
        self.reset(deadline)
        return None if self.transport is before else self.transport

    def link_after_restart(self, deadline: Deadline) -> Transport | None:
        """Opens the board's link again after a restart closed it; None for a device that runs on this
        machine.

        Raises LinkClosedError if the port is not back in time.
        """
        if self.process is not None or self._stopped:
            return None
        self.transport.close()
        self.transport = come_back(self.target, deadline)
        return self.transport

    def link_once_free(self, error: LinkClosedError, wait_s: float, deadline: Deadline) -> Transport:
        """The board's TCP link, opened again after `wait_s`: a device that serves a client refuses others.

        Raises `error` for other links, and when there is no time left; LinkClosedError as `start` does.
        """
        if self._stopped or not is_tcp(self.target.serial_port or ""):
            raise error
        error.next_step = "another client may have the device, which serves one at a time: try again later"
        if deadline.remaining() <= wait_s:
            raise error
        self.transport.close()
        self.transport = come_back(self.target, deadline, wait_s)
        return self.transport

    def session_began(self) -> None:
        """Does the same as `Owner.session_began`."""
        tail = self._tail_of_crashes
        self._before_session = tail.position if tail is not None else 0
        if self.output_tail is not None:
            if self.tells_strays and not self._looked_at:
                self._of_boot = frozenset(self.output_tail.text().splitlines())
            self._looked_at = self.output_tail.position

    def stray_accesses(self) -> HarnessError | None:
        """Does the same as `Owner.stray_accesses`."""
        told = self._strays()
        return stray_error(told, self.name) if told else None

    def _strays(self, without: Collection[str] = ()) -> list[str]:
        """Accesses since the last look to addresses at which the machine has nothing.

        without: lines of the log that are left out.
        """
        tail = self.output_tail
        if not self.tells_strays or tail is None or tail.position == self._looked_at:
            return []
        log = tail.text(self._looked_at)
        self._looked_at = tail.position
        return strays("\n".join(line for line in log.splitlines() if line not in without), self._regions)

    def _regions(self) -> str:
        """QEMU's map of memory; "" if it can't be asked."""
        assert self.qemu is not None
        with suppress(HarnessError):
            return self.qemu.ask("info mtree", Deadline("look at the log", _LOOK_S, self.clock))
        return ""

    def diagnose(self, error: HarnessError, said: str = "") -> HarnessError:
        """The error to raise for `error` on the link: the emulator's end, else `error` with details added.

        The details are the console's text and, for a board, other readers of its port.

        said: the device's output over the link since the session began.
        """
        if isinstance(error, LinkClosedError) and not error.by_us and self.process and not self._stopped:
            exited_within(self.process, _EXIT_S)
        if not self._stopped and not self.alive():
            ended = self._exited(error.stage, said).add_context(
                waited_for=error.waited_for, wall_s=error.wall_s, cpu_s=error.cpu_s
            )
            self._ended = self._ended or ended
            return ended
        if self.process is None:
            others = processes_with_open(self.name)
            error.details += (f"{self.name} is open in {', '.join(others)} too",) if others else ()
        error.add_context(console_tail=self.console_text if self.console_tail else None)
        before = self._strays(without=self._of_boot)  # A device that has crashed boots again.
        if isinstance(error, SessionTerminatedError):
            if not self._explain_crash(error, said) and (error.stage or "").startswith(_CALL):
                error.next_step = _WHAT_RESETS_IT
        elif isinstance(error, DeadlineError) and error.waited_for != ASKING:
            error.details += tuple(self._where_it_hangs(asked=bool(error.details)))
        error.details += tuple(line for line in before if not is_told(line, error.message))
        return error

    def note_program(self, elf: Path) -> None:
        """Register the program of a board, so that a crash in it or in loaded code is reported with its
        lines."""
        if self.image is None or self.image.path != elf:
            self.image = Image(elf)

    def note_code(self, base: int, size: int, name: str, program: bytes) -> None:
        """Register loaded code, as `QemuCounters.note_code` does, so that a crash in it is reported with its
        lines."""
        if self.image is not None:
            self.image.note_code(LoadedCode(base, size, name, program))

    def peek(self, address: int, nbytes: int) -> bytes | None:
        """The bytes at `address`, of an emulator that shares its memory or of a process; None for other
        devices."""
        if self.memory is not None and self.memory.has(address, nbytes):
            return self.memory.read(address, nbytes)
        return self._process_memory.read(address, nbytes) if self._process_memory is not None else None

    def reader(self, address: int, nbytes: int) -> Callable[[], bytes | None]:
        """Does the same as `Owner.reader`."""
        if self.memory is not None and self.memory.has(address, nbytes):
            return partial(self.memory.read, address, nbytes)
        if self._process_memory is not None:
            return self._process_memory.reader(address, nbytes)
        return lambda: None

    @cached_property
    def _process_memory(self) -> ProcessMemory | None:
        is_process = self.process is not None and self.platform.starts == "process"
        return ProcessMemory(program_of(self.process)) if self.process is not None and is_process else None

    def place_of(self, address: int) -> str:
        """Function, file and line of the code at `address`, also of loaded code."""
        return f"0x{address:x}" if self.image is None else self.image.place_of(address)

    @cached_property
    def image(self) -> Image | None:
        """The program that runs; None if unknown."""
        elf = self.firmware.elf if self.firmware is not None else self.target.elf
        return Image(elf) if elf is not None else None

    @property
    def _tail_of_crashes(self) -> TextTail | None:
        """The output in which a crash is reported beside the link."""
        return self.output_tail if self.platform.starts == "rtl" else self.console_tail

    def _explain_crash(self, error: HarnessError, said: str) -> bool:
        """Put the explanation of the last words since the session began in front; False if there are none."""
        tail = self._tail_of_crashes
        words = last_words((tail.text(self._before_session) if tail is not None else "") + said)
        if words is None or self.image is None:
            return words is not None
        called = (error.stage or "").partition(_CALL)[2].removesuffix(" (timed)")
        explained = explain(words, self.image, self.firmware, called)
        error.args = (f"{explained.reason}; {error.message}",)
        error.details = (*explained.callers, *error.details)
        error.own_code = explained.own_code
        step = explained.step if not explained.own_code else "look for writes past an array"
        error.next_step = f"{step}, then load it again"
        if self.platform.starts == "rtl" and "the core does not have" in explained.reason:
            error.next_step = "the code is RV32IMC: give the core multiplication, division, compressed code"
        return True

    def _where_it_hangs(self, *, asked: bool) -> list[str]:
        """The processor's present place, from QEMU or the process; nothing if neither can be asked.

        asked: the function has asked Python. If the device still waits for the answer, its place is known.
        """
        if self.image is None:
            return []
        if self.qemu is None:
            return self._where_process_hangs(self.image, asked=asked)
        deadline = Deadline("look where it hangs", _LOOK_S, self.clock)
        try:
            self.qemu.order("stop", deadline)
            registers = parse_registers(self.image.machine, self.qemu.ask("info registers", deadline))
            if registers is None:
                return []
            size = 8 if self.image.wide else 4
            letter = "g" if self.image.wide else "w"
            command = f"x /{_STACK_WORDS}{letter}x 0x{registers.sp:x}"
            stack = list(stack_words(self.qemu.ask(command, deadline), size))
            return hang(registers, stack, self.image, self.firmware, asked=asked)
        except HarnessError:
            return []
        finally:
            self.qemu.send("cont")

    def _where_process_hangs(self, image: Image, *, asked: bool) -> list[str]:
        """The present place of a program of this machine, or of a core's: its handler of SIGURG prints it."""
        tail = self.output_tail if self.platform.starts == "rtl" else self.console_tail
        answers = self.platform.starts in ("rtl", "process")
        if self.process is None or tail is None or not answers:
            return []
        position, text, end = tail.position, "", time.monotonic() + _LOOK_S
        self.process.send_signal(signal.SIGURG)
        while (place := place_told(text)) is None:
            new, position = tail.since(position, end - time.monotonic())
            if not new or time.monotonic() > end:
                return []
            text += new.decode("ascii", "replace")
        pc, callers = place
        return hang(Registers(pc, 0, None), callers, image, self.firmware, asked=asked)

    def reset(self, deadline: Deadline) -> None:
        """Reset the machine, as its reset button does: under QEMU, or a board with a reset command or line. A
        process is ended and started again, and an emulator that has ended is started again.

        Its sessions are gone, and a board's link may be, too: `connect` again. Raises ResetError if it can't
        be reset or the reset failed; PortGoneError, DeadlineError, EmulatorExitedError.
        """
        self.hangs = False
        if self.process is None:
            self.transport = reset_board(self.target, self.transport, deadline)
        elif self.qemu is not None and self.alive():
            self.qemu.order("system_reset", deadline)
        else:
            self._spawn_again(self.process)

    def _spawn_again(self, process: subprocess.Popen[bytes]) -> None:
        assert self.spawn_again is not None
        assert isinstance(self.transport, FdTransport)
        stop_group(process)
        if self._process_memory is not None:
            self._process_memory.close()
        self.__dict__.pop("_process_memory")
        started = self.spawn_again()
        self.process, self._ended = started.process, None
        self.transport.go_on(started.link)
        self.clock = ProcessClock(program_of(self.process))
        if self.console_tail is not None:
            self.console_tail.go_on(started.console or output_of(self.process), _EXIT_S)
        if self.output_tail is not None:
            self.output_tail.close(_EXIT_S)
            self.output_tail = output_tail(self.process, "emulator")
            self._before_session = 0 if self.console_tail is None else self._before_session
        if self.qemu is not None and started.qemu is not None:
            self.qemu.go_on(started.qemu)
            try:
                self.run(started, Deadline("start QEMU", _START_S, self.clock))
            except BaseException:
                stop_group(self.process)
                raise

    def run(self, started: Started, deadline: Deadline) -> None:
        """Lets a paused emulator run, once it has opened its end of the link."""
        assert self.qemu is not None
        assert started.release is not None
        try:
            self.qemu.open(deadline)
        finally:
            started.release()
        self.qemu.order("cont", deadline)

    @property
    def can_reset(self) -> bool:
        """True if the device can be reset."""
        return self.process is not None or can_reset(self.target)

    def stop(self) -> None:
        """End it and everything it started, and close the link. A second call does nothing."""
        if self._stopped:
            return
        self._stopped = True
        self.transport.close()
        if self.lease is not None:
            self.lease.release()
        if self.process is not None:
            stop_group(self.process, _QUIT_S if self._quit() else _HANG_UP_S)
        if self.qemu is not None:
            self.qemu.close()
        for shared in (self.memory, self.recording):
            if shared is not None:
                shared.close()
        if self._process_memory is not None:
            self._process_memory.close()
        if self.counters is not None:
            self.counters.close()
        if self.access_check is not None:
            self.access_check.recorder.close()
        for tail in self._tails():
            tail.close(_EXIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _quit(self) -> bool:
        """Ask the emulator to end; returns False if it can't be asked."""
        if self.qemu is None or not self.qemu.ready or not self.alive():
            return False
        try:
            self.qemu.send("quit")
        except HarnessError:
            return False
        return True

    def _tails(self) -> list[TextTail]:
        return [tail for tail in (self.console_tail, self.output_tail) if tail is not None]

    def _exited(self, stage: str | None = None, said: str = "") -> EmulatorExitedError:
        for tail in self._tails():
            tail.finish(_EXIT_S)
        status = self.process.poll() if self.process else None
        error = exited_error(self.name, status, self.output).add_context(
            stage=stage, console_tail=self.console_text if self.console_tail else None
        )
        if self._ended is not None and self._ended.stage:
            error.details += (f"that was in an earlier request: {self._ended.stage}",)
        if self._was_ended() or self._explain_crash(error, said) or not (stage or "").startswith(_CALL):
            return error
        error.details = (*self._place_of_lockup(), *error.details)
        if self.qemu is not None or (status or 0) >= 0:
            error.next_step = _WHAT_ENDS_IT if self.qemu is not None else _WHAT_ENDS_A_PROGRAM
        return error

    def _place_of_lockup(self) -> list[str]:
        """The place in the code at which QEMU gave up; nothing if it does not tell, or no function is there.

        It tells the registers of an Arm core that locks up.
        """
        told = parse_registers(self.image.machine, self.output) if self.image is not None else None
        if told is None or self.image is None or self.image.function_at(told.pc & ~1) is None:
            return []
        return hang(told, [], self.image, self.firmware, asked=False)


def exited_error(name: str, status: int | None, output: str) -> EmulatorExitedError:
    """The error for a process of `name` that ended by itself, with its `output`."""
    how = "unknown status" if status is None else describe_status(status)
    lines = [line for line in output.splitlines() if line.strip()]
    first = next((at for at, line in enumerate(lines) if "fatal: " in line), -_OUTPUT_LINES)
    lines = lines[first:][:_OUTPUT_LINES]
    return EmulatorExitedError(f"{name} ended by itself: {how}", status=status, details=lines)
