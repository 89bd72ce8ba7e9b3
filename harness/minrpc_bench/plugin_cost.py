# SPDX-License-Identifier: Apache-2.0
"""Cost of the plugin in QEMU: the emulator's own CPU time for the same calls, with and without it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from minrpc.counters import QemuCounters, counters_for
from minrpc.cycles.core import core_or_reason
from minrpc.pipeline import connect
from minrpc.running import start

from minrpc_bench.peers import Peers, cpu_clock
from minrpc_bench.rows import Goal, Row

_KINDS: Final[dict[str, dict[str, Any]]] = {
    "instructions": {},
    "loads and stores too": {"memory": True},
    "branches and calls too": {"memory": True, "flow": True},
}
_GOAL: Final = Goal("at most", 1.5)
_CYCLES: Final = "cycles"
_CYCLES_GOAL: Final = Goal("at most", 1.6)
_ROUNDS: Final = 3
_CALLS: Final = 200


def measure(peers: Peers) -> list[Row]:
    """A row for each kind of counting, on a platform that QEMU runs: the least of a few rounds, measured in
    turns."""
    if peers.platform.starts != "qemu":
        return []
    core, _ = core_or_reason(peers.platform)
    kinds = {**_KINDS, **({_CYCLES: {"core": core}} if core else {})}
    seconds: dict[str, list[float]] = {name: [] for name in ("", *kinds)}
    for _ in range(_ROUNDS):
        for name, taken in seconds.items():
            counters = counters_for(peers.server.elf, **kinds[name]) if name else None
            taken.append(_cpu_s(peers, counters))
    base = min(seconds[""])
    return [_row(peers, name, min(seconds[name]), base) for name in kinds]


def _row(peers: Peers, kind: str, seconds: float, base: float) -> Row:
    name, goal = f"QEMU's CPU time for exp, counting {kind}", _CYCLES_GOAL if kind == _CYCLES else _GOAL
    note = f"{_CALLS} calls with 1,024 elements"
    return Row(
        "counters", name, peers.platform.name, "s", seconds, base, seconds / base, goal=goal, note=note
    )


def _cpu_s(peers: Peers, counters: QemuCounters | None) -> float:
    with start(peers.server, counters=counters) as running, connect(running) as device:
        clock = cpu_clock(running)
        lib = device.system_lib()
        array, result = device.array(np.linspace(-1, 1, 1024, dtype=np.float32)), device.empty((1024,))
        lib.time_evaluator("exp", number=1, repeat=1)(array, result)
        before = clock()
        lib.time_evaluator("exp", number=_CALLS, repeat=1)(array, result)
        return clock() - before
