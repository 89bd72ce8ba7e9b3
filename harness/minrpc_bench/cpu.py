# SPDX-License-Identifier: Apache-2.0
"""CPU time: what a call costs on either side, and what doing nothing costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from minrpc.firmware import Firmware
from minrpc.host.deadline import ProcessClock
from minrpc.pipeline import connect
from minrpc.running import start

from minrpc_bench.meter import ReplayingTransport
from minrpc_bench.peers import Peers, on_one_cpu, running_device
from minrpc_bench.round_trip import calls_of
from minrpc_bench.rows import Row

_CALLS: Final = {"process": 3000, "qemu": 100}
_IDLE_S: Final = 1.0
_ROUNDS: Final = 7


def measure(peers: Peers) -> list[Row]:
    """CPU microseconds of each call, by device (or emulator) and host, and of a second without one."""
    calls = _CALLS[peers.platform.starts]
    with running_device(peers.server) as (device, running), on_one_cpu(running):
        assert running.process is not None
        clock = ProcessClock(running.process.pid)
        rows: list[Row] = []
        for name, call in calls_of(device).items():
            call()
            rows += _call_rows(peers, name, call, calls, clock)
        rows.append(_idle_row(peers, clock))
    return [*rows, *_own_rows(peers, calls)]


def _call_rows(
    peers: Peers, name: str, call: Callable[[], object], calls: int, clock: ProcessClock
) -> list[Row]:
    device_s, host_s = clock.sample().cpu_s, time.process_time()
    for _ in range(calls):
        call()
    host_s = time.process_time() - host_s
    device_s = clock.sample().cpu_s - device_s
    return [
        _row(peers, f"device, a call of {name}", device_s / calls),
        _row(peers, f"host, a call of {name}", host_s / calls),
    ]


def _own_rows(peers: Peers, calls: int) -> list[Row]:
    """What is ours alone. The least of several rounds: what others do to the processor's caches only adds."""
    with replayed_calls(peers.server) as functions:
        return [
            _row(
                peers,
                f"ours alone, a call of {name}",
                min(_spent_s(call, calls) for _ in range(_ROUNDS)) / calls,
            )
            for name, call in functions.items()
        ]


@contextmanager
def replayed_calls(firmware: Firmware) -> Iterator[Mapping[str, Callable[[], object]]]:
    """The calls of `calls_of`; looking one up has it answered, and what comes next gets the same answer."""
    with start(firmware) as running:
        transport = ReplayingTransport(running.transport)
        with connect(running, transport=transport, direct=False) as device:
            yield _Replayed(calls_of(device), transport)
            transport.replays = False


class _Replayed(Mapping[str, Callable[[], object]]):
    def __init__(self, calls: Mapping[str, Callable[[], object]], transport: ReplayingTransport) -> None:
        self._calls, self._transport = calls, transport

    def __getitem__(self, name: str) -> Callable[[], object]:
        call = self._calls[name]
        self._transport.replays = False
        call()
        call()  # The last answer of this call, and of none that the first has brought along.
        self._transport.replays = True
        return call

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)


def _spent_s(call: Callable[[], object], calls: int) -> float:
    begin = time.process_time()
    for _ in range(calls):
        call()
    return time.process_time() - begin


def _idle_row(peers: Peers, clock: ProcessClock) -> Row:
    """Whoever polls is seen here."""
    begin = clock.sample().cpu_s
    time.sleep(_IDLE_S)
    return _row(peers, f"device, {_IDLE_S:g} s without a call", clock.sample().cpu_s - begin)


def _row(peers: Peers, name: str, seconds: float) -> Row:
    return Row(group="cpu", name=name, platform=peers.platform.name, unit="us", value=seconds * 1e6)
