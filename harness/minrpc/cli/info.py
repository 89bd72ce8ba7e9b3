# SPDX-License-Identifier: Apache-2.0
"""`minrpc info`: a device's memory, link and options; its clock, and the cost of a measurement by it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from minrpc.check.checking import clock_hint
from minrpc.cli.json_output import add_json_option, write_json
from minrpc.cli.selected import selected
from minrpc.client import DeviceInfo
from minrpc.errors import ConfigurationError, DialectError, TimerError
from minrpc.host.deadline import Deadline
from minrpc.pipeline import Device, connect
from minrpc.reports.columns import fact
from minrpc.running import start
from minrpc.targets import Platform, Target
from minrpc.targets.options import add_device_options, check_seconds, options_from
from minrpc.timing.drift import Enclosed, clock_drift
from minrpc.timing.units import count, quantity

_DRIFT_S: Final = 10.0
# Number of readings at either end; the fastest is used.
_LOOKS = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add(
        "--drift",
        type=float,
        nargs="?",
        const=_DRIFT_S,
        metavar="SECONDS",
        help=f"compare the clock with this machine's for this time (default {_DRIFT_S:g})",
    )
    add(
        "--reset-peaks",
        action="store_true",
        help="restart the memory peaks; the next session shows the new peaks",
    )
    add_json_option(add)
    add_device_options(add)


def main(arguments: argparse.Namespace) -> int:
    """Ask each device, and show its facts."""
    options = options_from(vars(arguments))
    if arguments.drift is not None:
        check_seconds("--drift", arguments.drift)
        if arguments.drift >= options.total_timeout_s:
            limit = f"the limit for everything, --total-timeout {options.total_timeout_s:g}"
            step = "choose a shorter time, or a longer limit"
            raise ConfigurationError(f"--drift {arguments.drift:g} is not within {limit}", next_step=step)
    selection = selected(arguments)
    total = Deadline("info", options.total_timeout_s)
    rows = [_show(target, arguments, total) for target in selection.targets]
    write_json(arguments, {"devices": rows})
    return 0


def _show(target: Target, arguments: argparse.Namespace, total: Deadline) -> dict[str, Any]:
    """Show the device; returns the shown facts for the JSON."""
    row: dict[str, Any] = {"platform": target.name}
    with start(target, total=total) as running, connect(running, total=total) as device:
        print(target.name)
        info = device.info()
        stats = device.stats(reset_peaks=arguments.reset_peaks)
        for name, value in facts(info):
            print(fact(name, value))
        if stats.heap_used is not None:
            print(fact("heap", f"{stats.heap_used:,} bytes in use, {stats.heap_peak:,} at the most"))
        row |= _memory_json(info)
        for name, text, numbers in _clock_facts(device, target.platform, arguments.drift):
            print(fact(name, text), flush=True)
            row[name] = numbers
    return row


def _memory_json(info: DeviceInfo) -> dict[str, Any]:
    return {
        "arena_bytes": info.arena_size,
        "arena_used_bytes": info.arena_used,
        "arena_peak_bytes": info.arena_peak,
        "stack_bytes": info.stack_size or None,
        "stack_peak_bytes": info.stack_peak if info.stack_size and info.stack_peak else None,
        "packet_bytes": info.max_packet,
        "link": info.link_counts(),
        "options": sorted(info.options),
        "build_id": info.build_id or None,
    }


def facts(info: DeviceInfo) -> Iterator[tuple[str, str]]:
    """Memory, link and options: a name and a text for each line."""
    yield (
        "arena",
        (
            f"{info.arena_used:,} of {info.arena_size:,} bytes used, peak {info.arena_peak:,}, "
            f"largest free {info.arena_largest_free:,}"
        ),
    )
    peak = f"{info.stack_peak:,}" if info.stack_peak else "not known"
    known = f"{peak} of {info.stack_size:,} bytes at the most"
    yield "stack", known if info.stack_size else "not known"
    yield "message", f"at most {info.max_packet:,} bytes"
    if info.clock is not None:
        seconds = info.clock.ticks / info.clock.ticks_hz
        yield (
            "uptime",
            f"{quantity(seconds, 's')} by the cycle counter, {quantity(info.clock.ticks_hz, 'Hz')}",
        )
    yield "link", ", ".join(f"{name} {count}" for name, count in info.link_counts().items())
    for region in info.regions:
        yield "memory", f"{region.kind}: {region.size:,} bytes at 0x{region.base:x}"
    yield "options", ", ".join(sorted(info.options)) or "none"
    yield "build id", info.build_id or "not known"


def _clock_facts(
    device: Device, platform: Platform, seconds: float | None
) -> Iterator[tuple[str, str, dict[str, Any] | None]]:
    """Each fact's name, its text, and its numbers."""
    before = _look(device).reading
    measurement = device.system_lib().measure("", number=1, repeat=1)()
    after = _look(device).reading
    cost = measurement.overhead
    clock = measurement.clock
    yield "clock", str(clock), {**clock.to_json(), "resolution_s": clock.resolution_s}
    if after.stands_still_since(before):
        raise TimerError(
            f"the counter stands still at {after.ticks:,}",
            stage="info",
            next_step=_another_clock(platform),
        )
    yield (
        "overhead",
        f"timer {count(cost.timer)} ticks a repeat, loop and empty call {count(cost.call)} a call",
        {"repeat_ticks": cost.timer, "call_ticks": cost.call},
    )
    hint = clock_hint(platform, clock)
    if hint:
        yield "hint", hint, None
    if clock.mode == "exact":
        yield "drift", "none: virtual time is not the host's", None
    elif seconds:
        drift = clock_drift(watch(device, seconds, time.sleep))
        numbers = {"drift_ppm": drift.ppm, "error_ppm": drift.error_ppm, "watched_s": drift.seconds}
        yield "drift", f"{drift} against the host's clock", numbers


def _another_clock(platform: Platform) -> str:
    if platform.port == "zephyr":
        return "choose another clock: CONFIG_MINRPC_CLOCK_CYCLES=y is right on every Zephyr board"
    return "it measures no time: check that the firmware's port starts its counter"


def watch(device: Device, seconds: float, wait: Callable[[float], None]) -> list[Enclosed]:
    """Readings of the device's clock at the beginning and the end of a period of `seconds`."""
    looks = [_look(device) for _ in range(_LOOKS)]
    wait(seconds)
    return looks + [_look(device) for _ in range(_LOOKS)]


def _look(device: Device) -> Enclosed:
    before = time.clock_gettime(time.CLOCK_MONOTONIC_RAW)
    reading = device.info().clock
    after = time.clock_gettime(time.CLOCK_MONOTONIC_RAW)
    if reading is None:
        raise DialectError(
            "the device does not report its clock's time", next_step="build its firmware again"
        )
    return Enclosed(before, after, reading)
