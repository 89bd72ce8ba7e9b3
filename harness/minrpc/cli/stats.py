# SPDX-License-Identifier: Apache-2.0
"""`minrpc stats`: what a device says of its memory, its uptime and its link."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from minrpc.cli.selected import selected
from minrpc.client import DeviceInfo
from minrpc.host.deadline import Deadline
from minrpc.pipeline import connect
from minrpc.running import start
from minrpc.targets.options import add_device_options, options_from
from minrpc.timing.units import quantity


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--reset-peaks", action="store_true", help="peaks are those of now on, for the next session")
    add_device_options(add)


def main(arguments: argparse.Namespace) -> int:
    """Ask each device, and show."""
    options = options_from(vars(arguments))
    selection = selected(arguments)
    total = Deadline("stats", options.total_timeout_s)
    for target in selection.targets:
        with start(target, total=total) as running, connect(running, total=total) as device:
            info = device.info()
            stats = device.stats(reset_peaks=arguments.reset_peaks)
        print(target.name)
        for name, value in facts(info):
            print(f"  {name:<9} {value}")
        if stats.heap_used is not None:
            print(f"  {'heap':<9} {stats.heap_used:,} bytes in use, {stats.heap_peak:,} at the most")
    return 0


def facts(info: DeviceInfo) -> Iterator[tuple[str, str]]:
    """What `info` says, a fact a line: of now, at the most since the device's start, and in all."""
    yield (
        "arena",
        (
            f"{info.arena_used:,} of {info.arena_size:,} bytes in use, {info.arena_peak:,} at the most, "
            f"{info.arena_largest_free:,} free in one piece"
        ),
    )
    known = f"{info.stack_peak:,} of {info.stack_size:,} bytes at the most"
    yield "stack", known if info.stack_size else "not known"
    yield "message", f"at most {info.max_packet:,} bytes"
    if info.clock is not None:
        seconds = info.clock.cycles / info.clock.cycles_hz
        yield (
            "clock",
            f"{quantity(seconds, 's')} by the cycle counter, {quantity(info.clock.cycles_hz, 'Hz')}",
        )
    yield "link", ", ".join(f"{name} {count}" for name, count in info.link_counts().items())
    for region in info.regions:
        yield "memory", f"{region.kind}: {region.size:,} bytes at 0x{region.base:x}"
    yield "options", ", ".join(info.options) or "none"
    yield "build id", info.build_id or "not known"
