# SPDX-License-Identifier: Apache-2.0
"""The samples' own tests pass."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.mark.slow
def test_firmware() -> None:
    options = ["-q", "-p", "no:cacheprovider", "--platform", "posix,bare_mps2_an385", "--rootdir", "."]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "."],
        cwd=SAMPLES / "firmware",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "17 passed, 1 skipped" in ran.stdout
