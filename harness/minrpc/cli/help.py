# SPDX-License-Identifier: Apache-2.0
"""`minrpc help`: the help of a command, or of the options that many commands have."""

from __future__ import annotations

import argparse

from minrpc.cli import COMMANDS, added, make_parser
from minrpc.targets.option_table import DEVICE_OPTIONS

DEVICES = "devices"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    topics = [DEVICES, *COMMANDS, *added()]
    parser.add_argument(
        "topic", nargs="?", choices=topics, metavar="TOPIC", help=f"one of {', '.join(topics)}"
    )


def main(arguments: argparse.Namespace) -> int:
    """Print the help."""
    if arguments.topic == DEVICES:
        print(_devices().format_help(), end="")
    elif arguments.topic is None:
        make_parser().print_help()
    else:
        make_parser(arguments.topic).parse_args([arguments.topic, "--help"])
    return 0


def _devices() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        add_help=False,
        usage=argparse.SUPPRESS,
        description="Options of devices. Commands that start devices, or attach to them, have these; pytest "
        "has them with a prefix, --minrpc-NAME.",
        epilog="In minrpc.toml, [device] sets many for all platforms, [platforms.NAME] for one platform.",
    )
    for name, option in DEVICE_OPTIONS.items():
        parser.add_argument(f"--{name}", **option.argparse)
    return parser
