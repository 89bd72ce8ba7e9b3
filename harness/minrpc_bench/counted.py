# SPDX-License-Identifier: Apache-2.0
"""The plugin in QEMU: instructions of a call and of a copied byte, exact counts; and the plugin's own cost.

Counted from the first byte of the request to the wait for the next request, with interrupts. The request
arrives as fast as the interrupt handler takes its bytes. If a byte comes after the device began to wait,
waking up is counted, too, and the host decides how often that happens. A row therefore has the least of
several counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from minrpc.counters import Counts, Image, QemuCounters, counters_for
from minrpc.cycles.core import core_or_reason
from minrpc.pipeline import Device, connect
from minrpc.running import start

from minrpc_bench.peers import Peers, cpu_clock
from minrpc_bench.rows import Goal, Row
from minrpc_bench.times import random_int8

# The bare-metal port's receive interrupt; on other ports nothing is counted.
_RECEIVES: Final = "link_receive_isr"
# Bytes that fit into one message and the port's ring.
_BYTES: Final = 4096
_SHOWN: Final = 4
# Waking up only adds instructions, so the least of several counts is without it.
_REPEATS: Final = 5
_GOALS: Final = {"inc": Goal("at most", 3000, "value"), "byte": Goal("at most", 20, "value")}

_KINDS: Final[dict[str, dict[str, Any]]] = {
    "instructions": {},
    "loads and stores too": {"memory": True},
    "branches and calls too": {"memory": True, "flow": True},
}
_CYCLES: Final = "cycles"
_COST_GOALS: Final = {**dict.fromkeys(_KINDS, Goal("at most", 1.5)), _CYCLES: Goal("at most", 1.6)}
_ROUNDS: Final = 3
_CALLS: Final = 200


def instructions(peers: Peers) -> list[Row]:
    """Rows for a call of `inc` and for a byte copied each way."""
    image = Image(peers.server.elf)
    if peers.platform.starts != "qemu" or all(function.name != _RECEIVES for function in image.functions):
        return []
    with (
        QemuCounters(image, slow=_RECEIVES) as counters,
        start(peers.server, counters=counters) as running,
        connect(running, direct=False) as device,
    ):
        rows = []
        for name, goal, parts, run in _work(device):
            run()  # The first run also has the session's requests.
            counted = min((_counted(counters, run) for _ in range(_REPEATS)), key=lambda item: item.total)
            # The functions with the most instructions.
            most = list(counted.by_function(image).items())[:_SHOWN]
            note = ", ".join(f"{function} {number / parts:.4g}" for function, number in most)
            value, platform = counted.total / parts, peers.platform.name
            rows.append(Row("instructions", name, platform, "instructions", value, goal=goal, note=note))
        return rows


def _counted(counters: QemuCounters, run: Callable[[], object]) -> Counts:
    before = counters.executed()
    run()
    return counters.executed() - before


def _work(device: Device) -> list[tuple[str, Goal, int, Callable[[], object]]]:
    """Name, goal, divisor and action of each row."""
    inc = device.system_lib()["inc"]
    host = random_int8((_BYTES,))
    array = device.empty(host.shape, np.int8)
    return [
        ("a call of inc", _GOALS["inc"], 1, lambda: inc(1)),
        ("a byte to the device", _GOALS["byte"], _BYTES, lambda: array.copy_from(host)),
        ("a byte back", _GOALS["byte"], _BYTES, array.numpy),
    ]


def cost(peers: Peers) -> list[Row]:
    """A row for each kind of counting, on a platform that QEMU runs: the emulator's own CPU time for the same
    calls with and without the plugin, the least of a few rounds, measured in turns."""
    if peers.platform.starts != "qemu":
        return []
    core, _ = core_or_reason(peers.platform)
    kinds = {**_KINDS, **({_CYCLES: {"core": core}} if core else {})}
    seconds: dict[str, list[float]] = {name: [] for name in ("", *kinds)}
    for _ in range(_ROUNDS):
        for name, taken in seconds.items():
            counters = counters_for(peers.server.elf, **kinds[name]) if name else None
            taken.append(_cpu_s(peers, counters))
    base, note = min(seconds[""]), f"{_CALLS} calls with 1,024 elements"
    rows = []
    for name in kinds:
        title, least = f"QEMU's CPU time for exp, counting {name}", min(seconds[name])
        numbers = (least, base, least / base)
        goal, platform = _COST_GOALS[name], peers.platform.name
        rows.append(Row("counters", title, platform, "s", *numbers, goal=goal, note=note))
    return rows


def _cpu_s(peers: Peers, counters: QemuCounters | None) -> float:
    with start(peers.server, counters=counters) as running, connect(running) as device:
        clock = cpu_clock(running)
        lib = device.system_lib()
        array, result = device.array(np.linspace(-1, 1, 1024, dtype=np.float32)), device.empty((1024,))
        lib.time_evaluator("exp", number=1, repeat=1)(array, result)
        before = clock()
        lib.time_evaluator("exp", number=_CALLS, repeat=1)(array, result)
        return clock() - before
