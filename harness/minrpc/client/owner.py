# SPDX-License-Identifier: Apache-2.0
"""The owner of a device: knowledge about the device that its link does not give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from minrpc.errors import HarnessError, LinkClosedError
from minrpc.host.deadline import Clock, Deadline, WallClock
from minrpc.host.process import TextTail
from minrpc.timing import Timebase
from minrpc.transport import Transport

if TYPE_CHECKING:  # The client passes these values on without using them.
    from minrpc.firmware import Firmware
    from minrpc.targets import Target


ASKING: Final = "the end of a function that asks Python"
"""The event that a `DeadlineError` has waited for when the device itself waits for this side."""


class DirectMemory(Protocol):
    """Memory of the device that this process sees too, while no request runs."""

    proved: bool | None
    """True if an address means the same bytes on both sides; None until a copy has tested it."""

    def has(self, address: int, nbytes: int) -> bool:
        """True if all `nbytes` at `address` lie in this memory."""

    def write(self, address: int, data: bytes | memoryview) -> None:
        """Copy `data` to `address` in this memory."""

    def read(self, address: int, nbytes: int) -> bytes:
        """The `nbytes` bytes at `address`."""


class Counters(Protocol):
    """Counts the device's timed batches from outside, as `minrpc.counters.QemuCounters` does."""

    @property
    def names(self) -> Mapping[str, str]:
        """Each counter's name and unit; "" for a plain number."""

    @property
    def windows(self) -> int:
        """Timed batches that have ended."""

    def note_code(self, base: int, size: int, name: str, program: bytes) -> None:
        """Notes loaded code, `size` bytes at `base`: its library's name, its ELF."""

    @property
    def refused(self) -> Mapping[str, str]:
        """Counters that are absent here and present elsewhere, each with the reason."""

    @property
    def estimate(self) -> str:
        """The source of its "cycles" and their error against hardware, in a line; "" without cycles."""

    def of_batches(self, since: int, names: Sequence[str] | None = None) -> list[dict[str, int]]:
        """The counters in `names`, or all, of each timed batch from number `since` on, the oldest first, by
        name."""

    def name_in_tree(self, name: str, address: int | None) -> str:
        """The name by which `inclusive` knows the C function at `address`, or the packed function `name`."""

    def inclusive(self, name: str, *, cycles: bool) -> Mapping[str, tuple[int, int]]:
        """Instructions, and estimated cycles, of a function's calls with its callees so far, each with the
        number of calls; empty if unknown."""


class Check(Protocol):
    """Judges calls from their record, as `minrpc.replay.MemoryCheck` does."""

    def note_code(self, base: int, size: int, name: str, program: bytes) -> None:
        """Does the same as `Counters.note_code`."""


