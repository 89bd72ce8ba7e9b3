# SPDX-License-Identifier: Apache-2.0
"""What a device's owner knows of it, and its link does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from minrpc.errors import HarnessError
from minrpc.host.deadline import Clock, WallClock
from minrpc.host.process import TextTail
from minrpc.timing import Timebase

if TYPE_CHECKING:  # The client hands these values on, and looks into none.
    from minrpc.firmware import Firmware
    from minrpc.targets import Target


class DirectMemory(Protocol):
    """Memory of the device that this process sees too, while no request runs."""

    proved: bool | None
    """Whether an address means the same bytes on both sides; None until a copy has shown it."""

    def has(self, address: int, nbytes: int) -> bool:
        """Whether all of it lies in this memory."""

    def write(self, address: int, data: bytes | memoryview) -> None:
        """Write there."""

    def read(self, address: int, nbytes: int) -> bytes:
        """Read there."""


class Counters(Protocol):
    """What counts the device's timed batches from outside: `minrpc.counters.QemuCounters` is one."""

    @property
    def names(self) -> Mapping[str, str]:
        """What it counts, and the unit; "" for a number of something."""

    @property
    def windows(self) -> int:
        """Timed batches that have ended."""

    def note_code(
        self, base: int, size: int, functions: Mapping[str, tuple[int, int]], program: bytes
    ) -> None:
        """Code was loaded, `size` bytes at `base`: address and bytes of its functions by name, its ELF."""

    @property
    def refused(self) -> Mapping[str, str]:
        """Names of what it can't count here, though it can elsewhere, and why."""

    @property
    def estimate(self) -> str:
        """Where its "cycles" are from, and how far they were from hardware's: a line; "" without them."""

    def of_batches(self, since: int, names: Sequence[str] | None = None) -> list[dict[str, int]]:
        """The counters of each timed batch from number `since` on, the oldest first, by name: those of
        `names`, or all."""


class Owner(Protocol):
    """Who started the device, or attached to it: `minrpc.running.RunningDevice` is one."""

    @property
    def clock(self) -> Clock:
        """Charges deadlines."""

    @property
    def timebase(self) -> Timebase:
        """What drives the device's clock."""

    @property
    def console_text(self) -> str | None:
        """The end of what came over a console beside the link; None where there is none."""

    @property
    def memory(self) -> DirectMemory | None:
        """What arrays can go through instead of the link; None where there is none."""

    @property
    def console_tail(self) -> TextTail | None:
        """That console itself."""

    @property
    def counters(self) -> Counters | None:
        """What counts it from outside; None where nothing does."""

    @property
    def firmware(self) -> Firmware | None:
        """The firmware that was built and started; None where it is not known."""

    @property
    def target(self) -> Target | None:
        """The target that was started, or attached to; None where it is not known."""

    def diagnose(self, error: HarnessError) -> HarnessError:
        """The error to raise for one that the link met: that the device is dead, if it is."""

    def note_code(
        self, base: int, size: int, functions: Mapping[str, tuple[int, int]], program: bytes
    ) -> None:
        """Code was loaded: as `Counters.note_code`, so that a crash in it is told with its lines."""


@dataclass(frozen=True)
class Unowned:
    """The owner of a device of which nothing is known but its link."""

    clock: Clock = field(default_factory=WallClock)
    timebase: Timebase = field(default_factory=Timebase)
    console_text: str | None = None
    memory: DirectMemory | None = None
    console_tail: TextTail | None = None
    counters: Counters | None = None
    firmware: Firmware | None = None
    target: Target | None = None

    def diagnose(self, error: HarnessError) -> HarnessError:
        """The error as it is."""
        return error

    def note_code(
        self, base: int, size: int, functions: Mapping[str, tuple[int, int]], program: bytes
    ) -> None:
        """Nobody asks for it."""
