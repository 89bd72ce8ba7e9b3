# SPDX-License-Identifier: Apache-2.0
"""A short run of each fuzz target, from the kept corpus. `python -m tests.fuzz` makes a long run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz.targets import HERE, MAX_LENGTH, command
from tests.native import build, compiles, need_tools

RUNS = 4000


@pytest.fixture(scope="session")
def programs(native_build: Callable[[str], Path]) -> Path:
    """The directory of the fuzz targets."""
    need_tools("cmake", "ninja", "clang")
    if not compiles("clang", "-fsanitize=fuzzer-no-link,address,undefined"):
        pytest.skip("clang has no libFuzzer: apt-get install clang libclang-rt-dev")
    return build(HERE, native_build("fuzz"), env={"CC": "clang"})


@pytest.mark.slow
@pytest.mark.parametrize("target", MAX_LENGTH)
def test_target(programs: Path, tmp_path: Path, target: str) -> None:
    """All inputs, the kept inputs first, run without a finding."""
    done = subprocess.run(
        command(programs, target, RUNS, tmp_path, tmp_path, seed=1),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    report = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        pytest.fail(report[-6000:], pytrace=False)
    assert f"Done {RUNS} runs" in report