class Owner(Protocol):
    """The object that started the device or attached to it, such as `minrpc.running.RunningDevice`."""

    @property
    def clock(self) -> Clock:
        """The clock that deadlines are charged by."""

    @property
    def timebase(self) -> Timebase:
        """The source of the device's clock."""

    @property
    def console_text(self) -> str | None:
        """The end of the text from a console beside the link; None if there is no such console."""

    @property
    def memory(self) -> DirectMemory | None:
        """Memory through which arrays can be copied without the link; None if there is none."""

    @property
    def console_tail(self) -> TextTail | None:
        """The console beside the link; None if there is none."""

    @property
    def counters(self) -> Counters | None:
        """The device's counters from outside; None if there are none."""

    @property
    def access_check(self) -> Check | None:
        """The judge of its calls; None if they are not judged."""

    @property
    def firmware(self) -> Firmware | None:
        """The firmware that was built and started; None if unknown."""

    @property
    def target(self) -> Target | None:
        """The target that was started, or attached to; None if unknown."""

    def names_of_board(self) -> Sequence[str]:
        """The names of the board that is expected at the link; none if any board is accepted."""

    def link_after_restart(self, deadline: Deadline) -> Transport | None:
        """Opens the link again after a restart of the device closed it; None for links that can't be opened
        again.

        Raises LinkClosedError if the device is not back in time.
        """

    def link_once_free(self, error: LinkClosedError, wait_s: float, deadline: Deadline) -> Transport:
        """The link, opened again after `wait_s`: it closed before the first byte, since another client had
        it.

        Raises `error` if the link can't be opened again, or no time is left.
        """

    @property
    def can_reset(self) -> bool:
        """True if the device can be reset from outside."""

    def start_again(self) -> str:
        """Starts a device again in which a function does not return, or which has ended.

        Its sessions are gone, and its link is the same. Returns a detail for the error; "" if it can't be
        started again.
        """

    def link_for_session(self, deadline: Deadline) -> Transport | None:
        """Called before a session: makes a device ready that hangs. Returns its link if that is a new one."""

    def session_began(self) -> None:
        """Called when a session has begun: a crash in the output so far is an earlier one."""

    def stray_accesses(self) -> HarnessError | None:
        """The error for the last request, if it is known to have accessed addresses at which the device has
        nothing."""

    def diagnose(self, error: HarnessError, said: str = "") -> HarnessError:
        """The error to raise in place of `error` from the link: if the device is dead, the error that reports
        it.

        said: the device's output over the link since the session began.
        """

    def note_program(self, elf: Path) -> None:
        """Registers the program that runs, which the device's build id has told."""

    def note_code(self, base: int, size: int, name: str, program: bytes) -> None:
        """Notes loaded code, as `Counters.note_code`, so that a crash in it is reported with its lines."""

    def peek(self, address: int, nbytes: int) -> bytes | None:
        """The bytes at the device's `address`, read without its help while no request runs; None if that is
        impossible."""

    def place_of(self, address: int) -> str:
        """Function, file and line of the code at `address`; the address if they are not known."""

    def reader(self, address: int, nbytes: int) -> Callable[[], bytes | None]:
        """A function that peeks at one place again and again; if it fails, it returns None or raises
        OSError."""


@dataclass(frozen=True)
class Unowned:
    """The owner of a device of which only the link is known."""

    clock: Clock = field(default_factory=WallClock)
    timebase: Timebase = field(default_factory=Timebase)
    console_text: str | None = None
    memory: DirectMemory | None = None
    console_tail: TextTail | None = None
    counters: Counters | None = None
    access_check: Check | None = None
    firmware: Firmware | None = None
    target: Target | None = None

    def names_of_board(self) -> Sequence[str]:
        """None: any device is accepted."""
        return ()

    def link_after_restart(self, deadline: Deadline) -> Transport | None:
        """None: the target is not known."""
        return None

    def link_once_free(self, error: LinkClosedError, wait_s: float, deadline: Deadline) -> Transport:
        """Raises `error`: how the link was opened is not known."""
        raise error

    @property
    def can_reset(self) -> bool:
        """False: who started the device is not known."""
        return False

    def start_again(self) -> str:
        """Does nothing: who started the device is not known."""
        return ""

    def link_for_session(self, deadline: Deadline) -> Transport | None:
        """None: the link stays."""
        return None

    def session_began(self) -> None:
        """Does nothing: no output is read."""

    def stray_accesses(self) -> HarnessError | None:
        """None: such accesses are not known."""
        return None

    def diagnose(self, error: HarnessError, said: str = "") -> HarnessError:
        """Returns `error` unchanged."""
        return error

    def note_code(self, base: int, size: int, name: str, program: bytes) -> None:
        """Does nothing: the code's lines are not needed here."""

    def note_program(self, elf: Path) -> None:
        """Does nothing: the program's lines are not needed here."""

    def peek(self, address: int, nbytes: int) -> bytes | None:
        """None: only the link leads to the device's memory."""
        return None

    def place_of(self, address: int) -> str:
        """The address."""
        return f"0x{address:x}"

    def reader(self, address: int, nbytes: int) -> Callable[[], bytes | None]:
        """Gives None, as `peek` does."""
        return lambda: None
