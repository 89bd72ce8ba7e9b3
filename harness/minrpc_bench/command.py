# SPDX-License-Identifier: Apache-2.0
"""`minrpc bench`: costs of this program, against a raw baseline measured in the same run."""

from __future__ import annotations

import argparse
import os
import platform as machine
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar, get_args

import numpy as np
from minrpc.cli.json_output import add_json_option, write_json
from minrpc.errors import ConfigurationError, HarnessError
from minrpc.firmware.toolchain import compiler_version
from minrpc.firmware.zephyr_boards import resolved
from minrpc.targets import Target
from minrpc.targets.options import add_device_options, split_names

from minrpc_bench import counted, service, sizes, times, wall_clock
from minrpc_bench.peers import Peers, build_peers
from minrpc_bench.rows import Group, Report, Row, report_text

GROUPS: Final[tuple[Group, ...]] = get_args(Group)

T = TypeVar("T")
_MEASURES: Final[dict[Group, Callable[[Peers, int], list[Row]]]] = {
    "round trip": times.round_trip,
    "copy": times.copy,
    "start": times.starts,
    "load": times.loads,
    "instructions": lambda peers, _: counted.instructions(peers),
    "counters": lambda peers, _: counted.cost(peers),
    "wall": lambda peers, _: wall_clock.measure(peers),
    "serve": service.measure,
}


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


@dataclass(frozen=True, slots=True)
class Plan:
    """Platforms and groups to measure.

    rounds: turns that the two sides of a ratio take.
    """

    targets: Sequence[Target]
    groups: Sequence[Group] = GROUPS
    rounds: int = 11


def run(plan: Plan, say: Callable[[str], None]) -> Report:
    """Measure; `say` gets a line before each part. A part that fails is in the report, with its reason."""
    rows: list[Row] = []
    failures: dict[str, str] = {}

    def part(title: str, measure: Callable[[], T]) -> T | None:
        say(title)
        try:
            return measure()
        except HarnessError as error:
            failures[title] = str(error)
            return None

    groups = [group for group in plan.groups if group in _MEASURES]
    for target in plan.targets if groups else ():
        peers = part(f"{target.name}: building", partial(build_peers, target))
        if peers is None:
            continue
        for group in groups:
            rows += part(f"{target.name}: {group}", partial(_MEASURES[group], peers, plan.rounds)) or []
    measured = part("sizes", sizes.measure) if "size" in plan.groups else None
    if measured:
        rows += sizes.rows(measured)
    return Report(_about(), rows, measured.sources if measured else (), failures)


def _about() -> dict[str, str]:
    """The machine and the tools that numbers depend on."""
    load = " ".join(f"{load:.1f}" for load in os.getloadavg())
    return {
        "machine": f"{_processor()}, {os.cpu_count()} CPUs, load {load}",
        "python": f"{machine.python_version()}, numpy {np.__version__}",
        "compiler": compiler_version(sizes.COMPILER) or "none",
    }


def _processor() -> str:
    """The processor's name in /proc/cpuinfo."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, machine.machine())
