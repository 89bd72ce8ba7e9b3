# SPDX-License-Identifier: Apache-2.0
"""The samples' own tests pass."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[2] / "samples"


def run_sample(name: str, *options: str) -> str:
    """The output of a sample's tests, which pass."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", *options, "."],
        cwd=SAMPLES / name,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.slow
def test_driver() -> None:
    assert "38 passed, 1 skipped" in run_sample("driver", "--platform", "posix,bare_mps2_an385,bare_rv32")


@pytest.mark.slow
def test_firmware(tmp_path: Path) -> None:
    run = tmp_path / "run.json"
    platforms = "posix,bare_mps2_an385"
    shown = run_sample("firmware", "--platform", platforms, "--minrpc-report", str(run))
    assert "17 passed, 1 skipped" in shown
    command = [sys.executable, "-m", "minrpc", "report", "--from", str(run)]
    page = subprocess.run(command, cwd=SAMPLES / "firmware", capture_output=True, text=True, check=False)
    assert page.returncode == 0, page.stdout + page.stderr
    assert "| pid_step(StructValue, 5) | bare_mps2_an385 |" in page.stdout
