# SPDX-License-Identifier: Apache-2.0
"""What the plugin costs a run of pytest that needs no device: it is loaded in each where it is installed."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from minrpc_bench.rows import Goal, Row

_GOAL: Final = Goal("at most", 15_000.0, "value")
_LIMIT_S: Final = 300.0
_TEST: Final = "def test_nothing():\n    pass\n"


def measure(rounds: int) -> Row:
    """CPU time of one trivial test, with the plugin and without, in turns; the difference's median."""
    with TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "test_nothing.py").write_text(_TEST)
        _cpu_s(directory)  # Python's own cache is filled.
        turns = [(_cpu_s(directory), _cpu_s(directory, "-p", "no:minrpc")) for _ in range(rounds)]
    whole, without = (median(side) * 1e6 for side in zip(*turns, strict=True))
    return Row(
        group="start-up",
        name="what the plugin adds, CPU",
        platform="pytest",
        unit="us",
        value=median(ours - bare for ours, bare in turns) * 1e6,
        goal=_GOAL,
        note=f"one trivial test: {whole / 1000:.0f} ms of CPU time with it, {without / 1000:.0f} without",
    )


def _cpu_s(directory: Path, *options: str) -> float:
    """CPU seconds of one run of pytest."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    before = _children_s()
    subprocess.run(command, cwd=directory, stdout=subprocess.DEVNULL, timeout=_LIMIT_S, check=True)
    return _children_s() - before


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
