# SPDX-License-Identifier: Apache-2.0
"""The device that all tests of a target share: built and started once, replaced after a test has failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from minrpc.client.lent_transport import LentTransport
from minrpc.counters import counters_for
from minrpc.counters.coverage import add_coverage, covered_lines
from minrpc.errors import EmulatorExitedError, HarnessError, visible
from minrpc.firmware import Firmware, build
from minrpc.host.deadline import Deadline
from minrpc.pipeline import Device, connect
from minrpc.pipeline.post_mortem import state_lines
from minrpc.plugin.board_pool import PooledBoard
from minrpc.running import RunningDevice, start
from minrpc.running.board import await_port
from minrpc.targets import Target

_RESET_S: Final = 60.0
_ADVICE: Final = "; reset_command or reset_line in minrpc.toml would reset it after a failure"


@dataclass
class SharedDevice:
    """Owns a target's firmware and its running device.

    total: the deadline for the whole run.
    say: shows a line of progress.
    coverage: the file to which executed lines are added; None for no coverage.
    coverage_of_all: True to add lines of the firmware's own sources and of Zephyr, too.
    boot_s: duration of the last start, in seconds.
    unusable: the reason why the last started device never worked; "" if it worked, or none was started.
    """

    target: Target
    total: Deadline
    say: Callable[[str], None]
    coverage: Path | None = None
    coverage_of_all: bool = False
    boot_s: float = field(default=0.0, init=False)
    unusable: str = field(default="", init=False)
    _firmware: Firmware | None = field(default=None, init=False)
    _running: RunningDevice | None = field(default=None, init=False)
    _lent: LentTransport | None = field(default=None, init=False)
    _device: Device | None = field(default=None, init=False)
    _answered: bool = field(default=False, init=False)
    _worked: bool = field(default=False, init=False)
    _spoiled: bool = field(default=False, init=False)
    _pool: PooledBoard | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """A board of a hardware map may be replaced by another."""
        if self.target.hardware_map is not None and self.target.board is None:
            self._pool = PooledBoard(self.target, self.total, self.say)

    @property
    def name(self) -> str:
        """The target's name."""
        return self.target.name

    @property
    def firmware(self) -> Firmware | None:
        """The firmware built for the target; None for an attached device."""
        own = self.target.attached and self.target.build_dir is None
        if self._firmware is None and not own:
            self._firmware = self._build()
        return self._firmware

    @property
    def running(self) -> RunningDevice:
        """The running device; starts it if it does not run: also if it has ended since the last test."""
        if self._running is not None and (
            self._has_ended() or (self._pool is not None and not self._answers())
        ):
            self.discard()
        if self._running is None:
            begin = time.monotonic()
            with self._once_or_never():
                self._running = self._start()
            self.boot_s = time.monotonic() - begin
        return self._running

    def _has_ended(self) -> bool:
        """True if the process has ended, whose end no test is to blame for."""
        assert self._running is not None
        try:
            self._running.check()
        except EmulatorExitedError as error:
            self.say(f"{error.message}, between two tests; it is started again")
        if self._running.is_unplugged():
            self.say(f"{self._running.name} went away between two tests; it is opened again")
            return True
        return not self._running.alive()

    def _answers(self) -> bool:
        """True if the board still starts a session: others of its kind could take its place."""
        assert self._running is not None
        try:
            with connect(self._running, total=self.total) as device:
                device.connect()
        except HarnessError:
            return False
        return True

    def open(self, *, from_boot: bool = False) -> Device:
        """The device with a new session: arrays and code of earlier sessions are gone.

        from_boot: its console begins at the device's boot, not at the session's start.
        """
        running = self.running
        self._lent = LentTransport(running.transport)
        device = connect(running, total=self.total, transport=self._lent, from_boot=from_boot)
        self._device = device
        with self._once_or_never():
            device.connect()
            self._answered = self._worked = True
        return device

    @contextmanager
    def _once_or_never(self) -> Iterator[None]:
        """Remembers a failed start, so that later tests do not wait for another."""
        try:
            yield
        except HarnessError as error:
            no_way = self._running is not None and not self._running.can_reset and self._pool is None
            advice = _ADVICE if no_way and self.target.serial_port is not None else ""
            self.unusable = "" if self._answered else f"{error.message}{advice}"
            raise

    def close(self) -> None:
        """Stop the running device, and free its board."""
        try:
            self.discard()
        finally:
            if self._pool is not None:
                self._pool.release()

    def check(self) -> None:
        """Raise EmulatorExitedError when the device has died unnoticed. The next test gets a new device."""
        running = self._running
        if running is not None and not running.alive():
            try:
                running.check()
            finally:
                self.discard()

    def discard(self) -> None:
        """Stop the running device. The next test gets a new device, which must first answer.

        A board can't be replaced: it is reset if minrpc.toml has a way to reset it.
        """
        self._answered, self._spoiled = False, True
        running, self._running, self._device = self._running, None, None
        if running is not None:
            try:
                self._add_coverage(running)
            finally:
                running.stop()

    def properties(self) -> dict[str, object]:
        """Properties for the JUnit report: platform, clock, boot time in seconds, sizes in bytes."""
        running = self.running
        known: dict[str, object] = {
            "platform": self.name,
            "timing": running.timing,
            "boot_s": round(self.boot_s, 3),
        }
        if self._pool is not None:
            known |= {"board": self._pool.name}
        if self.firmware is not None:
            sizes = self.firmware.sizes
            known |= {"firmware": self.firmware.content_hash[:16]}
            known |= {"flash_bytes": sizes.flash, "ram_bytes": sizes.ram}
        return known

    def sections(self, error: BaseException | None = None) -> list[tuple[str, str]]:
        """Titles and texts for a failed test's report, without a console that `error` already shows."""
        sections = []
        console = self._running.console_text if self._running is not None else ""
        if console and not (isinstance(error, HarnessError) and error.shows_all_of(console)):
            sections.append((f"{self.name}: console", visible(console)))
        if self._lent is not None and self._lent.trace():
            sections.append((f"{self.name}: wire", self._lent.trace()))
        if self._running is not None:
            lines = state_lines(self._running, self._device)
            sections.append((f"{self.name}: link and memory", "\n".join(lines)))
        return sections

    def _build(self) -> Firmware:
        self.say(f"{self.name}: firmware")
        firmware = build(self.target)
        how = "from cache" if firmware.cached else "built"
        self.say(f"{self.name}: firmware {how} in {firmware.seconds:.1f} s")
        return firmware

    def _add_coverage(self, running: RunningDevice) -> None:
        if self.coverage is not None and running.counters is None:
            self.say(f"{self.name}: its lines are not in the coverage: it does not run under QEMU")
        if self.coverage is not None and running.counters is not None and running.firmware is not None:
            counters = running.counters
            firmware = running.firmware
            source = firmware.source if self.coverage_of_all else firmware.users_source
            lines = covered_lines(counters.image, counters.executed_by_code(), source)
            add_coverage(self.coverage, lines)
            if counters.unknown_code:
                self.say(
                    f"{self.name}: {counters.unknown_code:,} bytes of loaded code are not in the coverage"
                )

    def _start(self) -> RunningDevice:
        if self._pool is not None:
            running, self._firmware = self._pool.start()
            return running
        if self._worked:
            await_port(self.target, self.total, self.say)
        what, counters = self._startable(), None
        if self.coverage is not None and isinstance(what, Firmware) and what.platform.starts == "qemu":
            counters = counters_for(what.elf)
        running = start(what, counters=counters, total=self.total)
        try:
            if self._spoiled and running.process is None and running.can_reset:
                self.say(f"{self.name}: reset")
                running.reset(Deadline("reset", _RESET_S, running.clock, self.total))
        except BaseException:
            running.stop()
            raise
        return running

    def _startable(self) -> Firmware | Target:
        """The firmware to start, or the target to attach to; a board that worked is flashed anew only if it
        does not answer."""
        if not self.target.attached:
            return self.firmware or self.target
        again = self._worked and self.target.flash == "always"
        return replace(self.target, flash="auto") if again else self.target
