# SPDX-License-Identifier: Apache-2.0
"""A meter without hardware: the processor time of a device that is a process of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minrpc.errors import ConfigurationError
from minrpc.host.deadline import ProcessClock

if TYPE_CHECKING:
    from minrpc.client.session import Session


class CpuTimeMeter:
    """The processor time of a device that is a process of this machine: the counter `cpu_ns`.

    It reads the time that the kernel charges to all threads of the program or emulator, in nanoseconds.
    Raises ConfigurationError for any other device.
    """

    def __init__(self, device: Session) -> None:
        clock = device.owner.clock
        if not isinstance(clock, ProcessClock):
            raise ConfigurationError(
                f"{device.name} is no process of this machine: the kernel charges it no time",
                next_step="use a meter of the board's supply: an object with before, after and results",
            )
        self._clock = clock
        self._begin = self._end = 0

    def before(self) -> None:
        """Read the clock."""
        self._begin = self._now()

    def after(self) -> None:
        """Read the clock again."""
        self._end = self._now()

    def results(self) -> dict[str, int]:
        """The time between the two."""
        return {"cpu_ns": self._end - self._begin}

    def _now(self) -> int:
        return round(self._clock.sample().cpu_s * 1e9)
