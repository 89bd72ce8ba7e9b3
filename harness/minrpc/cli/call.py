# SPDX-License-Identifier: Apache-2.0
"""`minrpc call`: loads C into a device and calls one function of it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path

import numpy as np

from minrpc.cli.call_arguments import parse_argument, to_host
from minrpc.cli.selected import require_one, selected
from minrpc.cli.source_options import add_source_options, load_with, sources_from, told_if_unfit
from minrpc.library import LoadedLibrary
from minrpc.library.c_library import CFunction
from minrpc.pipeline import open_device
from minrpc.program.c_types import Void, strip
from minrpc.running import RunningDevice
from minrpc.targets.options import add_device_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_call_arguments(parser)
    parser.add_argument("--wave", type=Path, metavar="FILE.fst", help="on RTL, the call's waveform")


def add_call_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of each command that calls a function of a C file."""
    add = parser.add_argument
    add("source", type=Path, metavar="FILE", help="the C file")
    add("function", metavar="FUNC", help="a function of the sources")
    add(
        "--arg",
        action="append",
        default=[],
        metavar="ARG",
        help="an argument: int16[64] (small random numbers), 3, 0x1f or 0.5; repeat it for each argument",
    )
    add_source_options(add)
    add_device_options(add)


def main(arguments: argparse.Namespace) -> int:
    """Call the function on each platform; print the result, and the changed arrays."""
    return call_on_each(arguments, lambda _: nullcontext(), arguments.wave)


def call_on_each(
    arguments: argparse.Namespace,
    around: Callable[[LoadedLibrary], AbstractContextManager[None]],
    wave: Path | None = None,
) -> int:
    """Do `main` with each call within `around(library)`; wave: the file for its waveform."""
    sources = sources_from(arguments, [arguments.source])
    plan = [parse_argument(text) for text in arguments.arg]
    selection = selected(arguments)
    if wave:
        require_one(selection.targets, "--wave takes")
    for target in selection.targets:
        given = to_host(plan)
        with open_device(target.changed(wave=wave)) as device, ExitStack() as stack:
            library = load_with(arguments.function, device, sources, stack)
            if wave and isinstance(device.owner, RunningDevice) and device.owner.recording:
                device.owner.recording.watch(library[arguments.function].address)
            with around(library), told_if_unfit([arguments.source]):
                _call(library[arguments.function], given, target.name)
    return 0


def _call(function: CFunction, given: Sequence[object], where: str) -> None:
    before = [value.copy() if isinstance(value, np.ndarray) else value for value in given]
    result = function(*given)
    print(f"{function.prototype} on {where}")
    if not isinstance(strip(function.function.type.result), Void):
        print(f"  returned {'NULL' if result is None else repr(result)}")
    names = [
        parameter.name or f"argument {index}"
        for index, parameter in enumerate(function.function.type.parameters)
    ]
    for name, old, new in zip(names, before, given, strict=True):
        if isinstance(new, np.ndarray) and not np.array_equal(np.asarray(old), new):
            print(f"  {name} = {np.array2string(new, threshold=16, separator=', ')}", flush=True)
