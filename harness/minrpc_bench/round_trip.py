# SPDX-License-Identifier: Apache-2.0
"""Round trips: a call of a function that does next to nothing, against an echo of as many bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from minrpc.pipeline import Device, connect
from minrpc.running import start

from minrpc_bench.meter import MeteredTransport
from minrpc_bench.paired import interleave
from minrpc_bench.peers import Peers, Raw, busy_processors, on_one_cpu, running_device, running_raw
from minrpc_bench.rows import Goal, Row, time_row

_GOALS: Final = {"inc": Goal("at most", 2.0), "add, 3 tensors": Goal("at most", 2.5)}
_CALLS: Final = {"process": 200, "qemu": 10}


def calls_of(device: Device) -> dict[str, Callable[[], object]]:
    """The calls that are timed: an integer in and out, and three tensors of one and two elements."""
    library = device.system_lib()
    inc, add = library["inc"], library["add"]
    a = device.array(np.array([2, 3], np.int8))
    b = device.array(np.array([4], np.int8))
    c = device.empty((2,), np.int8)
    return {"inc": lambda: inc(1), "add, 3 tensors": lambda: add(a, b, c)}


def measure(peers: Peers, rounds: int) -> list[Row]:
    """A row for each call, and one beside as many other programs as there are processors.

    Only the posix port has goals: an emulated UART is slower than all that we do.
    """
    sizes = _request_sizes(peers)
    with (
        running_device(peers.server) as (device, running),
        running_raw(peers.raw) as raw,
        on_one_cpu(running, raw.running),
    ):
        raw.echo_all()
        calls = calls_of(device)
        idle = [_row(peers, name, call, sizes[name], raw, rounds) for name, call in calls.items()]
        with busy_processors():
            busy = [
                _row(peers, f"{name}, busy", call, sizes[name], raw, rounds) for name, call in calls.items()
            ]
    return [*idle, *busy]


def _row(
    peers: Peers,
    name: str,
    call: Callable[[], object],
    size: int,
    raw: Raw,
    rounds: int,
) -> Row:
    platform = peers.platform
    ping = raw.pings(b"x" * size)
    result = interleave(call, ping, rounds=rounds, calls=_CALLS[platform.starts])
    goal = _GOALS.get(name) if platform.starts == "process" else None
    note = f"raw: echo of {size} bytes by a C program on the same kind of link, all on one CPU"
    return time_row("round trip", name, platform.name, result, goal, note)


def _request_sizes(peers: Peers) -> dict[str, int]:
    """Bytes that each call puts on the wire, or gets: the larger."""
    with start(peers.server) as running:
        meter = MeteredTransport(running.transport)
        with connect(running, transport=meter) as device:
            device.connect()
            traffic = {name: meter.during(call) for name, call in calls_of(device).items()}
    return {name: max(count.sent, count.received) for name, count in traffic.items()}
