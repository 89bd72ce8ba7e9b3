# SPDX-License-Identifier: Apache-2.0
"""A run of benchmarks: groups of rows, platform by platform."""

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

from minrpc_bench import copies, instructions, loads, plugin_cost, round_trip, service, sizes, starts, wall
from minrpc_bench.peers import Peers, build_peers
from minrpc_bench.rows import Group, Report, Row

GROUPS: Final[tuple[Group, ...]] = get_args(Group)

T = TypeVar("T")
_MEASURES: Final[dict[Group, Callable[[Peers, int], list[Row]]]] = {
    "round trip": round_trip.measure,
    "copy": copies.measure,
    "start": starts.measure,
    "load": loads.measure,
    "instructions": lambda peers, _: instructions.measure(peers),
    "counters": lambda peers, _: plugin_cost.measure(peers),
    "wall": lambda peers, _: wall.measure(peers),
    "serve": service.measure,
}


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
    parts = _Parts(say)
    if any(group in _MEASURES for group in plan.groups):
        for target in plan.targets:
            _target(parts, target, plan)
    measured = parts.do("sizes", sizes.measure) if "size" in plan.groups else None
    rows, sources = (sizes.rows(measured), measured.sources) if measured else ([], [])
    return Report(about(), [*parts.rows, *rows], sources, parts.failures)


class _Parts:
    """Rows and failures so far: a part that fails leaves the others."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.rows: list[Row] = []
        self.failures: dict[str, str] = {}
        self._say = say

    def do(self, title: str, measure: Callable[[], T]) -> T | None:
        """The result of `measure`; None when it failed."""
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
    for group in plan.groups:
        if group in _MEASURES:
            measure = partial(_MEASURES[group], peers, plan.rounds)
            parts.rows += parts.do(f"{target.name}: {group}", measure) or []


def about() -> dict[str, str]:
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
