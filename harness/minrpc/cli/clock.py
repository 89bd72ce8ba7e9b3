# SPDX-License-Identifier: Apache-2.0
"""`minrpc clock`: a device's clock, what measuring costs there, and how the clock goes against the host's."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

from minrpc.check.run import clock_hint
from minrpc.cli.json_output import add_json_option, write_json
from minrpc.cli.selected import selected
from minrpc.errors import ConfigurationError, DialectError, TimerError
from minrpc.host.deadline import Deadline
from minrpc.pipeline import Device, connect
from minrpc.running import start
from minrpc.targets import Platform, Target
from minrpc.targets.options import add_device_options, options_from
from minrpc.timing.drift import Enclosed, clock_drift
from minrpc.timing.units import count

# At either end so many readings, of which the one that took least is used.
_LOOKS = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    text = "how long to watch the clock for its drift (default 10; 0: not)"
    parser.add_argument("--seconds", type=float, default=10.0, metavar="S", help=text)
    add_json_option(parser.add_argument)
    add_device_options(parser.add_argument)


def main(arguments: argparse.Namespace) -> int:
    """Show each device's clock."""
    options = options_from(vars(arguments))
    if arguments.seconds < 0:
        raise ConfigurationError("--seconds is at least 0", next_step="leave it out")
    selection = selected(arguments)
    total = Deadline("clock", options.total_timeout_s)
    clocks = [_show(target, arguments.seconds, total) for target in selection.targets]
    write_json(arguments, {"clocks": clocks})
    return 0


def _show(target: Target, seconds: float, total: Deadline) -> dict[str, Any]:
    """Show the clock; what was shown, for the JSON."""
    found: dict[str, Any] = {"platform": target.name}
    with start(target, total=total) as running, connect(running, total=total) as device:
        print(target.name)
        for name, text, numbers in _facts(device, target.platform, seconds):
            print(f"  {name:<9} {text}", flush=True)
            found[name] = numbers
    return found


def _facts(
    device: Device, platform: Platform, seconds: float
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
            f"the counter stands still at {after.cycles:,}",
            stage="clock",
            next_step=_another_clock(platform),
        )
    yield (
        "overhead",
        f"timer {count(cost.timer)} cycles a repeat, loop and empty call {count(cost.call)} a call",
        {"repeat_cycles": cost.timer, "call_cycles": cost.call},
    )
    hint = clock_hint(platform, clock)
    if hint:
        yield "hint", hint, None
    if clock.mode == "exact":
        yield "drift", "none to tell: virtual time is not the host's", None
    elif seconds:
        drift = clock_drift(watch(device, seconds, time.sleep))
        numbers = {"drift_ppm": drift.ppm, "error_ppm": drift.error_ppm, "watched_s": drift.seconds}
        yield "drift", f"{drift} against the host's clock", numbers


def _another_clock(platform: Platform) -> str:
    if platform.port == "zephyr":
        return "choose another clock: CONFIG_MINRPC_CLOCK_CYCLES=y is right on every Zephyr board"
    return "no time can be measured by it: see that the firmware's port starts its counter"


def watch(device: Device, seconds: float, wait: Callable[[float], None]) -> list[Enclosed]:
    """Readings of the device's clock, at the beginning and at the end of so long a time."""
    looks = [_look(device) for _ in range(_LOOKS)]
    wait(seconds)
    return looks + [_look(device) for _ in range(_LOOKS)]


def _look(device: Device) -> Enclosed:
    before = time.clock_gettime(time.CLOCK_MONOTONIC_RAW)
    reading = device.info().clock
    after = time.clock_gettime(time.CLOCK_MONOTONIC_RAW)
    if reading is None:
        raise DialectError(
            "the device does not tell what its clock reads", next_step="build its firmware anew"
        )
    return Enclosed(before, after, reading)
