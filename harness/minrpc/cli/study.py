# SPDX-License-Identifier: Apache-2.0
"""`minrpc study`: measures a C function for all combinations of sizes, macros, flags and platforms."""

from __future__ import annotations

import argparse
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from minrpc.cli.call_arguments import parse_argument, to_host
from minrpc.cli.selected import selected
from minrpc.cli.source_options import add_sandbox_option
from minrpc.errors import ConfigurationError
from minrpc.host.files import check_writable, write_output
from minrpc.reports.figures import check_target
from minrpc.targets.options import START_OPTIONS, add_device_options
from minrpc.tuning.candidates import parse_flags, parse_param

if TYPE_CHECKING:
    from minrpc.tuning.kernel import Kernel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("source", type=Path, metavar="FILE", help="the C file")
    add("function", metavar="FUNC", help="a function of the sources")
    add(
        "--over",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="values of a name in --arg, or of a macro: n=16,64,256 or n=16:128:16",
    )
    add("--flags", default="", metavar="SETS", help="compiler flags, sets with commas between: -O2,-O3,-Os")
    add("--arg", action="append", default=[], metavar="ARG", help="an argument: int8[n], n, 3, data.npy")
    add("--include", action="append", default=[], type=Path, metavar="DIR", help="a directory of headers")
    add("--counters", default="", metavar="all|NAME[,NAME...]", help="further columns, under QEMU: cycles")
    add("--jobs", type=int, default=1, metavar="N", help="devices at once (default 1)")
    add("--csv", type=Path, metavar="FILE", help="the table as CSV")
    add("--plot", type=Path, metavar="FILE", help="draw it over the first name, as PNG, SVG or PDF")
    add_sandbox_option(add)
    add_device_options(add, START_OPTIONS)


def main(arguments: argparse.Namespace) -> int:
    """Print the table; 1 if a measurement failed."""
    from minrpc.tuning.study import study

    over = dict(map(partial(parse_param, option="--over"), arguments.over))
    if len(over) < len(arguments.over):
        raise ConfigurationError(
            "--over names a name twice", next_step="write all values of a name in one --over"
        )
    if arguments.jobs < 1:
        raise ConfigurationError(f"--jobs is at least 1, not {arguments.jobs}", next_step="leave it out")
    if arguments.csv is not None:
        check_writable(arguments.csv)
    if arguments.plot is not None:
        check_target(arguments.plot)
    sized = [name for name in over if any(re.search(rf"\b{name}\b", text) for text in arguments.arg)]
    macros = {name: values for name, values in over.items() if name not in sized}
    values = {**{name: over[name] for name in sized}, **macros}
    if arguments.flags:
        values["flags"] = [" ".join(words) for words in parse_flags(arguments.flags)]
    made = study(
        partial(_kernel, arguments),
        values,
        selected(arguments).targets,
        arguments.jobs,
        sized,
        call_timeout_s=arguments.call_timeout,
    )
    print(made.markdown())
    if arguments.csv is not None:
        write_output(arguments.csv, made.csv())
    if arguments.plot is not None:
        made.plot(arguments.plot)
    return int(any(row["outcome"] != "correct" for row in made.rows))


def _kernel(arguments: argparse.Namespace, **sizes: str) -> Kernel:
    """The kernel with these values for the names in its arguments."""
    from minrpc.tuning.kernel import Kernel

    texts = [
        re.sub(r"(?<![\w.])[A-Za-z_]\w*\b(?!\[|\.npy)", lambda word: sizes.get(word[0], word[0]), text)
        for text in arguments.arg
    ]
    named = tuple(filter(None, arguments.counters.split(",")))
    return Kernel(
        arguments.source,
        arguments.function,
        tuple(to_host([parse_argument(text) for text in texts])),
        include=tuple(arguments.include),
        counters="all" if arguments.counters == "all" else named,
    )
