# SPDX-License-Identifier: Apache-2.0
"""`minrpc bench`: what the program costs, against a raw baseline measured in the same run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from minrpc.cli.json_output import add_json_option, write_json
from minrpc.errors import ConfigurationError
from minrpc.firmware.zephyr_boards import resolved
from minrpc.reports.figures import check_target
from minrpc.targets import Target
from minrpc.targets.options import add_device_options

from minrpc_bench import plot
from minrpc_bench.compare import comparison
from minrpc_bench.host_profile import profile
from minrpc_bench.peers import build_peers
from minrpc_bench.rows import Group, Report, load
from minrpc_bench.run import DEFAULT_GROUPS, GROUPS, Plan, run
from minrpc_bench.table import report_text

DEFAULT_PLATFORMS: Final = ("posix", "bare_mps2_an385")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--platform",
        metavar="NAME[,NAME...]",
        default=",".join(DEFAULT_PLATFORMS),
        help="platforms to measure (default %(default)s)",
    )
    add_device_options(parser.add_argument, ["platforms-file"])
    parser.add_argument(
        "--only",
        metavar="GROUP[,GROUP...]",
        help=f"what to measure, of: {', '.join(GROUPS)} (default: {', '.join(DEFAULT_GROUPS)})",
    )
    parser.add_argument("--rounds", type=int, default=11, metavar="N", help="turns of each pair (default 11)")
    parser.add_argument(
        "--sizes", action="store_true", help="only size and stack of each source, no platform"
    )
    add_json_option(parser.add_argument, "keep the result here")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the ratios, as PNG, SVG or PDF")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="show what changed since this result")
    parser.add_argument(
        "--profile", action="store_true", help="instead of measuring, show where the host's time goes"
    )


def main(arguments: argparse.Namespace) -> int:
    """Measure and show. No number makes it fail: 0, or 1 when something could not be measured."""
    targets = _targets(arguments)
    if arguments.profile:
        for target in targets:
            print(f"# {target.name}\n{profile(build_peers(target))}")
        return 0
    before = load(arguments.compare) if arguments.compare else None
    if arguments.plot:
        check_target(arguments.plot)
    report = run(Plan(targets, _groups(arguments), _rounds(arguments)), _say)
    print(report_text(report))
    if before is not None:
        print(f"\n{comparison(before, report)}")
    _keep(arguments, report)
    for part, reason in report.failures.items():
        print(f"minrpc: {part}: {reason}", file=sys.stderr)
    return 1 if report.failures else 0


def _targets(arguments: argparse.Namespace) -> list[Target]:
    if arguments.sizes:
        return []
    file = arguments.platforms_file
    named = [Target.named(name, platforms_file=file) for name in _words(arguments.platform)]
    return [replace(target, platform=resolved(target.platform)) for target in named]


def _groups(arguments: argparse.Namespace) -> Sequence[Group]:
    if arguments.sizes:
        return ("size",)
    if not arguments.only:
        return DEFAULT_GROUPS
    names = _words(arguments.only)
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        known = ", ".join(GROUPS)
        raise ConfigurationError(
            f"nothing called {unknown[0]!r} is measured", next_step=f"choose of: {known}"
        )
    return [group for group in GROUPS if group in names]


def _rounds(arguments: argparse.Namespace) -> int:
    rounds: int = arguments.rounds
    if rounds < 1:
        raise ConfigurationError(f"--rounds {rounds}: at least one is needed", next_step="leave it out")
    return rounds


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _say(line: str) -> None:
    print(f"bench: {line}", file=sys.stderr, flush=True)


def _keep(arguments: argparse.Namespace, report: Report) -> None:
    write_json(arguments, report.content(), passed=not report.failures)
    if arguments.plot and report.rows:
        plot.draw(report, arguments.plot)
        _say(f"drawn in {arguments.plot}")
