# SPDX-License-Identifier: Apache-2.0
"""Options of several commands: for compiling C for a device, for calls, and for builds."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from minrpc.cli.call_arguments import CallArgument, call_arguments
from minrpc.cli.unused_options import refuse
from minrpc.errors import ConfigurationError, HarnessError
from minrpc.host.process import shell_words
from minrpc.library import LoadedLibrary, Sources
from minrpc.pipeline import Device
from minrpc.publish.recording import load_function


def add_sandbox_option(add: Callable[..., Any], help_text: str = "for C of strangers") -> None:
    """Declare the option for compilers and devices in a sandbox; None if it is not given."""
    kind = argparse.BooleanOptionalAction
    add("--sandbox", action=kind, help=f"compile and run as `minrpc serve` does: {help_text}")


def add_source_options(add: Callable[..., Any]) -> None:
    """Declare the options for compiling C, as `Device.load` takes them."""
    add_sandbox_option(add)
    add("--flags", action="append", default=[], metavar="FLAGS", help="for the compiler, such as -O3")
    add("--include", action="append", default=[], type=Path, metavar="DIR", help="a directory of headers")
    add("--define", action="append", default=[], metavar="NAME[=VALUE]", help="a definition")
    add("--library", action="append", default=[], type=Path, metavar="FILE", help="an archive to link with")


SOURCE_OPTIONS: Final = ("flags", "include", "define", "library")
"""The options that `add_source_options` declares, without the sandbox's."""


CALL_OPTIONS: Final = ("source", *SOURCE_OPTIONS, "shape", "dtype", "arg")
"""The options that `add_call_options` declares, without the sandbox's."""


def add_call_options(add: Callable[..., Any]) -> None:
    """Declare the options of commands that call FUNC: its C source, and its arguments."""
    add(
        "--source",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="C to load into the device; FUNC is one of its functions",
    )
    add_source_options(add)
    add("--shape", metavar="N[,N...]", help="shape of the arrays that add, mul and exp take (default 1024)")
    add("--dtype", metavar="TYPE", help="type of their elements (default float32)")
    add(
        "--arg",
        action="append",
        default=[],
        metavar="ARG",
        help="an argument, for any function: float32[16,64], 3, 0x1f or 0.5; repeat it for each argument",
    )


def add_build_options(add: Callable[..., Any]) -> None:
    """Declare the options for building the firmware."""
    add(
        "--cmake-option",
        action="append",
        default=[],
        metavar="-DNAME=VALUE",
        help="a CMake option of the build",
    )


def plan_of(arguments: argparse.Namespace) -> list[CallArgument]:
    """The arguments of the call, from the options of `add_call_options`. Raises ConfigurationError."""
    if not arguments.source:
        refuse(arguments, SOURCE_OPTIONS, "without --source", "add --source FILE, or leave it out")
    plan = call_arguments(arguments.function, arguments.arg, arguments.shape, arguments.dtype)
    wide = [value for value in plan if isinstance(value, int) and value >= 2**63]
    if wide and not arguments.source:
        message = f"--arg {wide[0]} does not fit into an integer of a packed function: 64 bits, with a sign"
        raise ConfigurationError(message, next_step="write 1e21 for a float, or call a C function (--source)")
    return plan


def given_sources(arguments: argparse.Namespace) -> Sources | None:
    """The sources of `--source`; None without. Raises ConfigurationError for missing files."""
    return sources_from(arguments, arguments.source) if arguments.source else None


def sources_from(arguments: argparse.Namespace, files: Sequence[Path]) -> Sources:
    """The sources to compile. Raises ConfigurationError for missing files."""
    return Sources.of(
        files,
        include=arguments.include,
        flags=[flag for given in arguments.flags for flag in shell_words(given)],
        defines=arguments.define,
        libraries=arguments.library,
    )


def load_with(function: str, device: Device, sources: Sources, stack: ExitStack) -> LoadedLibrary:
    """The library of `load_function`. Raises ConfigurationError also for a function that can't be called."""
    with told_if_unfit(sources.files):
        return load_function(device, sources, function, stack)


@contextmanager
def told_if_unfit(files: Sequence[Path]) -> Iterator[None]:
    """Context of a call of a function of `files`: raises ConfigurationError for arguments that do not fit."""
    try:
        yield
    except HarnessError:
        raise
    except (TypeError, ValueError) as error:
        if not files:
            raise
        step = f"see its functions: minrpc functions {files[0]}"
        raise ConfigurationError(str(error.args[0]), next_step=step) from error
