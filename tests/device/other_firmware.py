# SPDX-License-Identifier: Apache-2.0
"""The same tests on firmware that a TOML file of platforms describes, in a run of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent


def require_passed(names: Iterable[str], platform: str, platforms_file: Path, *options: str) -> None:
    """Run files of this directory with pytest, on `platform`: no test fails, and at least one passes."""
    words = ["-q", "-x", "-p", "no:cacheprovider", "-n", "0", "--minrpc-platforms-file", str(platforms_file)]
    words += [*(str(HERE / name) for name in names), "--platform", platform, *options]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *words], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert passed is not None, ran.stdout
    assert int(passed[1]) > 0, ran.stdout
