# SPDX-License-Identifier: Apache-2.0
"""A board of a hardware map for a process of a test run: kept, recovered, or replaced by another board."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from minrpc.errors import HarnessError
from minrpc.firmware import Firmware
from minrpc.host.deadline import Deadline
from minrpc.pipeline import connect
from minrpc.running import RunningDevice, start
from minrpc.running.board import await_port, can_reset, power_cycle
from minrpc.running.lease import Lease, Say, lease, put_into_quarantine
from minrpc.targets import Target

_RECOVER_S: Final = 60.0

RecoveryStep = tuple[str, Callable[[], RunningDevice]]


class PooledBoard:
    """The board of `target`'s hardware map that this process has taken.

    total: a deadline for all waits together. say: shows a line of progress.
    """

    def __init__(self, target: Target, total: Deadline, say: Say) -> None:
        self._target = target
        self._total = total
        self._say = say
        self._lease: Lease | None = None
        self._flash = target.flash
        self._firmware: Firmware | None = None  # The firmware that was found on the board, or flashed.

    @property
    def name(self) -> str:
        """The board's id and link; "" while there is none."""
        return self._lease.board.name if self._lease and self._lease.board else ""

    def start(self) -> tuple[RunningDevice, Firmware | None]:
        """A running device that has answered: on the kept board, else on another.

        For a board that does not answer, a new session, a reset, a power cycle and flashing are tried, if
        they are available. If all fail, the board is put into quarantine, and the next free board is taken.
        Raises BoardBusyError, HarnessError if no board is left.
        """
        while True:
            if self._lease is None:
                self._lease = lease(replace(self._target, wait_board_s=self._total.remaining()), self._say)
                self._say(f"{self._target.name}: {self.name}")
            elif not self._is_back(self._lease):
                continue
            reasons: list[str] = []
            for step, attempt in self._steps(self._lease.target):
                try:
                    running = self._answering(attempt)
                    self._flash = "auto" if self._flash == "always" else self._flash
                    self._note(running)
                    if reasons:
                        self._say(f"{self._target.name}: {self.name} recovered by {step}")
                    return running, running.firmware
                except HarnessError as error:
                    reasons.append(f"{step}: {error.message}")
            self._give_up("; ".join(reasons))

    def release(self) -> None:
        """Free the board. A second call does nothing."""
        held, self._lease, self._firmware = self._lease, None, None
        if held is not None:
            held.release()

    def _is_back(self, kept: Lease) -> bool:
        """Waits for the board's port, which may have been unplugged; False if the board had to be left."""
        try:
            await_port(kept.target, self._total, self._say)
        except HarnessError as error:
            self._give_up(error.message)
            return False
        if kept.follow_port():
            return True
        self.release()
        return False

    def _give_up(self, reason: str) -> None:
        assert self._lease is not None
        assert self._lease.board is not None
        self._say(f"{self._target.name}: {self.name} in quarantine: {reason}")
        put_into_quarantine(self._lease.board, reason)
        self.release()

    def _note(self, running: RunningDevice) -> None:
        """Remember the firmware that was found or flashed, for a step that did not look for it."""
        if running.firmware is None and self._firmware is not None:
            running.firmware = self._firmware
            running.target = replace(running.target, platform=self._firmware.platform)
        self._firmware = running.firmware

    def _steps(self, target: Target) -> Iterator[RecoveryStep]:
        looked = self._firmware is not None
        target = replace(target, flash="never" if looked else self._flash)
        yield "session", lambda: start(target, total=self._total)
        if can_reset(target):
            yield "reset", lambda: self._reset(target)
        if target.platform.power_command:
            yield "power", lambda: self._powered(target)
        if self._flash != "never":
            yield "flash", lambda: start(replace(target, flash="always"), total=self._total)

    def _answering(self, attempt: Callable[[], RunningDevice]) -> RunningDevice:
        running = attempt()
        try:
            with connect(running, total=self._total) as device:
                device.connect()
        except BaseException:
            running.stop()
            raise
        return running

    def _reset(self, target: Target) -> RunningDevice:
        running = start(replace(target, flash="never"), total=self._total)
        try:
            running.reset(Deadline("reset", _RECOVER_S, running.clock, self._total))
        except BaseException:
            running.stop()
            raise
        return running

    def _powered(self, target: Target) -> RunningDevice:
        power_cycle(target, Deadline("power cycle", _RECOVER_S, total=self._total))
        return start(replace(target, flash="never"), total=self._total)
