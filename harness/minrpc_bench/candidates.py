# SPDX-License-Identifier: Apache-2.0
"""What today's TVM gets through the bridge, and how many candidates of a kernel a minute has."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
from minrpc.library import Sources, load
from minrpc.pipeline import open_device
from minrpc.targets import Target

from minrpc_bench.paired import interleave
from minrpc_bench.peers import Peers, running_device
from minrpc_bench.round_trip import calls_of
from minrpc_bench.rows import Goal, Row, time_row

_CALLS: Final = {"process": 200, "qemu": 10}
_CALL: Final = Goal("at most", 2.5)
_A_MINUTE: Final = Goal("at least", 10.0)
_LOADED: Final = 20
_REBUILT: Final = 3

_KERNEL: Final = """\
#include <stdint.h>

int32_t candidate(const int8_t *a, const int8_t *b, int32_t n);

int32_t candidate(const int8_t *a, const int8_t *b, int32_t n)
{{
	int32_t sum = {0};

	for (int32_t i = 0; i < n; i++) {{
		sum += a[i] * b[i];
	}}
	return sum;
}}
"""


def measure(peers: Peers, rounds: int) -> list[Row]:
    """Raises ConfigurationError where TVM is not installed."""
    return [_call(peers, rounds), _candidates(peers.server.target)]


def _call(peers: Peers, rounds: int) -> Row:
    """`add` by TVM's client, which a process of its own serves, against ours."""
    from minrpc.tvm.code.relax import tvm
    from minrpc.tvm.rpc.served import session

    package = tvm()
    with running_device(peers.server) as (own, _), running_device(peers.server) as (lent, _):
        ours = calls_of(own)["add, 3 tensors"]
        with session(lent) as remote:
            add = remote.system_lib()["add"]
            a, b, c = (
                package.runtime.tensor(np.array(values, np.int8), remote.cpu(0))
                for values in ([2, 3], [4], [0, 0])
            )
            calls = _CALLS[peers.platform.starts]
            result = interleave(lambda: add(a, b, c), ours, rounds=rounds, calls=calls)
    goal = _CALL if peers.platform.starts == "process" else None
    note = "TVM's client over TCP; baseline: this project's client"
    return time_row("tvm", "add, 3 tensors, by TVM's client", peers.platform.name, result, goal, note)


def _candidates(target: Target) -> Row:
    """Compiled anew, run once and checked: loaded into a running device, or linked in and started."""
    numbers = count(int(time.time()) % 1_000_000)
    a, b = np.arange(64, dtype=np.int8), np.ones(64, np.int8)
    with TemporaryDirectory(prefix="minrpc-bench-") as name:
        source = Path(name) / "candidate.c"

        def written() -> int:
            number = next(numbers)
            source.write_text(_KERNEL.format(number))
            return number + int(a.sum())

        def rebuilt() -> None:
            expected = written()
            with open_device(target.changed(sources=[source])) as started:
                assert started.system_lib()["inc"](expected) == expected + 1

        with open_device(target) as device:

            def loaded() -> None:
                expected = written()
                with load(device, Sources.of(source)) as library:
                    assert library.candidate(a, b, 64) == expected

            ours, theirs = _a_minute(loaded, _LOADED), _a_minute(rebuilt, _REBUILT)
    note = "loaded into a running device; baseline: the firmware built with it and started"
    return Row(
        "tvm",
        "candidates a minute",
        target.name,
        "1/min",
        ours,
        theirs,
        ours / theirs,
        goal=_A_MINUTE,
        note=note,
    )


def _a_minute(do: Callable[[], None], times: int) -> float:
    do()
    begin = time.perf_counter()
    for _ in range(times):
        do()
    return 60.0 * times / (time.perf_counter() - begin)
