# SPDX-License-Identifier: Apache-2.0
"""Calls of trivial functions, compared with an echo of as many bytes, and this program's own CPU time for
them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import numpy as np
from minrpc.pipeline import Device, connect
from minrpc.running import start

from minrpc_bench.meter import MeteredTransport
from minrpc_bench.paired import interleave
from minrpc_bench.peers import Peers, on_one_cpu, running_device, running_raw
from minrpc_bench.rows import Goal, Row, time_row

_GOALS: Final = {"inc": Goal("at most", 2.0), "add, 3 tensors": Goal("at most", 2.5)}
_CALLS: Final = {"process": 200, "qemu": 10}
_OWN_CALLS: Final = 3000
_OWN_ROUNDS: Final = 7


def calls_of(device: Device) -> dict[str, Callable[[], object]]:
    """The timed calls: an integer in and out, and three tensors of one and two elements."""
    library = device.system_lib()
    inc, add = library["inc"], library["add"]
    a = device.array(np.array([2, 3], np.int8))
    b = device.array(np.array([4], np.int8))
    c = device.empty((2,), np.int8)
    return {"inc": lambda: inc(1), "add, 3 tensors": lambda: add(a, b, c)}


def measure(peers: Peers, rounds: int) -> list[Row]:
    """Two rows for each call. Only posix has goals: an emulated UART takes longer than all of this
    program."""
    sizes, own = _metered(peers)
    platform = peers.platform
    note = "raw: echo of {} bytes by a C program on the same kind of link, all on one CPU"
    rows = []
    with (
        running_device(peers.server) as (device, running),
        running_raw(peers.raw) as raw,
        on_one_cpu(running, raw.running),
    ):
        raw.echo_all()
        for name, call in calls_of(device).items():
            ping = raw.pings(b"x" * sizes[name])
            (result,) = interleave(call, ping, rounds=rounds, calls=_CALLS[platform.starts])
            goal = _GOALS.get(name) if platform.starts == "process" else None
            rows.append(time_row("round trip", name, platform.name, result, goal, note.format(sizes[name])))
    return rows + [
        Row("round trip", f"{name}, CPU of this program alone", platform.name, "us", seconds * 1e6)
        for name, seconds in own.items()
    ]


def _metered(peers: Peers) -> tuple[dict[str, int], dict[str, float]]:
    """For each call the larger of its bytes sent and received, and its CPU seconds without the device."""
    sizes, own = {}, {}
    with start(peers.server) as running:
        meter = MeteredTransport(running.transport)
        with connect(running, transport=meter, direct=False) as device:
            for name, call in calls_of(device).items():
                call()  # A first call also has the session's requests.
                sizes[name] = max(meter.during(call))
                own[name] = own_cpu_s(meter, call, _OWN_CALLS, _OWN_ROUNDS)
    return sizes, own


def own_cpu_s(meter: MeteredTransport, call: Callable[[], object], calls: int, rounds: int) -> float:
    """CPU seconds of a call that the device has just answered: the least of the rounds.

    Other processes only add to it, by their use of the processor's caches.
    """
    meter.replays = True
    try:
        return min(_cpu_s(call, calls) for _ in range(rounds)) / calls
    finally:
        meter.replays = False


def _cpu_s(call: Callable[[], object], calls: int) -> float:
    begin = time.process_time()
    for _ in range(calls):
        call()
    return time.process_time() - begin
