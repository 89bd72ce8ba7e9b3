# SPDX-License-Identifier: Apache-2.0
"""The command `minrpc`. Each sub-command is a module here with `add_arguments(parser)` and `main(arguments)`.

Exit status: 0 all well, 1 a failure (its report is on standard error), 2 wrong usage, 130 interrupted,
141 when the reader of its output has gone.
"""

from __future__ import annotations

import argparse
import codecs
import errno
import io
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from minrpc.cli.json_output import json_output
from minrpc.errors import ConfigurationError, DeadlineError, HarnessError
from minrpc.host.progress import shown_on
from minrpc.host.sandbox import sandboxed
from minrpc.names import did_you_mean
from minrpc.reports.document import package_version

GROUPS: Final = MappingProxyType(
    {
        "Call": {
            "check": "build, boot, call, compare and time: does everything work here?",
            "call": "load a C file into a device and call one of its functions",
            "debug": "call a function of a C file with gdb stopped at its first line",
            "functions": "list the C functions of a source: prototypes, code size, stack",
        },
        "Measure": {
            "time": "time a function on the device, with statistics and counters",
            "cycles": "compare a core's timing table with its RTL",
            "leakage": "find lines whose registers show a secret, on a core's RTL",
            "profile": "count a call's instructions, by function and line, in QEMU",
            "size": "show flash and RAM of a firmware, by component and symbol",
            "study": "measure a C function for many sizes, macros, flags and platforms",
            "tune": "find the parameters and flags that make a C kernel fastest",
        },
        "Report": {
            "report": "make one page of a function: time, counters, profile, size",
            "compare": "list slower calls and larger firmware, of two measurements",
        },
        "Devices": {
            "platforms": "list the platforms, and the packages that each lacks here",
            "info": "show a device's memory, link, options, clock",
            "serve": "keep a device running for other clients, such as TVM's",
            "board": "add a Zephyr board, flash it; list and map connected boards",
        },
        "This machine": {
            "doctor": "show versions, missing packages, and the commands to get them",
            "env": "print the variables for `west build` and twister",
            "cache": "show how much the kept firmware takes, and clean it",
            "completion": "print the code that makes a shell complete these commands",
            "help": "show the help of a command, or of `devices`, its options",
        },
    }
)
"""The commands by group, each with its purpose. A command has the name of its module."""

DEVELOPERS: Final = MappingProxyType({"bench": "measure the program's own costs against a raw baseline"})
"""Commands of a checkout only: their module is not part of the package."""

COMMANDS: Final = MappingProxyType(
    {name: purpose for group in GROUPS.values() for name, purpose in group.items()} | DEVELOPERS
)


@cache
def added() -> Mapping[str, tuple[str, str]]:
    """Purpose and module of each command of another package, see `minrpc.extension`.

    Installed packages are searched, which takes long: so only where no command of this package is named.
    """
    from importlib.metadata import entry_points

    points = entry_points(group="minrpc.commands")
    return {point.name: point.load() for point in points if find_spec(point.module.partition(".")[0])}


COMPLETES: Final = "_ARGCOMPLETE"
"""Set by a shell that asks for completions of the command line."""
_READER_GONE: Final = 141
_TAKE_A_DASH: Final = "--cmake-option"
_MORE: Final = "More options (--link, --timing, --call-timeout, ...): minrpc help devices"
_WIDEST: Final = max(map(len, COMMANDS))
_PLAIN: Final = "minrpc-plain"
_LETTERS: Final = MappingProxyType({"µ": "u", "±": "+-", "…": "...", "≥": ">=", "≤": "<="})


