# SPDX-License-Identifier: Apache-2.0
"""Times of calls, copies, starts and loads, each measured in turns with its baseline."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import numpy.typing as npt
from minrpc.errors import HarnessError
from minrpc.library import Sources, load
from minrpc.pipeline import Device, connect, open_device
from minrpc.running import RunningDevice, start
from minrpc.targets import Platform

from minrpc_bench.paired import interleave
from minrpc_bench.peers import (
    MeteredTransport,
    Peers,
    cpu_clock,
    expect_ready,
    on_one_cpu,
    running_device,
    running_raw,
)
from minrpc_bench.rows import Goal, Row, time_row

# Calls in a round, and the most rounds: a round of copies on an emulated link takes seconds.
_CALLS: Final = {"process": 200, "qemu": 10}
_COPIES: Final = {"process": 5, "qemu": 1}
_OPENINGS: Final = {"process": 20, "qemu": 1}
_COPY_ROUNDS: Final = {"process": 1000, "qemu": 5}
_START_ROUNDS: Final = {"process": 25, "qemu": 5}
_OWN_CALLS: Final = 3000
_OWN_ROUNDS: Final = 7
_LOADS: Final = 20
_ASKED: Final = 16

_TRIP_GOALS: Final = {"inc": Goal("at most", 2.0), "add, 3 tensors": Goal("at most", 2.5)}
_COPY_GOALS: Final = {"process": Goal("at least", 0.25), "qemu": Goal("at least", 0.85)}
_BOOT_GOAL: Final = Goal("at most", 1.3)
_OPEN_GOAL: Final = Goal("at most", 3000.0, "value")
_LOADED_GOAL: Final = Goal("at most", 1.05)
_NUMPY_GOAL: Final = Goal("at most", 1.5)
_FAKE_GOAL: Final = Goal("at most", 1.5)
_LOADS_GOAL: Final = Goal("at least", 120.0, "value")

_MIB: Final = 1 << 20
# An emulated UART takes 30 us a byte to the device, and 4 us back. A copy to the device goes in messages of
# 64 KiB, so the ratio of one message holds for any number; a copy back takes one request.
_UP: Final = {"process": (512, 512), "qemu": (256, 256)}
_BACK: Final = (512, 512)

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


def calls_of(device: Device) -> dict[str, Callable[[], object]]:
    """The timed calls: an integer in and out, and three tensors of one and two elements."""
    library = device.system_lib()
    inc, add = library["inc"], library["add"]
    a = device.array(np.array([2, 3], np.int8))
    b = device.array(np.array([4], np.int8))
    c = device.empty((2,), np.int8)
    return {"inc": lambda: inc(1), "add, 3 tensors": lambda: add(a, b, c)}


def round_trip(peers: Peers, rounds: int) -> list[Row]:
    """Calls of trivial functions, compared with an echo of as many bytes, and this program's own CPU time.

    Only posix has goals: an emulated UART takes longer than all of this program.
    """
    sizes, own = _metered(peers)
    platform = peers.platform
    note = "raw: echo of {} bytes by a C program on the same kind of link, all on one CPU"
    rows = []
    with (
        running_device(peers.server) as (device, running),
        running_raw(peers.raw) as raw,
        on_one_cpu(running, raw.running),
    ):
        raw.echo_all()
        for name, call in calls_of(device).items():
            ping = raw.pings(b"x" * sizes[name])
            (result,) = interleave(call, ping, rounds=rounds, calls=_CALLS[platform.starts])
            goal = _TRIP_GOALS.get(name) if platform.starts == "process" else None
            rows.append(time_row("round trip", name, platform.name, result, goal, note.format(sizes[name])))
    return rows + [
        Row("round trip", f"{name}, CPU of this program alone", platform.name, "us", seconds * 1e6)
        for name, seconds in own.items()
    ]


def _metered(peers: Peers) -> tuple[dict[str, int], dict[str, float]]:
    """For each call the larger of its bytes sent and received, and its CPU seconds without the device."""
    sizes, own = {}, {}
    with start(peers.server) as running:
        meter = MeteredTransport(running.transport)
        with connect(running, transport=meter, direct=False) as device:
            for name, call in calls_of(device).items():
                call()  # A first call also has the session's requests.
                sizes[name] = max(meter.during(call))
                own[name] = own_cpu_s(meter, call, _OWN_CALLS, _OWN_ROUNDS)
    return sizes, own


def own_cpu_s(meter: MeteredTransport, call: Callable[[], object], calls: int, rounds: int) -> float:
    """CPU seconds of a call that the device has just answered: the least of the rounds.

    Other processes only add to it, by their use of the processor's caches.
    """
    meter.replays = True
    taken = []
    try:
        for _ in range(rounds):
            begin = time.process_time()
            for _ in range(calls):
                call()
            taken.append(time.process_time() - begin)
        return min(taken) / calls
    finally:
        meter.replays = False


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


def copy(peers: Peers, rounds: int) -> list[Row]:
    """Throughput of int8 arrays in each direction, against as many bytes without the protocol."""
    starts, platform = peers.platform.starts, peers.platform
    note = "raw: as many bytes one way; an emulator's all on one CPU"
    rows = []
    with (
        running_device(peers.server) as (device, running),
        running_raw(peers.raw) as raw,
        # Two processes stream in parallel; an emulator transfers single bytes, and each wakes the waiting
        # process.
        on_one_cpu(running, raw.running) if starts == "qemu" else nullcontext(),
    ):
        up, back = copies_of(device, platform)
        for each, baseline in ((up, raw.takes(bytes(up.nbytes))), (back, raw.gives(back.nbytes))):
            (result,) = interleave(
                each.run, baseline, rounds=min(rounds, _COPY_ROUNDS[starts]), calls=_COPIES[starts]
            )
            # Throughput is the inverse of time, and so is the ratio.
            size, ratio, spread = each.nbytes / _MIB, 1 / result.ratio, result.spread / result.ratio**2
            speeds = (size / result.value, size / result.baseline)
            goal = _COPY_GOALS.get(starts)
            rows.append(Row("copy", each.name, platform.name, "MiB/s", *speeds, ratio, spread, goal, note))
    return rows


def starts(peers: Peers, rounds: int) -> list[Row]:
    """Boot to the first result, and opening and closing a device whose firmware is built.

    Wall time, and CPU time, which a busy host does not change.
    """
    rounds = min(rounds, _START_ROUNDS[peers.platform.starts])
    note = "raw: the same of a program that prints one character, all on one CPU"
    with on_one_cpu():
        return [*_boot(peers, rounds, note), *_open(peers, rounds, note)]


def _boot(peers: Peers, rounds: int, note: str) -> list[Row]:
    """The start only, without the end."""
    stack = ExitStack()
    running: list[RunningDevice] = []

    def first_result() -> None:
        device, started = stack.enter_context(running_device(peers.server))
        running.append(started)
        if device.system_lib()["inc"](1) != 2:
            raise HarnessError("inc(1) is not 2")

    def first_character() -> None:
        running.append(stack.enter_context(start(peers.raw)))
        expect_ready(running[-1])

    def stop() -> None:
        running.clear()
        stack.close()

    wall, cpu = interleave(
        first_result,
        first_character,
        rounds=rounds,
        calls=1,
        clocks=[time.perf_counter, lambda: cpu_clock(*running)() + time.process_time()],
        after=stop,
    )
    name, goal = peers.platform.name, _BOOT_GOAL if peers.platform.starts == "qemu" else None
    return [
        time_row("start", "boot to first result", name, wall, goal, note),
        time_row("start", "boot to first result, CPU", name, cpu),
    ]


def _open(peers: Peers, rounds: int, note: str) -> list[Row]:
    """Opens and closes a device, with the check that the firmware is up to date."""
    name, starts = peers.platform.name, peers.platform.starts

    def raw() -> None:
        with running_raw(peers.raw):
            pass

    wall, cpu = interleave(
        lambda: open_device(peers.server.target).close(),
        raw,
        rounds=rounds,
        calls=_OPENINGS[starts],
        clocks=[time.perf_counter, _cpu_s],
    )
    goal = _OPEN_GOAL if starts == "process" else None
    return [
        time_row("start", "open and close", name, wall, goal, note),
        time_row("start", "open and close, CPU", name, cpu),
    ]


def _cpu_s() -> float:
    """CPU seconds of this process and of its ended children: compilers, emulators."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def loads(peers: Peers, rounds: int) -> list[Row]:
    """Calls of a loaded function, and loads a minute."""
    rows = []
    with TemporaryDirectory(prefix="minrpc-bench-") as name:
        called, functions = Path(name) / "called.c", Path(name) / "set.c"
        called.write_text(_CALLED)
        functions.write_text("\n".join(_FUNCTION.format(i, 2 * i + 3) for i in range(_FUNCTIONS)))
        for direct in (True, False):
            with (
                running_device(peers.server, direct=direct) as (device, running),
                on_one_cpu(running),
            ):
                rows += _calls(peers, device, called, rounds, direct=direct)
        with running_device(peers.server) as (device, _):
            return [*rows, _loads(peers, device, functions)]


