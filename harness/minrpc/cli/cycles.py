# SPDX-License-Identifier: Apache-2.0
"""`minrpc cycles`: a core's timing table against its RTL."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from minrpc.check.against_rtl import KERNELS, compare, estimator_for
from minrpc.cli.json_output import add_json_option, write_json
from minrpc.reports.markdown import table
from minrpc.targets import Target, find_platform, load_platforms
from minrpc.targets.options import add_device_options, options_from


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    text = "C file of kernels, each uint32_t f(uint32_t rounds) (default: 31 of this package)"
    add("source", type=Path, nargs="?", default=KERNELS, metavar="FILE", help=text)
    add("--against", required=True, metavar="PLATFORM", help="the core's RTL: a platform, such as rtl_ibex")
    add("--optimize", default="2", choices=("0", "1", "2", "3", "s"), help="the compiler's -O (default 2)")
    add_json_option(add)
    add_device_options(add, ["platforms-file", "call-timeout"])


def main(arguments: argparse.Namespace) -> int:
    """Compare, and show each kernel; 1 if the RTL's cycles are outside the estimate's range in one."""
    platforms = load_platforms(arguments.platforms_file)
    platform = find_platform(platforms, arguments.against)
    given = options_from(vars(arguments)).given
    rtl, estimator = (Target.of(each, **given) for each in (platform, estimator_for(platform, platforms)))
    rows = list(compare(rtl, estimator, arguments.source, arguments.optimize))
    lines = [
        [row.kernel, *(f"{number:,}" for number in (row.least, row.most, row.rtl, row.difference))]
        for row in rows
    ]
    print(f"cycles of 10 rounds: {platform.core} by its table on {estimator.name}, and {platform.name}\n")
    print(table(["kernel", "least", "most", "RTL", "difference"], lines, range(1, 5)))
    within, equal = sum(row.within for row in rows), sum(row.least == row.rtl == row.most for row in rows)
    print(f"\n{within} of {len(rows)} are within the table's range, {equal} equal to the cycle")
    write_json(arguments, {"kernels": [asdict(row) for row in rows]}, passed=within == len(rows))
    return 0 if within == len(rows) else 1
