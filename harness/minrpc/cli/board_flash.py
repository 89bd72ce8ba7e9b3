# SPDX-License-Identifier: Apache-2.0
"""`minrpc board flash`: builds the firmware of a board and flashes it, by the runner that Zephyr knows."""

from __future__ import annotations

import argparse

from minrpc.firmware import build
from minrpc.firmware.flash import check_flashable, flash
from minrpc.targets import Target
from minrpc.targets.options import add_device_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--platform", required=True, metavar="NAME", help="the board's platform")
    add_device_options(add, ["platforms-file"])
    add("runner", nargs="*", metavar="-- ARG", help="arguments for `west flash`: --runner, --dev-id, ...")


def main(arguments: argparse.Namespace) -> int:
    """Build and flash. Raises BuildError and FlashError."""
    target = Target.named(arguments.platform, platforms_file=arguments.platforms_file)
    check_flashable(target.platform)
    print(f"{target.name}: firmware", flush=True)
    firmware = build(target)
    print(f"{target.name}: flash", flush=True)
    flash(firmware, arguments.runner)
    print(f"{target.name}: done; try: minrpc check --platform {target.name} --serial-port PATH")
    return 0
