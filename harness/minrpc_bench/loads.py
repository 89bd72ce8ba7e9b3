# SPDX-License-Identifier: Apache-2.0
"""What it takes to load code into a device, and to call it once it is there."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final, TypeVar

import numpy as np
from minrpc.library import LoadedLibrary, Sources, compile_sources, link, load, load_compiled, toolset_of
from minrpc.pipeline import Device

from minrpc_bench.paired import interleave
from minrpc_bench.peers import Peers, on_one_cpu, running_device
from minrpc_bench.rows import Goal, Row, time_row

T = TypeVar("T")
_CALLS: Final = {"process": 200, "qemu": 10}
_NO_MORE: Final = Goal("at most", 1.05)
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

void scale(const int16_t *x, int16_t *y, int n)
{
	for (int i = 0; i < n; i++) {
		y[i] = (int16_t)(x[i] * 2);
	}
}
"""
# About 4 KiB on a Cortex-M3; N makes each one new.
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
    """Calls of a loaded function, the stages of a load, and how many of them a minute has."""
    with TemporaryDirectory(prefix="minrpc-bench-") as name:
        directory = Path(name)
        (directory / "called.c").write_text(_CALLED)
        functions = "\n".join(_FUNCTION.format(index, 2 * index + 3) for index in range(_FUNCTIONS))
        (directory / "set.c").write_text(functions)
        with running_device(peers.server) as (device, running), on_one_cpu(running):
            rows = _calls(peers, device, directory / "called.c", rounds)
        with running_device(peers.server) as (device, _):
            return rows + _loads(peers, device, directory / "set.c", rounds)


def _calls(peers: Peers, device: Device, source: Path, rounds: int) -> list[Row]:
    loaded = load(device, Sources.of(source), fakes={"hal_read": lambda channel: channel + 1})
    add, ours = device.system_lib()["add"], loaded.add_int8
    a, b = device.array(np.array([2, 3], np.int8)), device.array(np.array([4], np.int8))
    c = device.empty((2,), np.int8)
    x, y = np.arange(64, dtype=np.int16), np.zeros(64, np.int16)
    calls = _CALLS[peers.platform.starts]
    name = peers.platform.name
    called = interleave(lambda: ours(a, b, c), lambda: add(a, b, c), rounds=rounds, calls=calls)
    guarded = interleave(
        lambda: loaded.scale(x, y, 64),
        lambda: loaded.scale(x, y, 64, guards=False),
        rounds=rounds,
        calls=calls,
    )
    asked = interleave(
        lambda: loaded.asks(_ASKED),
        lambda: [loaded.plain(number) for number in range(_ASKED + 1)],
        rounds=rounds,
        calls=calls,
    )
    return [
        time_row("load", "a call of a loaded function", name, called, _NO_MORE, 'baseline: lib["add"]'),
        time_row("load", "a call with guards, int16[64]", name, guarded, _NO_MORE, "baseline: without"),
        time_row("load", f"a call with {_ASKED} fakes", name, asked, _FAKE, f"baseline: {_ASKED + 1} calls"),
    ]


def _loads(peers: Peers, device: Device, source: Path, rounds: int) -> list[Row]:
    toolset = toolset_of(peers.server)
    numbers = count(int(time.time()) % 30000)
    base = load(device, Sources.of(source, defines={"N": 0})).image.base
    stages: dict[str, list[float]] = {"compile": [], "link": [], "link and upload": [], "first call": []}
    size = 0
    for _ in range(min(rounds, _LOADS)):
        given = _sources(source, next(numbers))
        compiled = _timed(stages["compile"], partial(compile_sources, given, toolset))
        size = len(_timed(stages["link"], partial(link, compiled, toolset, base)).data)
        library = _timed(stages["link and upload"], partial(load_compiled, device, compiled, toolset))
        _timed(stages["first call"], partial(_called, library))
        library.unload()
    begin = time.perf_counter()
    for _ in range(_LOADS):
        with load(device, _sources(source, next(numbers))) as library:
            _called(library)
    a_minute = 60.0 * _LOADS / (time.perf_counter() - begin)
    name = peers.platform.name
    medians = {stage: median(times) for stage, times in stages.items()}
    # What is not linking in the second of the two.
    medians["upload"] = medians.pop("link and upload") - medians["link"]
    rows = [
        Row(
            "load",
            f"{stage} of {_FUNCTIONS} functions",
            name,
            "us",
            seconds * 1e6,
            note=f"{size} bytes",
        )
        for stage, seconds in medians.items()
    ]
    goal = _A_MINUTE if peers.platform.starts == "qemu" else None
    return [
        *rows,
        Row("load", "loads a minute", name, "1/min", a_minute, goal=goal, note="each compiled anew"),
    ]


def _sources(source: Path, number: int) -> Sources:
    return Sources.of(source, defines={"N": number})


def _called(library: LoadedLibrary) -> object:
    return library.f1(None, None, 0)


def _timed(times: list[float], do: Callable[[], T]) -> T:
    begin = time.perf_counter()
    made = do()
    times.append(time.perf_counter() - begin)
    return made
