# SPDX-License-Identifier: Apache-2.0
"""Copies to and from a device, against as many bytes without the protocol."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from minrpc.pipeline import Device
from minrpc.targets import Platform

from minrpc_bench.paired import Paired, interleave
from minrpc_bench.peers import Peers, on_one_cpu, running_device, running_raw
from minrpc_bench.rows import Goal, Row

_MIB: Final = 1 << 20
# An emulated UART takes 30 us a byte to the device, and 4 us back. A copy to the device goes in messages of
# 64 KiB, so the ratio of one message holds for any number; a copy back takes one request.
_UP: Final = {"process": (512, 512), "qemu": (256, 256)}
_BACK: Final = (512, 512)
_CALLS: Final = {"process": 5, "qemu": 1}
# A round on an emulated link takes seconds.
_MOST_ROUNDS: Final = {"process": 1000, "qemu": 5}
_GOALS: Final = {"process": Goal("at least", 0.25), "qemu": Goal("at least", 0.85)}


def random_int8(shape: tuple[int, ...]) -> npt.NDArray[np.int8]:
    """The same random elements each time: one in 256 is 0xff and must be escaped."""
    return np.random.default_rng(5).integers(-128, 128, shape, np.int8)


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of `nbytes` by `run`; its name contains the shape and the direction."""

    name: str
    nbytes: int
    run: Callable[[], object]


def copies_of(device: Device, platform: Platform) -> tuple[Copy, Copy]:
    """The copies to the device and back."""
    up, back = random_int8(_UP[platform.starts]), random_int8(_BACK)
    target, source = device.empty(up.shape, np.int8), device.array(back)
    return (
        Copy(f"{_text(up)} to the device", up.nbytes, lambda: target.copy_from(up)),
        Copy(f"{_text(back)} back", back.nbytes, source.numpy),
    )


def _text(host: npt.NDArray[np.int8]) -> str:
    return f"{'x'.join(map(str, host.shape))} {host.dtype}"


def measure(peers: Peers, rounds: int) -> list[Row]:
    """Throughput of int8 arrays in each direction."""
    starts = peers.platform.starts
    rounds = min(rounds, _MOST_ROUNDS[starts])
    with (
        running_device(peers.server) as (device, running),
        running_raw(peers.raw) as raw,
        # Two processes stream in parallel; an emulator transfers single bytes, and each wakes the waiting
        # process.
        on_one_cpu(running, raw.running) if starts == "qemu" else nullcontext(),
    ):
        up, back = copies_of(device, peers.platform)
        rows: list[Row] = []
        for copy, baseline in ((up, raw.takes(bytes(up.nbytes))), (back, raw.gives(back.nbytes))):
            (result,) = interleave(copy.run, baseline, rounds=rounds, calls=_CALLS[starts])
            rows.append(_row(peers, copy, result))
        return rows


def _row(peers: Peers, copy: Copy, result: Paired) -> Row:
    """Throughput is the inverse of time, and so is the ratio."""
    size, platform = copy.nbytes / _MIB, peers.platform
    value, baseline, ratio = size / result.value, size / result.baseline, 1 / result.ratio
    spread, goal = result.spread / result.ratio**2, _GOALS.get(platform.starts)
    note = "raw: as many bytes one way; an emulator's all on one CPU"
    return Row("copy", copy.name, platform.name, "MiB/s", value, baseline, ratio, spread, goal, note)
