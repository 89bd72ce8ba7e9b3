# SPDX-License-Identifier: Apache-2.0
"""Starts of a device, compared with the start of a program that prints one character."""

from __future__ import annotations

import resource
import time
from contextlib import ExitStack
from typing import Final

from minrpc.errors import HarnessError
from minrpc.pipeline import open_device
from minrpc.running import RunningDevice, start

from minrpc_bench.paired import interleave
from minrpc_bench.peers import Peers, cpu_clock, expect_ready, on_one_cpu, running_device, running_raw
from minrpc_bench.rows import Goal, Row, time_row

_BOOT_GOAL: Final = Goal("at most", 1.3)
_OPEN_GOAL: Final = Goal("at most", 3000.0, "value")
_OPEN_CALLS: Final = {"process": 20, "qemu": 1}
_MOST_ROUNDS: Final = {"process": 25, "qemu": 5}
_NOTE: Final = "raw: the same of a program that prints one character, all on one CPU"


def measure(peers: Peers, rounds: int) -> list[Row]:
    """Boot to the first result, and opening and closing a device whose firmware is built.

    Wall time, and CPU time, which a busy host does not change.
    """
    rounds = min(rounds, _MOST_ROUNDS[peers.platform.starts])
    with on_one_cpu():
        return [*_boot(peers, rounds), *_open(peers, rounds)]


def _boot(peers: Peers, rounds: int) -> list[Row]:
    """The start only, without the end."""
    stack = ExitStack()
    running: list[RunningDevice] = []

    def first_result() -> None:
        device, started = stack.enter_context(running_device(peers.server))
        running.append(started)
        if device.system_lib()["inc"](1) != 2:
            raise HarnessError("inc(1) is not 2")

    def first_character() -> None:
        running.append(stack.enter_context(start(peers.raw)))
        expect_ready(running[-1])

    def stop() -> None:
        running.clear()
        stack.close()

    wall, cpu = interleave(
        first_result,
        first_character,
        rounds=rounds,
        calls=1,
        clocks=[time.perf_counter, lambda: cpu_clock(*running)() + time.process_time()],
        after=stop,
    )
    name, goal = peers.platform.name, _BOOT_GOAL if peers.platform.starts == "qemu" else None
    return [
        time_row("start", "boot to first result", name, wall, goal, _NOTE),
        time_row("start", "boot to first result, CPU", name, cpu),
    ]


def _open(peers: Peers, rounds: int) -> list[Row]:
    """Opens and closes a device, with the check that the firmware is up to date."""
    name, starts = peers.platform.name, peers.platform.starts

    def raw() -> None:
        with running_raw(peers.raw):
            pass

    wall, cpu = interleave(
        lambda: open_device(peers.server.target).close(),
        raw,
        rounds=rounds,
        calls=_OPEN_CALLS[starts],
        clocks=[time.perf_counter, cpu_s],
    )
    goal = _OPEN_GOAL if starts == "process" else None
    return [
        time_row("start", "open and close", name, wall, goal, _NOTE),
        time_row("start", "open and close, CPU", name, cpu),
    ]


def cpu_s() -> float:
    """CPU seconds of this process and of its ended children: compilers, emulators."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)
