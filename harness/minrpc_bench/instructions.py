# SPDX-License-Identifier: Apache-2.0
"""Instructions of a call and of a copied byte: exact counts, by the plugin in QEMU.

Counted from the first byte of the request to the wait for the next request, with interrupts. The request
arrives as fast as the interrupt handler takes its bytes. If a byte comes after the device began to wait,
waking up is counted, too, and the host decides how often that happens. A row therefore has the least of
several counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from minrpc.counters import Counts, Image, QemuCounters
from minrpc.pipeline import Device, connect
from minrpc.running import start

from minrpc_bench.copies import random_int8
from minrpc_bench.peers import Peers
from minrpc_bench.rows import Goal, Row

# The bare-metal port's receive interrupt; on other ports nothing is counted.
_RECEIVES: Final = "link_receive_isr"
# Bytes that fit into one message and the port's ring.
_BYTES: Final = 4096
_SHOWN: Final = 4
# Waking up only adds instructions, so the least of several counts is without it.
_REPEATS: Final = 5
_GOALS: Final = {"inc": Goal("at most", 3500, "value"), "byte": Goal("at most", 35, "value")}


def measure(peers: Peers) -> list[Row]:
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
            value, note = counted.total / parts, _most(counted, image, parts)
            platform = peers.platform.name
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


def _most(counted: Counts, image: Image, parts: int) -> str:
    """The functions with the most instructions."""
    functions = list(counted.by_function(image).items())[:_SHOWN]
    return ", ".join(f"{name} {count / parts:.4g}" for name, count in functions)
