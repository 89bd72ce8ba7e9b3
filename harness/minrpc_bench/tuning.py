# SPDX-License-Identifier: Apache-2.0
"""Candidates of a C kernel a minute: tuned on one device and on two, against a firmware built for each."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
from minrpc.firmware import build
from minrpc.pipeline import open_device
from minrpc.tuning import Kernel, Space, tune

from minrpc_bench.peers import Peers
from minrpc_bench.rows import Goal, Row

_CANDIDATES: Final = 120
_BUILDS: Final = 3
_A_MINUTE: Final = Goal("at least", 400.0, "value")
_TIMES: Final = {"baremetal": 10.0, "zephyr": 50.0}

_KERNEL: Final = """\
#include <stdint.h>

int32_t dot(const int8_t *a, const int8_t *b, int32_t n);

int32_t dot(const int8_t *a, const int8_t *b, int32_t n)
{
	int32_t sum = 0;

	__asm__ volatile("" ::"r"(CANDIDATE));
	for (int32_t i = 0; i + UNROLL <= n; i += UNROLL) {
		for (int32_t j = 0; j < UNROLL; j++) {
			sum += a[i + j] * b[i + j];
		}
	}
	return sum;
}
"""


def measure(peers: Peers) -> list[Row]:
    """Every candidate is new to the compiler, checked, and timed by three repeats."""
    name = peers.platform.name
    with TemporaryDirectory(prefix="minrpc-bench-") as directory:
        source = Path(directory) / "dot.c"
        source.write_text(_KERNEL)
        numbers = count(int(time.time()))
        rebuilt = 60.0 * _BUILDS / _seconds(lambda: _rebuilt(peers, source, numbers))
        rows = []
        for jobs in (1, 2):
            before = _cpu_s()
            rate = 60.0 * _CANDIDATES / _seconds(lambda: _tuned(peers, source, numbers, jobs))  # noqa: B023
            each = (_cpu_s() - before) / _CANDIDATES
            goal = _A_MINUTE if jobs == 1 and peers.platform.port == "baremetal" else None
            title = f"candidates a minute, {jobs} device{'s' * (jobs > 1)}"
            note = f"{_CANDIDATES} of a dot product, each compiled, checked, timed in {each:.2f} s of CPU"
            rows.append(Row("tune", title, name, "1/min", rate, goal=goal, note=note))
    times = _TIMES.get(peers.platform.port)
    return [
        *rows,
        Row(
            "tune",
            "candidates against rebuild and restart",
            name,
            "1/min",
            rows[0].value,
            rebuilt,
            rows[0].value / rebuilt,
            goal=Goal("at least", times) if times else None,
            note=f"baseline: the firmware built with the kernel, booted, called; {_BUILDS} of them",
        ),
    ]


def _tuned(peers: Peers, source: Path, numbers: count[int], jobs: int) -> None:
    a, b = (np.random.default_rng(seed).integers(-128, 128, 256, np.int8) for seed in (1, 2))
    kernel = Kernel(
        source, "dot", (a, b, 256), lambda a, b, n: int(np.dot(a[:n].astype(int), b[:n].astype(int)))
    )
    fresh = [str(next(numbers)) for _ in range(_CANDIDATES // 4)]
    space = Space({"CANDIDATE": fresh, "UNROLL": ["1", "2", "4", "8"]}, [("-O2",)])
    results = list(tune(kernel, space, peers.server, jobs=jobs))
    assert len(results) == _CANDIDATES
    assert all(result.valid for result in results), [result.reason for result in results if not result.valid]


def _rebuilt(peers: Peers, source: Path, numbers: count[int]) -> None:
    for number in islice(numbers, _BUILDS):
        defines = {"CANDIDATE": number, "UNROLL": 4}
        firmware = build(peers.server.target.changed(sources=[source], defines=defines))
        with open_device(firmware) as device:
            assert device.system_lib()["inc"](1) == 2


def _cpu_s() -> float:
    """Of this process and of all that it has waited for: compilers and emulators."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def _seconds(do: Callable[[], object]) -> float:
    begin = time.perf_counter()
    do()
    return time.perf_counter() - begin
