# SPDX-License-Identifier: Apache-2.0
"""A run of benchmarks: what is asked for, on which platforms, one after the other."""

from __future__ import annotations

import os
import platform as machine
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar, get_args

import numpy as np
from minrpc.errors import HarnessError
from minrpc.firmware.toolchain import compiler_version
from minrpc.targets import Target

from minrpc_bench import (
    boot,
    candidates,
    copies,
    cpu,
    direct,
    instructions,
    loads,
    memory_use,
    opening,
    plugin_cost,
    resend_cost,
    round_trip,
    sizes,
    start_up,
    suite,
    tuning,
)
from minrpc_bench.peers import Peers, build_peers
from minrpc_bench.rows import Group, Report, Row

GROUPS: Final[tuple[Group, ...]] = get_args(Group)
DEFAULT_GROUPS: Final[tuple[Group, ...]] = tuple(
    group for group in GROUPS if group not in ("resend", "suite", "tune", "tvm")
)
"""All that have goals, but the slowest and what needs TVM."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure.

    rounds: how often the two sides of a ratio take turns.
    """

    targets: Sequence[Target]
    groups: Sequence[Group] = DEFAULT_GROUPS
    rounds: int = 11


def run(plan: Plan, say: Callable[[str], None]) -> Report:
    """Measure; `say` gets a line before each part. What fails is in the report, with its reason."""
    parts = _Parts(say)
    if any(group in _MEASURES for group in plan.groups):
        for target in plan.targets:
            _target(parts, target, plan)
    if "start-up" in plan.groups:
        parts.rows += parts.do("the start of pytest", lambda: [start_up.measure(plan.rounds)]) or []
    if "suite" in plan.groups:
        parts.rows += parts.do("the test suite, twice", lambda: [suite.measure()]) or []
    measured = parts.do("sizes", sizes.measure) if "size" in plan.groups else None
    if measured:
        parts.rows += sizes.rows(measured)
    sources = measured.sources if measured else []
    return Report({**about(), **parts.facts}, parts.rows, sources, parts.failures)


T = TypeVar("T")


class _Parts:
    """What has been measured so far. A part that fails does not take the others with it."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.rows: list[Row] = []
        self.facts: dict[str, str] = {}
        self.failures: dict[str, str] = {}
        self._say = say

    def do(self, title: str, measure: Callable[[], T]) -> T | None:
        """What `measure` gives; None when it failed."""
        self._say(title)
        try:
            return measure()
        except HarnessError as error:
            self.failures[title] = str(error)
            return None


def _target(parts: _Parts, target: Target, plan: Plan) -> None:
    peers = parts.do(f"{target.name}: building", lambda: build_peers(target))
    if peers is None:
        return
    parts.facts[f"firmware of {target.name}"] = peers.server.content_hash[:16]
    for group in plan.groups:
        if group in _MEASURES:
            measure = partial(_MEASURES[group], peers, plan.rounds)
            parts.rows += parts.do(f"{target.name}: {group}", measure) or []


# Emulated links are slow: a few rounds of what takes seconds.
_SLOW_ROUNDS: Final = 5
_BOOT_ROUNDS: Final = 25


def _copy_rounds(peers: Peers, rounds: int) -> int:
    return rounds if peers.platform.starts == "process" else min(rounds, _SLOW_ROUNDS)


_MEASURES: Final[dict[Group, Callable[[Peers, int], list[Row]]]] = {
    "round trip": round_trip.measure,
    "copy": lambda peers, rounds: copies.measure(peers, _copy_rounds(peers, rounds)),
    "wire": lambda peers, _: copies.measure_wire(peers),
    "boot": lambda peers, rounds: boot.measure(peers, min(rounds, _BOOT_ROUNDS)),
    "open": lambda peers, rounds: opening.measure(peers, _copy_rounds(peers, rounds)),
    "cpu": lambda peers, _: cpu.measure(peers),
    "resend": lambda peers, rounds: resend_cost.measure(peers, rounds, _copy_rounds(peers, rounds)),
    "size": lambda peers, _: memory_use.measure(peers),
    "load": loads.measure,
    "direct": lambda peers, _: direct.measure(peers),
    "tune": lambda peers, _: tuning.measure(peers),
    "instructions": lambda peers, _: instructions.measure(peers),
    "counters": lambda peers, _: plugin_cost.measure(peers),
    "tvm": candidates.measure,
}


def about() -> dict[str, str]:
    """The machine and the tools, as far as numbers depend on them."""
    load = " ".join(f"{load:.1f}" for load in os.getloadavg())
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