def main(argv: Sequence[str] | None = None) -> int:
    """Run `minrpc` with `argv`; returns the exit status."""
    if sys.stdout is None:  # Its descriptor was closed.
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - open until the process ends
    _write_what_the_locale_can()
    try:
        words = _joined(sys.argv[1:] if argv is None else argv)
        _refuse_unknown(words)
        if COMPLETES in os.environ:
            typed = os.environ.get("COMP_LINE", "").split()[1:]
            import_module("minrpc.cli.completion").answer(make_parser(_chosen(typed)))
        arguments, unknown = make_parser(_chosen(words)).parse_known_args(words)
        if unknown:
            _refuse_words(arguments.parser, unknown)
        try:
            wanted = bool(getattr(arguments, "sandbox", None))
            with json_output(arguments), shown_on(sys.stderr), sandboxed(wanted=wanted):
                status: int = _module(arguments.command).main(arguments)
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
        # The reader has stopped reading, as `head` does. Python would report the error again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _READER_GONE
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print(
            f"minrpc: {error.filename or 'standard output'} can't be written: {error.strerror}",
            file=sys.stderr,
        )
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def _joined(argv: Sequence[str]) -> list[str]:
    """`--flags -O3` as `--flags=-O3`, and so for `--cmake-option -DX=1`: argparse takes a value that begins
    with a dash for an option."""
    joined: list[str] = []
    for word in argv:
        takes = joined and (joined[-1] == "--flags" or (joined[-1] == _TAKE_A_DASH and word.startswith("-D")))
        if takes:
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _write_what_the_locale_can() -> None:
    """Replace characters that the output's encoding lacks: "us" for "µs"."""
    codecs.register_error(_PLAIN, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_PLAIN)


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_LETTERS.get(letter, "?") for letter in error.object[error.start : error.end]), error.end


class _Version(argparse.Action):
    """Prints the version, which is looked up only here."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"minrpc {package_version()}")
        parser.exit()


class _Parser(argparse.ArgumentParser):
    """A parser of a command, or of a command's action: it takes no abbreviations, and gives itself as the
    parsed `parser`."""

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 - as its base class
        super().__init__(allow_abbrev=False, **given)
        self.set_defaults(parser=self)


def make_parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """The parser. Only the sub-command `chosen` has its options: modules of the others are not loaded."""
    parser = _Parser(
        prog="minrpc",
        usage="minrpc [-h] [--version] COMMAND ...",
        description="Calls and measures C functions on microcontrollers, in QEMU or on a board.",
        epilog="\n".join(_overview()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    # The epilog shows the commands, by group.
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", prog="minrpc", help=argparse.SUPPRESS
    )
    for name in [*COMMANDS, *added()] if chosen is None else [chosen]:
        told = COMMANDS[name] if name in COMMANDS else added()[name][0]
        purpose = f"{told[0].upper()}{told[1:].rstrip('?.')}."
        command = commands.add_parser(name, description=purpose)
        if name == chosen:
            _module(name).add_arguments(command)
            if any(action.dest == "link" for action in command._actions):
                command.epilog = _MORE
    return parser


def _overview() -> Iterator[str]:
    """The commands by group, in 80 columns."""
    further = {"Added by packages": {name: purpose for name, (purpose, _) in added().items()}}
    for title, group in (GROUPS | further if added() else GROUPS).items():
        yield f"{title}:"
        for name, purpose in group.items():
            yield f"  {name:<{_WIDEST}}  {purpose}"
        yield ""
    yield "`minrpc COMMAND --help` shows the options of a command."


def _module(command: str) -> Any:  # noqa: ANN401 - a module with add_arguments and main
    if command not in COMMANDS:
        return import_module(added()[command][1])
    if command not in DEVELOPERS:
        return import_module(f"minrpc.cli.{command}")
    if find_spec("minrpc_bench") is None:
        step = "run it in a checkout, as its ./run setup installs it"
        raise ConfigurationError(f"minrpc {command} is for developers, and not installed", next_step=step)
    return import_module("minrpc_bench.command")


def _refuse_unknown(words: Sequence[str]) -> None:
    """Raise ConfigurationError for an unknown command."""
    typed = _typed(words)
    if typed is not None and _chosen(words) is None:
        step = did_you_mean(typed, [*COMMANDS, *added()]) or "see `minrpc --help`"
        raise ConfigurationError(f"there is no command {typed}", next_step=step)


def _refuse_words(parser: argparse.ArgumentParser, unknown: Sequence[str]) -> None:
    """End the program with an error for words that the command does not take."""
    option = next((word for word in unknown if word.startswith("--")), "")
    similar = did_you_mean(option.partition("=")[0], parser._option_string_actions)
    parser.error(f"unrecognized arguments: {' '.join(unknown)}{similar and f'; {similar}'}")


def _typed(words: Sequence[str]) -> str | None:
    return next((word for word in words if not word.startswith("-")), None)


def _chosen(words: Sequence[str]) -> str | None:
    """The command that the words name, if there is such a command."""
    typed = _typed(words)
    return typed if typed is not None and (typed in COMMANDS or typed in added()) else None
