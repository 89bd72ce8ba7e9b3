# SPDX-License-Identifier: Apache-2.0
"""`minrpc call`: loads C into a device and calls one function of it."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from minrpc.cli.call_arguments import parse_argument, to_host
from minrpc.cli.selected import selected
from minrpc.cli.source_options import add_source_options, load_with, sources_from, told_if_unfit
from minrpc.pipeline import open_device
from minrpc.targets.options import add_device_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("source", type=Path, metavar="FILE", help="the C file")
    add("function", metavar="FUNC", help="a function of the sources")
    add(
        "--arg",
        action="append",
        default=[],
        metavar="ARG",
        help="an argument: int16[64] (small random numbers), 3 or 0.5; repeat the option for each argument",
    )
    add_source_options(add)
    add_device_options(add)


def main(arguments: argparse.Namespace) -> int:
    """Call the function on each platform; print the result, and the changed arrays."""
    sources = sources_from(arguments, [arguments.source])
    plan = [parse_argument(text) for text in arguments.arg]
    selection = selected(arguments)
    for target in selection.targets:
        given = to_host(plan)
        before = [value.copy() if isinstance(value, np.ndarray) else value for value in given]
        with open_device(target) as device, ExitStack() as stack:
            function = load_with(arguments.function, device, sources, stack)[arguments.function]
            with told_if_unfit([arguments.source]):
                result = function(*given)
        print(f"{function.prototype} on {target.name}")
        if result is not None:
            print(f"  returned {result!r}")
        names = [
            parameter.name or f"argument {index}"
            for index, parameter in enumerate(function.function.type.parameters)
        ]
        for name, old, new in zip(names, before, given, strict=True):
            if isinstance(new, np.ndarray) and not np.array_equal(old, new):
                print(f"  {name} = {np.array2string(new, threshold=16, separator=', ')}")
    return 0
