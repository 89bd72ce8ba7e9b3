# SPDX-License-Identifier: Apache-2.0
"""The command `minrpc`. Each sub-command is a module here with `add_arguments(parser)` and `main(arguments)`.

Exit status: 0 all well, 1 a failure (its report is on standard error), 2 wrong usage, 130 interrupted,
141 when the reader of its output has gone.
"""

from __future__ import annotations

import argparse
import codecs
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Final

from minrpc.cli.json_output import json_output
from minrpc.errors import ConfigurationError, DeadlineError, HarnessError
from minrpc.reports.document import package_version

# Name of a sub-command, which is its module's, and what it does.
COMMANDS: Final = MappingProxyType(
    {
        "check": "build, boot, call, compare and time: does everything work here?",
        "serve": "keep a device running, for any client to talk to",
        "pipe": "write a program that is a device, for the PopenSession of TVM's client",
        "flash": "build the firmware of a board and put it there",
        "platforms": "list the platforms, and what each lacks to run here",
        "board": "add a board of Zephyr's to minrpc.toml: what its own files don't say",
        "env": 'print what `west build` and twister need set: eval "$(minrpc env)"',
        "doctor": "show the versions found, what is missing, and how to get it",
        "functions": "list the C functions of a source: prototypes, code size, stack",
        "call": "load a C file into a device and call a function of it",
        "time": "measure how long a function takes on the device, with statistics",
        "clock": "show what a device's times are worth: its clock, overhead and drift",
        "profile": "show what one call executes, by function and source line, in QEMU",
        "size": "show what a firmware takes of flash and RAM, by component and symbol",
        "report": "make one page of a function: time, counters, profile and size on each platform",
        "model": "run a trained network on a device, its time by operator; or export it as C",
        "tune": "find the parameters and flags that make a C kernel fastest on the device",
        "stats": "show what a device says of its memory, its clock and its link",
        "compare": "show what got slower or bigger between two measurements, as Markdown",
        "bench": "measure what the program costs against a raw baseline",
        "cache": "show how much the firmware that is kept takes, and clean it",
        "completion": "print what makes a shell complete these commands and their options",
    }
)


COMPLETES: Final = "_ARGCOMPLETE"
"""Set by a shell that asks how the line that is typed can go on."""
_READER_GONE: Final = 141
_TAKE_A_DASH: Final = ("--option", "--cmake-option")
_PLAIN: Final = "minrpc-plain"
_LETTERS: Final = MappingProxyType({"µ": "u", "±": "+-", "…": "...", "≥": ">=", "≤": "<="})


def main(argv: Sequence[str] | None = None) -> int:
    """Run `minrpc` with `argv`; the exit status."""
    _write_what_the_locale_can()
    try:
        words = _joined(sys.argv[1:] if argv is None else argv)
        if COMPLETES in os.environ:
            typed = os.environ.get("COMP_LINE", "").split()
            import_module("minrpc.cli.completion").answer(make_parser(_chosen(typed)))
        arguments = make_parser(_chosen(words)).parse_args(words)
        try:
            with json_output(arguments):
                status: int = import_module(f"minrpc.cli.{arguments.command}").main(arguments)
            sys.stdout.flush()
        finally:
            for name, why in getattr(arguments, "left_out", {}).items():
                print(f"minrpc: {name} was left out: {why}", file=sys.stderr)
    except HarnessError as error:
        if isinstance(error, DeadlineError) and error.limit == "call":
            error.next_step = "look at the console; if it is only slow: --call-timeout SECONDS"
        print(f"minrpc: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigurationError) else 1
    except KeyboardInterrupt:
        print("minrpc: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader has what it wanted, as `head` does. Python would complain once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _READER_GONE
    return status


def _joined(argv: Sequence[str]) -> list[str]:
    """`--option -DX=1` as `--option=-DX=1`, `--flags -O3` as `--flags=-O3`: argparse takes what begins with
    a dash for an option of ours."""
    joined: list[str] = []
    for word in argv:
        takes = joined and (joined[-1] == "--flags" or (joined[-1] in _TAKE_A_DASH and word.startswith("-D")))
        if takes:
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _write_what_the_locale_can() -> None:
    """A letter that the output can't hold becomes one that it can: "us" for "µs"."""
    codecs.register_error(_PLAIN, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_PLAIN)


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_LETTERS.get(letter, "?") for letter in error.object[error.start : error.end]), error.end


def make_parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """The parser. Only the sub-command `chosen` has its options: what the others import is not loaded."""
    parser = argparse.ArgumentParser(
        prog="minrpc",
        description="Builds firmware, boots it, calls its functions and times them on the device.",
    )
    parser.add_argument("--version", action="version", version=f"minrpc {package_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=purpose[0].upper() + purpose[1:] + ".")
        if name == chosen:
            import_module(f"minrpc.cli.{name}").add_arguments(command)
    return parser


def _chosen(argv: Sequence[str]) -> str | None:
    return next((word for word in argv if word in COMMANDS), None)
