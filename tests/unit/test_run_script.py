# SPDX-License-Identifier: Apache-2.0
"""`./run` if it can't install a missing package."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bare_machine(tmp_path: Path) -> Path:
    """Programs of a user without root and sudo, on a Debian without the needed packages."""
    for name in ("bash", "cat", "dirname", "flock", "sed"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    for name, text in {"id": "echo 1000", "dpkg": "echo amd64", "dpkg-query": "exit 1"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("command", ["check", "test", "setup"])
def test_without_root_and_sudo_it_says_the_line_that_installs(bare_machine: Path, command: str) -> None:
    ran = subprocess.run(
        [ROOT / "run", command],
        env={"PATH": str(bare_machine)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    (line,) = [line for line in ran.stderr.splitlines() if "apt-get install" in line]
    assert line.startswith("  apt-get update && apt-get install --no-install-recommends python3 ")
    assert line.split()[-1] == "gcc-multilib"
    assert "qemu-system-arm gcc-arm-none-eabi" in line
