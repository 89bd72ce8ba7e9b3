# SPDX-License-Identifier: Apache-2.0
"""`minrpc bench`: costs of this program, against a raw baseline measured in the same run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from minrpc.cli.json_output import add_json_option, write_json
from minrpc.errors import ConfigurationError
from minrpc.firmware.zephyr_boards import resolved
from minrpc.targets import Target
from minrpc.targets.options import add_device_options, split_names

from minrpc_bench.rows import Group
from minrpc_bench.run import GROUPS, Plan, run
from minrpc_bench.table import report_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--platform",
        metavar="NAME[,NAME...]",
        default="posix,bare_mps2_an385",
        help="platforms to measure (default %(default)s)",
    )
    add_device_options(parser.add_argument, ["platforms-file"])
    parser.add_argument(
        "--only",
        metavar="GROUP[,GROUP...]",
        help=f"groups to measure, of: {', '.join(GROUPS)} (default: all)",
    )
    parser.add_argument("--rounds", type=int, default=11, metavar="N", help="turns of each pair (default 11)")
    parser.add_argument(
        "--sizes", action="store_true", help="only size and stack of each source, no platform"
    )
    add_json_option(parser.add_argument, "keep the result in this file")


def main(arguments: argparse.Namespace) -> int:
    """Measure and show; returns 0, or 1 if a part could not be measured. No number makes it fail."""
    plan = Plan(_targets(arguments), _groups(arguments), _rounds(arguments))
    report = run(plan, lambda line: print(f"bench: {line}", file=sys.stderr, flush=True))
    print(report_text(report))
    write_json(arguments, report.content(), passed=not report.failures)
    for part, reason in report.failures.items():
        print(f"minrpc: {part}: {reason}", file=sys.stderr)
    return 1 if report.failures else 0


def _targets(arguments: argparse.Namespace) -> list[Target]:
    if arguments.sizes:
        return []
    file = arguments.platforms_file
    named = [Target.named(name, platforms_file=file) for name in split_names([arguments.platform])]
    return [replace(target, platform=resolved(target.platform)) for target in named]


def _groups(arguments: argparse.Namespace) -> Sequence[Group]:
    if arguments.sizes:
        return ("size",)
    if not arguments.only:
        return GROUPS
    names = split_names([arguments.only])
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        known = ", ".join(GROUPS)
        raise ConfigurationError(f"there is no group {unknown[0]!r}", next_step=f"choose of: {known}")
    return [group for group in GROUPS if group in names]


def _rounds(arguments: argparse.Namespace) -> int:
    rounds: int = arguments.rounds
    if rounds < 1:
        raise ConfigurationError(f"--rounds {rounds}: at least one is needed", next_step="leave it out")
    return rounds
