# SPDX-License-Identifier: Apache-2.0
"""Copies to and from a device, against as many bytes without the protocol; what they take on the wire."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from minrpc.client import RemoteArray
from minrpc.pipeline import Device, connect
from minrpc.running import start
from minrpc.targets import Platform

from minrpc_bench.meter import MeteredTransport, Traffic
from minrpc_bench.paired import Paired, interleave_clocks
from minrpc_bench.peers import Peers, Raw, cpu_clock, on_one_cpu, running_device, running_raw
from minrpc_bench.rows import Goal, Row, time_row

_MIB: Final = 1 << 20
# An emulated UART takes 30 us a byte to the device, and 4 us back. A copy to the device goes in messages of
# 64 KiB, so the ratio of one shows that of any number; one back is asked for by one message.
_UP: Final = {"process": (512, 512), "qemu": (256, 256)}
_BACK: Final = (512, 512)
CALLS: Final = {"process": 5, "qemu": 1}
"""Copies in a round."""
_GOALS: Final = {"process": Goal("at least", 0.25), "qemu": Goal("at least", 0.85)}
_WIRE_SIZES: Final = (1024, 16 * 1024, 256 * 1024)
_WIRE_GOAL_FROM: Final = 16 * 1024


def random_int8(shape: tuple[int, ...]) -> npt.NDArray[np.int8]:
    """The same random elements each time: one in 256 is 0xff and must be escaped."""
    return np.random.default_rng(5).integers(-128, 128, shape, np.int8)


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of an array.

    name: with its size and direction.
    nbytes: what is copied by `run`.
    """

    name: str
    nbytes: int
    run: Callable[[], object]


def copies_of(device: Device, platform: Platform) -> tuple[Copy, Copy]:
    """To the device, and back."""
    up, back = random_int8(_UP[platform.starts]), random_int8(_BACK)
    target, source = device.empty(up.shape, np.int8), device.array(back)
    return (
        Copy(f"{_text(up)} to the device", up.nbytes, lambda: target.copy_from(up)),
        Copy(f"{_text(back)} back", back.nbytes, source.numpy),
    )


def _text(host: npt.NDArray[np.int8]) -> str:
    return f"{'x'.join(map(str, host.shape))} {host.dtype}"


@dataclass(frozen=True, slots=True)
class _Pair:
    """A copy and what it is compared with."""

    copy: Copy
    raw: Callable[[], object]
    note: str
    suffix: str = ""

    @property
    def name(self) -> str:
        return self.copy.name + self.suffix


def _pairs(platform: Platform, device: Device, raw: Raw) -> list[_Pair]:
    """Each way beside the same way; and beside an echo, where a byte costs the same in both directions."""
    copies = up, back = copies_of(device, platform)
    where = ", all on one CPU" if platform.starts == "qemu" else ""
    pairs = [
        _Pair(up, raw.takes(bytes(up.nbytes)), f"raw: as many bytes one way, answered by one{where}"),
        _Pair(back, raw.gives(back.nbytes), f"raw: as many bytes one way, asked for by five{where}"),
    ]
    if platform.starts == "process":
        note = "raw: an echo of as many bytes, streamed"
        pairs += [_Pair(copy, raw.echoes(bytes(copy.nbytes)), note, ", beside an echo") for copy in copies]
    return pairs


def measure(peers: Peers, rounds: int) -> list[Row]:
    """Int8 arrays each way: throughput, and CPU time, which a busy host does not change."""
    starts = peers.platform.starts
    with (
        running_device(peers.server) as (device, running),
        running_raw(peers.raw) as raw,
        # Processes stream at the same time; an emulator's bytes go one by one, and wake who waits for them.
        on_one_cpu(running, raw.running) if starts == "qemu" else nullcontext(),
    ):
        clocks = [time.perf_counter, cpu_clock(running, raw.running)]
        rows: list[Row] = []
        for pair in _pairs(peers.platform, device, raw):
            wall, cpu = interleave_clocks(
                pair.copy.run, pair.raw, rounds=rounds, calls=CALLS[starts], clocks=clocks
            )
            rows += [_throughput_row(peers, pair, wall), _cpu_row(peers, pair, cpu)]
        return rows


def _throughput_row(peers: Peers, pair: _Pair, result: Paired) -> Row:
    """Throughputs are the inverse of the times, so is the ratio."""
    size = pair.copy.nbytes / _MIB
    return Row(
        group="copy",
        name=pair.name,
        platform=peers.platform.name,
        unit="MiB/s",
        value=size / result.value,
        baseline=size / result.baseline,
        ratio=1 / result.ratio,
        spread=result.spread / result.ratio**2,
        goal=_GOALS.get(peers.platform.starts),
        note=pair.note,
    )


def _cpu_row(peers: Peers, pair: _Pair, result: Paired) -> Row:
    note = "CPU time of the device or its emulator; raw: of the raw firmware's"
    return time_row("copy", f"{pair.name}, CPU", peers.platform.name, result, note=note)


def measure_wire(peers: Peers) -> list[Row]:
    """Bytes on the wire, both directions, for each byte of payload: nothing is timed."""
    with start(peers.server) as running:
        meter = MeteredTransport(running.transport)
        with connect(running, transport=meter, direct=False) as device:
            device.connect()
            # All are made before the first is metered: what is freed meanwhile would count. So would what the
            # first copy asks the device.
            arrays = [device.empty((size,), np.int8) for size in _WIRE_SIZES]
            arrays[0].copy_from(random_int8(arrays[0].shape))
            return [row for array in arrays for row in _wire_rows(peers, meter, array)]


def _wire_rows(peers: Peers, meter: MeteredTransport, array: RemoteArray) -> list[Row]:
    host = random_int8(array.shape)
    up = meter.during(lambda: array.copy_from(host))
    down = meter.during(array.numpy)
    return [
        _wire_row(peers, f"{host.size} random bytes {way}", host.size, traffic)
        for way, traffic in (("to the device", up), ("back", down))
    ]


def _wire_row(peers: Peers, name: str, payload: int, traffic: Traffic) -> Row:
    bytes_without_escapes = traffic.total - traffic.escapes
    return Row(
        group="wire",
        name=name,
        platform=peers.platform.name,
        unit="bytes",
        value=bytes_without_escapes,
        baseline=payload,
        ratio=bytes_without_escapes / payload,
        goal=Goal("at most", 1.01) if payload >= _WIRE_GOAL_FROM else None,
        note=f"both directions, {traffic.requests} requests; {traffic.escapes} escapes not counted",
    )
