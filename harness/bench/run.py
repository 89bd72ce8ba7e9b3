# SPDX-License-Identifier: Apache-2.0
"""A run of benchmarks: what is asked for, on which platforms, one after the other."""

from __future__ import annotations

import os
import platform as machine
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args

import numpy as np

from harness.bench import boot, copies, cpu, memory_use, resend_cost, round_trip, sizes, suite
from harness.bench.peers import Peers, build_peers
from harness.bench.rows import Group, Report, Row
from harness.platforms import Platform
from harness.platforms.toolchain import compiler_version

GROUPS: Final[tuple[Group, ...]] = get_args(Group)
DEFAULT_GROUPS: Final[tuple[Group, ...]] = tuple(
    group for group in GROUPS if group not in ("resend", "suite")
)
"""All that have goals, but the slowest."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure.

    rounds: how often the two sides of a ratio take turns.
    """

    platforms: Sequence[Platform]
    groups: Sequence[Group] = DEFAULT_GROUPS
    rounds: int = 11


def run(plan: Plan, say: Callable[[str], None]) -> Report:
    """Measure; `say` gets a line of progress before each part. Raises what building and running raise."""
    rows: list[Row] = []
    found: dict[str, str] = {}
    if any(group in _MEASURES for group in plan.groups):
        for platform in plan.platforms:
            say(f"{platform.name}: building")
            peers = build_peers(platform)
            found[f"firmware of {platform.name}"] = peers.server.content_hash[:16]
            rows += _on_platform(peers, plan, say)
    if "suite" in plan.groups:
        say("the test suite, twice")
        rows.append(suite.measure())
    sources = sizes.measure() if "size" in plan.groups else []
    if sources:
        rows += sizes.rows(sources, sizes.state_bytes())
    return Report({**about(), **found}, rows, sources)


def _on_platform(peers: Peers, plan: Plan, say: Callable[[str], None]) -> Iterator[Row]:
    for group in plan.groups:
        if group in _MEASURES:
            say(f"{peers.platform.name}: {group}")
            yield from _MEASURES[group](peers, plan.rounds)


# Emulated links are slow: a few rounds of what takes seconds.
_SLOW_ROUNDS: Final = 5
_BOOT_ROUNDS: Final = 25


def _copy_rounds(peers: Peers, rounds: int) -> int:
    return rounds if peers.platform.starts == "process" else min(rounds, _SLOW_ROUNDS)


_MEASURES: Final[dict[Group, Callable[[Peers, int], list[Row]]]] = {
    "round trip": round_trip.measure,
    "copy": lambda peers, rounds: copies.measure(peers, _copy_rounds(peers, rounds)),
    "wire": lambda peers, _: copies.measure_wire(peers),
    "boot": lambda peers, rounds: [boot.measure(peers, min(rounds, _BOOT_ROUNDS))],
    "cpu": lambda peers, _: cpu.measure(peers),
    "resend": lambda peers, rounds: resend_cost.measure(peers, rounds, _copy_rounds(peers, rounds)),
    "size": lambda peers, _: memory_use.measure(peers),
}


def about() -> dict[str, str]:
    """The machine and the tools, as far as numbers depend on them."""
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    return {
        "machine": f"{_processor()}, {os.cpu_count()} CPUs, load {load}",
        "python": f"{machine.python_version()}, numpy {np.__version__}",
        "compiler": compiler_version(sizes.COMPILER) or "none",
    }


def _processor() -> str:
    """As Linux names it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, machine.machine())
