# SPDX-License-Identifier: Apache-2.0
"""Arrays through memory that an emulator shares, against its link."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import numpy as np
from minrpc.pipeline import Device, connect
from minrpc.running import start

from minrpc_bench.peers import Peers
from minrpc_bench.rows import Goal, Row

_BYTES: Final = 256 * 1024
_SIDE: Final = 512
_GOAL: Final = Goal("at least", 5000.0)
_DIRECTLY: Final = 25
_CALLS: Final = 5


def measure(peers: Peers) -> list[Row]:
    """256 KiB each way, and a call of `add` on arrays of the host's; no rows where no memory is shared."""
    with start(peers.server) as running, connect(running) as device:
        host = np.random.default_rng(5).integers(-128, 128, _BYTES, np.int8)
        array = device.array(host)
        memory = device.owner.memory
        if memory is None or not memory.proved:
            return []
        ways = {"to the device": lambda: array.copy_from(host), "back": array.numpy}
        rows = [_copy(peers, device, f"256 KiB {way}", copy) for way, copy in ways.items()]
        return [*rows, _call(peers, device)]


def _copy(peers: Peers, device: Device, name: str, copy: Callable[[], object]) -> Row:
    """Over the link once: that takes seconds."""
    device.direct = True
    ours = min(_seconds(copy) for _ in range(_DIRECTLY))
    device.direct = False
    link = _seconds(copy)
    device.direct = True
    note = "baseline: over the emulated UART; the ratio is how many times as fast"
    return Row(
        "direct", name, peers.platform.name, "us", ours * 1e6, link * 1e6, link / ours, goal=_GOAL, note=note
    )


def _call(peers: Peers, device: Device) -> Row:
    """From two arrays here to their sum here."""
    a, b = (np.random.default_rng(seed).random((_SIDE, _SIDE), np.float32) for seed in (1, 2))
    add = device.system_lib()["add"]

    def whole() -> None:
        c = device.empty(a.shape, "float32")
        add(device.array(a), device.array(b), c)
        np.testing.assert_array_equal(c.numpy(), a + b)

    seconds = min(_seconds(whole) for _ in range(_CALLS))
    text = f"add of {_SIDE}x{_SIDE} float32, to and back"
    return Row("direct", text, peers.platform.name, "us", seconds * 1e6, note="checked against numpy")


def _seconds(do: Callable[[], object]) -> float:
    begin = time.perf_counter()
    do()
    return time.perf_counter() - begin