def _calls(peers: Peers, device: Device, source: Path, rounds: int, *, direct: bool) -> list[Row]:
    """direct: as for `running_device`; without it, only the call that copies arrays."""
    loaded = load(device, Sources.of(source), fakes={"hal_read": lambda channel: channel + 1})
    add, ours = device.system_lib()["add"], loaded["add_int8"]
    a, b, c = np.array([2, 3], np.int8), np.array([4], np.int8), np.zeros(2, np.int8)
    arrays = device.array(a), device.array(b), device.empty((2,), np.int8)

    def packed() -> None:
        add(*arrays)

    def with_numpy() -> None:
        c.fill(0)
        ours(a, b, c)

    def calls() -> None:
        for number in range(_ASKED + 1):
            loaded["plain"](number)

    def row(
        name: str, call: Callable[[], object], baseline: Callable[[], None], goal: Goal | None, note: str
    ) -> Row:
        number = _CALLS[peers.platform.starts]
        (result,) = interleave(call, baseline, rounds=rounds, calls=number)
        return time_row("load", name, peers.platform.name, result, goal, f"baseline: {note}")

    if not direct:
        return [row("the same over the link alone, as on a board", with_numpy, packed, None, 'lib["add"]')]
    fakes = f"a call with {_ASKED} fakes"
    return [
        row("a call of a loaded function", lambda: ours(*arrays), packed, _LOADED_GOAL, 'lib["add"]'),
        row(fakes, lambda: loaded["asks"](_ASKED), calls, _FAKE_GOAL, f"{_ASKED + 1} calls"),
        row("a call with numpy arrays", with_numpy, packed, _NUMPY_GOAL, 'lib["add"]'),
    ]


def _loads(peers: Peers, device: Device, source: Path) -> Row:
    numbers = count(int(time.time()) % 30000)
    begin = time.perf_counter()
    for _ in range(_LOADS):
        with load(device, Sources.of(source, defines={"N": next(numbers)})) as library:
            library["f1"](None, None, 0)
    a_minute = 60.0 * _LOADS / (time.perf_counter() - begin)
    goal = _LOADS_GOAL if peers.platform.starts == "qemu" else None
    note = f"{_FUNCTIONS} functions, compiled again each time"
    return Row("load", "loads a minute", peers.platform.name, "1/min", a_minute, goal=goal, note=note)
