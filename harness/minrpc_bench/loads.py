# SPDX-License-Identifier: Apache-2.0
"""Loads of code into a device, and calls of loaded functions."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
from minrpc.library import Sources, load
from minrpc.pipeline import Device

from minrpc_bench.paired import interleave
from minrpc_bench.peers import Peers, on_one_cpu, running_device
from minrpc_bench.rows import Goal, Row, time_row

_CALLS: Final = {"process": 200, "qemu": 10}
_NO_MORE: Final = Goal("at most", 1.05)
_NUMPY: Final = Goal("at most", 1.5)
_FAKE: Final = Goal("at most", 1.5)
_ASKED: Final = 16
_A_MINUTE: Final = Goal("at least", 120.0, "value")
_LOADS: Final = 20

_CALLED: Final = """\
#include <stdint.h>

int add_int8(const int8_t *a, const int8_t *b, int8_t *c)
{
	c[0] = (int8_t)(a[0] + b[0]);
	c[1] = (int8_t)(a[1] + b[0]);
	return 0;
}

int hal_read(int channel);

int plain(int channel)
{
	return channel + 1;
}

int asks(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++) {
		sum += hal_read(i);
	}
	return sum;
}
"""
# About 4 KiB on a Cortex-M3; N makes each load new to the compiler.
_FUNCTION: Final = """\
int f{0}(const short *x, short *y, int n)
{{
	int sum = N;

	for (int i = 0; i < n; i++) {{
		int at = x[i] * {1} + sum;

		y[i] = (short)(at > 32767 ? 32767 : at < -32768 ? -32768 : at);
		sum += y[i] ^ (i * {0});
	}}
	return sum;
}}
"""
_FUNCTIONS: Final = 34


def measure(peers: Peers, rounds: int) -> list[Row]:
    """Calls of a loaded function, and loads a minute."""
    with TemporaryDirectory(prefix="minrpc-bench-") as name:
        called, functions = Path(name) / "called.c", Path(name) / "set.c"
        called.write_text(_CALLED)
        functions.write_text("\n".join(_FUNCTION.format(i, 2 * i + 3) for i in range(_FUNCTIONS)))
        with running_device(peers.server) as (device, running), on_one_cpu(running):
            rows = _calls(peers, device, called, rounds)
        with running_device(peers.server) as (device, _):
            return [*rows, _loads(peers, device, functions)]


def _calls(peers: Peers, device: Device, source: Path, rounds: int) -> list[Row]:
    loaded = load(device, Sources.of(source), fakes={"hal_read": lambda channel: channel + 1})
    add, ours = device.system_lib()["add"], loaded["add_int8"]
    a, b, c = np.array([2, 3], np.int8), np.array([4], np.int8), np.zeros(2, np.int8)
    arrays = device.array(a), device.array(b), device.empty((2,), np.int8)

    def packed() -> None:
        add(*arrays)

    def calls() -> None:
        for number in range(_ASKED + 1):
            loaded["plain"](number)

    def row(
        name: str, call: Callable[[], object], baseline: Callable[[], None], goal: Goal, note: str
    ) -> Row:
        number = _CALLS[peers.platform.starts]
        (result,) = interleave(call, baseline, rounds=rounds, calls=number)
        return time_row("load", name, peers.platform.name, result, goal, f"baseline: {note}")

    return [
        row("a call of a loaded function", lambda: ours(*arrays), packed, _NO_MORE, 'lib["add"]'),
        row("the same with numpy arrays", lambda: ours(a, b, c), packed, _NUMPY, 'lib["add"]'),
        row(
            f"a call with {_ASKED} fakes", lambda: loaded["asks"](_ASKED), calls, _FAKE, f"{_ASKED + 1} calls"
        ),
    ]


def _loads(peers: Peers, device: Device, source: Path) -> Row:
    numbers = count(int(time.time()) % 30000)
    begin = time.perf_counter()
    for _ in range(_LOADS):
        with load(device, Sources.of(source, defines={"N": next(numbers)})) as library:
            library["f1"](None, None, 0)
    a_minute = 60.0 * _LOADS / (time.perf_counter() - begin)
    goal = _A_MINUTE if peers.platform.starts == "qemu" else None
    note = f"{_FUNCTIONS} functions, compiled again each time"
    return Row("load", "loads a minute", peers.platform.name, "1/min", a_minute, goal=goal, note=note)
