# SPDX-License-Identifier: Apache-2.0
"""Copies to and from a device, against an echo that streams, and what they take on the wire."""

from __future__ import annotations

import time
from typing import Final

import numpy as np
import numpy.typing as npt

from harness.bench.meter import MeteredTransport, Traffic
from harness.bench.paired import Paired, interleave_clocks
from harness.bench.peers import Peers, connect, cpu_clock, running_device, running_echo
from harness.bench.rows import Goal, Row, time_row
from harness.client import RemoteArray
from harness.platforms import launch

SHAPE: Final = (512, 512)
_MIB: Final = 1 << 20
_CALLS: Final = {"process": 5, "native": 3, "qemu": 1}
_GOALS: Final = {"process": Goal("at least", 0.25), "qemu": Goal("at least", 0.85)}
_WIRE_SIZES: Final = (1024, 16 * 1024, 256 * 1024)
_WIRE_GOAL_FROM: Final = 16 * 1024


def random_int8(shape: tuple[int, ...]) -> npt.NDArray[np.int8]:
    """The same random elements each time: one in 256 is 0xff and must be escaped."""
    return np.random.default_rng(5).integers(-128, 128, shape, np.int8)


def measure(peers: Peers, rounds: int) -> list[Row]:
    """A 512x512 int8 array each way: throughput, and CPU time, which a busy host does not change."""
    host = random_int8(SHAPE)
    raw = host.tobytes()
    with running_device(peers.server) as (device, running), running_echo(peers.raw) as echo:
        array = device.array(host)
        ways = {"512x512 int8 to the device": lambda: array.copy_from(host), "512x512 int8 back": array.numpy}
        rows: list[Row] = []
        for name, way in ways.items():
            wall, cpu = interleave_clocks(
                way,
                lambda: echo.stream(raw),
                rounds=rounds,
                calls=_CALLS[peers.platform.starts],
                clocks=[time.perf_counter, cpu_clock(running, echo.running)],
            )
            rows += [_throughput_row(peers, name, wall), _cpu_row(peers, name, cpu)]
    return rows


def _throughput_row(peers: Peers, name: str, result: Paired) -> Row:
    """Throughputs are the inverse of the times, so is the ratio. That of the echo counts what came back."""
    size = float(np.prod(SHAPE)) / _MIB
    return Row(
        group="copy",
        name=name,
        platform=peers.platform.name,
        unit="MiB/s",
        value=size / result.value,
        baseline=size / result.baseline,
        ratio=1 / result.ratio,
        spread=result.spread / result.ratio**2,
        goal=_GOALS.get(peers.platform.starts),
        note="raw: echo of the same bytes, streamed",
    )


def _cpu_row(peers: Peers, name: str, result: Paired) -> Row:
    note = "CPU time of the device or its emulator; raw: of the echo's"
    return time_row("copy", f"{name}, CPU", peers.platform.name, result, note=note)


def measure_wire(peers: Peers) -> list[Row]:
    """Bytes on the wire, both directions, for each byte of payload: nothing is timed."""
    with launch(peers.server) as running:
        meter = MeteredTransport(running.transport)
        with connect(running, meter) as device:
            # All are made before the first is metered: what is freed meanwhile would count.
            copies = [(host, device.array(host)) for host in map(_random_vector, _WIRE_SIZES)]
            return [row for host, array in copies for row in _wire_rows(peers, meter, array, host)]


def _random_vector(size: int) -> npt.NDArray[np.int8]:
    return random_int8((size,))


def _wire_rows(
    peers: Peers, meter: MeteredTransport, array: RemoteArray, host: npt.NDArray[np.int8]
) -> list[Row]:
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
