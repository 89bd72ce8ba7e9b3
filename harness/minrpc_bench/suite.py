# SPDX-License-Identifier: Apache-2.0
"""The whole test suite, warm."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from typing import Final

from minrpc.errors import ConfigurationError
from minrpc.firmware.sources import firmware_root

from minrpc_bench.paired import timed
from minrpc_bench.rows import Goal, Row

PLATFORMS: Final = "posix,bare_mps2_an385"
_ON_ALL_CPUS: Final = ("-n", "auto", "--maxprocesses", "8", "--dist", "worksteal")  # as `./run test`
_LIMIT_S: Final = 1800.0


def measure() -> Row:
    """Seconds of the second of two runs: the first fills the cache of firmware.

    On a machine that has other work the CPU time says more: the note has it.

    Raises ConfigurationError where there is no checkout with the tests.
    """
    tests = firmware_root() / "tests"
    if not tests.is_dir():
        raise ConfigurationError(f"{tests} does not exist: the suite is in the checkout only")
    _run(tests)
    status: list[int] = []
    before = _children_s()
    seconds = timed(lambda: status.append(_run(tests)))
    return Row(
        group="suite",
        name="all tests, warm",
        platform=PLATFORMS,
        unit="s",
        value=seconds,
        goal=Goal("at most", 60.0, "value"),
        note=f"{_children_s() - before:.0f} s of CPU time; {_outcome(status[0])}",
    )


def _outcome(status: int) -> str:
    return "all passed" if status == 0 else f"pytest ended with status {status}"


def _children_s() -> float:
    """CPU seconds of all processes that this one has waited for, and that they have."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run(tests: Path) -> int:
    command = [sys.executable, "-m", "pytest", str(tests), "-q", "--platform", PLATFORMS, *_ON_ALL_CPUS]
    ran = subprocess.run(command, cwd=tests.parent, stdout=subprocess.DEVNULL, timeout=_LIMIT_S, check=False)
    return ran.returncode
