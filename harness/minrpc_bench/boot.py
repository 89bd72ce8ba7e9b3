# SPDX-License-Identifier: Apache-2.0
"""From nothing to the first result, against the same start of a program that prints one character."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from minrpc.errors import HarnessError
from minrpc.firmware import Firmware
from minrpc.running import RunningDevice, start

from minrpc_bench.paired import interleave_clocks
from minrpc_bench.peers import Peers, cpu_clock, expect_ready, on_one_cpu, running_device
from minrpc_bench.rows import Goal, Row, time_row

_GOAL: Final = Goal("at most", 1.3)


def measure(peers: Peers, rounds: int) -> list[Row]:
    """Wall time, and CPU time, which a busy host does not change; of the start only, not of the end."""
    started = _Started()
    with on_one_cpu():
        wall, cpu = interleave_clocks(
            lambda: started.enter(peers.server, first_result=True),
            lambda: started.enter(peers.raw, first_result=False),
            rounds=rounds,
            calls=1,
            clocks=[time.perf_counter, started.cpu_s],
            after=started.stop,
        )
    goal = _GOAL if peers.platform.starts == "qemu" else None
    note = "raw: the same start of a program that prints one character, all on one CPU"
    name = peers.platform.name
    return [
        time_row("boot", "boot to first result", name, wall, goal, note),
        time_row("boot", "boot to first result, CPU", name, cpu, note="CPU time of the emulator and of us"),
    ]


class _Started:
    """What runs at the moment, if anything."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._running: list[RunningDevice] = []

    def enter(self, firmware: Firmware, *, first_result: bool) -> None:
        boot = _to_first_result if first_result else _to_first_character
        self._running.append(self._stack.enter_context(boot(firmware)))

    def stop(self) -> None:
        self._running.clear()
        self._stack.close()

    def cpu_s(self) -> float:
        """CPU seconds of what runs, and of this process."""
        return cpu_clock(*self._running)() + time.process_time()


@contextmanager
def _to_first_result(firmware: Firmware) -> Iterator[RunningDevice]:
    """Start the server, find `inc` and call it. Raises HarnessError when the sum is wrong."""
    with running_device(firmware) as (device, running):
        result = device.system_lib()["inc"](1)
        if result != 2:
            raise HarnessError(f"inc(1) gave {result!r}")
        yield running


@contextmanager
def _to_first_character(firmware: Firmware) -> Iterator[RunningDevice]:
    """Start the raw firmware and read its first character."""
    with start(firmware) as running:
        expect_ready(running)
        yield running
