# SPDX-License-Identifier: Apache-2.0
"""The samples' own tests pass."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.mark.slow
def test_firmware(tmp_path: Path) -> None:
    run = tmp_path / "run.json"
    options = ["-q", "-p", "no:cacheprovider", "--platform", "posix,bare_mps2_an385", "--rootdir", "."]
    options += ["--minrpc-report", str(run)]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "."],
        cwd=SAMPLES / "firmware",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "17 passed, 1 skipped" in ran.stdout
    command = [sys.executable, "-m", "minrpc", "report", "--from", str(run)]
    page = subprocess.run(command, cwd=SAMPLES / "firmware", capture_output=True, text=True, check=False)
    assert page.returncode == 0, page.stdout + page.stderr
    assert "| pid_step | bare_mps2_an385 |" in page.stdout
