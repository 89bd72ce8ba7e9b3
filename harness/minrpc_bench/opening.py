# SPDX-License-Identifier: Apache-2.0
"""Opening a device whose firmware is built, and closing it: what each test with a device of its own pays."""

from __future__ import annotations

import resource
import time
from typing import Final

from minrpc.pipeline import open_device

from minrpc_bench.paired import interleave_clocks
from minrpc_bench.peers import Peers, on_one_cpu, running_raw
from minrpc_bench.rows import Goal, Row, time_row

_GOAL: Final = Goal("at most", 3000.0, "value")
_CALLS: Final = {"process": 20, "qemu": 1}


def measure(peers: Peers, rounds: int) -> list[Row]:
    """Wall and CPU time. The look whether the firmware is still right is part of it."""
    target, starts = peers.server.target, peers.platform.starts

    def ours() -> None:
        open_device(target).close()

    def raw() -> None:
        with running_raw(peers.raw):
            pass

    with on_one_cpu():
        wall, cpu = interleave_clocks(
            ours, raw, rounds=rounds, calls=_CALLS[starts], clocks=[time.perf_counter, _cpu_s]
        )
    goal = _GOAL if starts == "process" else None
    note = "raw: start and end of a program that prints one character, all on one CPU"
    return [
        time_row("open", "open and close", target.name, wall, goal, note),
        time_row("open", "open and close, CPU", target.name, cpu, note="CPU time of the device and of us"),
    ]


def _cpu_s() -> float:
    """CPU seconds of this process, and of those that it has waited for."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, who))
