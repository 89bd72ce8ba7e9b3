# SPDX-License-Identifier: Apache-2.0
"""Runs the C tests of the runtime, each C case as a pytest case.

They are built on the host under sanitizers, for 64 and for 32 bits.

Each program runs once; its output for a case is that case's report.
"""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CASE = re.compile(r"^TEST\((\w+)\)", re.MULTILINE)
CASES = [
    (source.stem, case)
    for source in sorted(HERE.glob("test_*.c"))
    for case in CASE.findall(source.read_text())
]


@functools.cache
def _report(program: Path) -> str:
    """Everything that the program printed."""
    done = subprocess.run(
        [str(program)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return f"{done.stdout}\nexit status {done.returncode}"


@pytest.mark.parametrize(("program", "case"), CASES, ids=lambda value: value)
def test_case(programs: Path, program: str, case: str) -> None:
    """The C case ran to its end."""
    report = _report(programs / program)
    _, started, rest = report.partition(f"run {case}\n")
    assert started, f"{program} ended before it:\n{report[-4000:]}"
    if not re.search(rf"^ok {case}$", rest, re.MULTILINE):
        pytest.fail(rest.partition("\nrun ")[0][:4000], pytrace=False)
