# SPDX-License-Identifier: Apache-2.0
"""From nothing to the first result, against the same start of a program that prints one character."""

from __future__ import annotations

import resource
import time
from typing import Final

from harness.bench.paired import interleave_clocks
from harness.bench.peers import Peers, expect_ready, running_device
from harness.bench.rows import Goal, Row, time_row
from harness.errors import HarnessError
from harness.platforms import Firmware, launch

_GOAL: Final = Goal("at most", 1.3)


def measure(peers: Peers, rounds: int) -> list[Row]:
    """Wall time, and CPU time, which a busy host does not change. The emulator's start and end count, too."""
    wall, cpu = interleave_clocks(
        lambda: first_result(peers.server),
        lambda: first_character(peers.raw),
        rounds=rounds,
        calls=1,
        clocks=[time.perf_counter, used_cpu],
    )
    goal = _GOAL if peers.platform.starts == "qemu" else None
    note = "raw: the same start of a program that prints one character"
    name = peers.platform.name
    return [
        time_row("boot", "boot to first result", name, wall, goal, note),
        time_row("boot", "boot to first result, CPU", name, cpu, note="CPU time of the emulator and of us"),
    ]


def used_cpu() -> float:
    """CPU seconds of this process, and of the children that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def first_result(firmware: Firmware) -> None:
    """Start the server, find `inc` and call it. Raises HarnessError when the sum is wrong."""
    with running_device(firmware) as (device, _):
        result = device.system_lib()["inc"](1)
        if result != 2:
            raise HarnessError(f"inc(1) gave {result!r}")


def first_character(firmware: Firmware) -> None:
    """Start the echo and read its first character."""
    with launch(firmware) as running:
        expect_ready(running)
