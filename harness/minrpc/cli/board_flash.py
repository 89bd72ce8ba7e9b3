# SPDX-License-Identifier: Apache-2.0
"""`minrpc board flash`: builds the firmware of a board and flashes it, by the runner that Zephyr knows."""

from __future__ import annotations

import argparse
from contextlib import ExitStack

from minrpc.firmware import build
from minrpc.firmware.flash import check_flashable, flash
from minrpc.running.lease import lease
from minrpc.targets import Target, TargetFields
from minrpc.targets.options import add_device_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--platform", required=True, metavar="NAME", help="the board's platform")
    add_device_options(add, ["serial-port", "hardware-map", "platforms-file"])
    add("runner", nargs="*", metavar="-- ARG", help="arguments for `west flash`: --runner, --dev-id, ...")


def main(arguments: argparse.Namespace) -> int:
    """Build and flash; a board that was named is taken meanwhile. Raises BuildError and FlashError."""
    given = TargetFields(serial_port=arguments.serial_port, hardware_map=arguments.hardware_map)
    target = Target.named(arguments.platform, platforms_file=arguments.platforms_file, **given)
    check_flashable(target.platform)
    with ExitStack() as stack:
        if target.serial_port or target.hardware_map:
            held = lease(target)
            stack.callback(held.release)
            target = held.target
        print(f"{target.name}: firmware", flush=True)
        firmware = build(target)
        print(f"{target.name}: flash", flush=True)
        flash(firmware, [*target.flash_arguments, *arguments.runner])
    port = target.serial_port or "PATH"
    print(f"{target.name}: done; try: minrpc check --platform {target.name} --serial-port {port}")
    return 0
