# SPDX-License-Identifier: Apache-2.0
"""The command `minrpc`. Each sub-command is a module here with `add_arguments(parser)` and `main(arguments)`.

Exit status: 0 all well, 1 a failure (its report is on standard error), 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Final

from minrpc.errors import ConfigurationError, DeadlineError, HarnessError

# Name of a sub-command, which is its module's, and what it does.
COMMANDS: Final = MappingProxyType(
    {
        "check": "build, boot, call, compare and time: does everything work here?",
        "serve": "keep a device running, for any client to talk to",
        "flash": "build the firmware of a board and put it there",
        "platforms": "list the platforms, and what each lacks to run here",
        "doctor": "show the versions found, what is missing, and how to get it",
        "time": "measure how long a function takes on the device, with statistics",
        "clock": "show what a device's times are worth: its clock, overhead and drift",
        "compare": "show what got slower or bigger between two measurements, as Markdown",
        "bench": "measure what the program costs against a raw baseline",
    }
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `minrpc` with `argv`; the exit status."""
    try:
        arguments = make_parser(_chosen(sys.argv[1:] if argv is None else argv)).parse_args(argv)
        status: int = import_module(f"minrpc.cli.{arguments.command}").main(arguments)
    except HarnessError as error:
        if isinstance(error, DeadlineError) and error.limit == "call":
            error.next_step = "look at the console; if it is only slow: --call-timeout SECONDS"
        print(f"minrpc: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigurationError) else 1
    except KeyboardInterrupt:
        print("minrpc: interrupted", file=sys.stderr)
        return 130
    return status


def make_parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """The parser. Only the sub-command `chosen` has its options: what the others import is not loaded."""
    parser = argparse.ArgumentParser(
        prog="minrpc",
        description="Builds firmware, boots it, calls its functions and times them on the device.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=purpose[0].upper() + purpose[1:] + ".")
        if name == chosen:
            import_module(f"minrpc.cli.{name}").add_arguments(command)
    return parser


def _chosen(argv: Sequence[str]) -> str | None:
    return next((word for word in argv if word in COMMANDS), None)
