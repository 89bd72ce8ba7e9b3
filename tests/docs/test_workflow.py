# SPDX-License-Identifier: Apache-2.0
"""The workflow of docs/reports.md: its commands as GitHub runs them, for a change that makes `add` worse."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT, blocks_of

SOURCE = """#include <stdint.h>

void add(const int16_t *a, const int16_t *b, int16_t *c, int n)
{
	for (int i = 0; i < n; i++) {
		c[i] = (int16_t)(a[i] + b[i]);
	}
}
"""
SLOWER = SOURCE.replace(
    "c[i] = (int16_t)(a[i] + b[i]);",
    "int32_t sum = a[i] + b[i];\n\t\tc[i] = (int16_t)(sum > 32767 ? 32767 : sum < -32768 ? -32768 : sum);",
)
LIMITS = '[limits]\nadd.instructions = "+2%"\nadd.code = 1000\n'
# GitHub's machine: it keeps its requests.
GH = '#!/bin/sh\necho "$@" >> "$ASKED"\n'


def workflow() -> str:
    (found,) = (
        block for block in blocks_of((ROOT / "docs" / "reports.md").read_text()) if block.kind == "yaml"
    )
    return found.text


def steps() -> tuple[dict[str, Any], dict[str, str]]:
    import yaml

    document = yaml.safe_load(workflow())
    (job,) = document["jobs"].values()
    return {step.get("name", step.get("uses")): step for step in job["steps"]}, document["env"]


def git(directory: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *words], cwd=directory, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone with the branch of a pull request; main has newer commits."""
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    origin.mkdir()
    git(origin, "init")
    (origin / "add.c").write_text(SOURCE)
    (origin / "minrpc.toml").write_text(LIMITS)
    git(origin, "add", ".")
    git(origin, "commit", "-m", "add")
    git(origin, "checkout", "-b", "change")
    (origin / "add.c").write_text(SLOWER)
    git(origin, "commit", "-am", "saturate")
    git(origin, "checkout", "main")
    (origin / "add.c").write_text(SOURCE.replace("+ b[i]", "- b[i]"))
    git(origin, "commit", "-am", "later")
    git(tmp_path, "clone", str(origin), str(clone))
    git(clone, "checkout", "change")
    return clone


def run_step(
    step: dict[str, Any], checkout: Path, further: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a step as GitHub's runner does: in a shell of its own."""
    bin_directory = checkout.parent / "bin"
    bin_directory.mkdir(exist_ok=True)
    (bin_directory / "gh").write_text(GH)
    (bin_directory / "gh").chmod(0o755)
    path = os.pathsep.join([str(bin_directory), str(Path(sys.executable).parent), os.environ["PATH"]])
    known = {
        "PATH": path,
        "GITHUB_ACTIONS": "true",
        "GITHUB_BASE_REF": "main",
        "GITHUB_STEP_SUMMARY": str(checkout.parent / "summary.md"),
        "ASKED": str(checkout.parent / "asked"),
    }
    return subprocess.run(
        ["bash", "-e", "-c", re.sub(r"\$\{\{.*?\}\}", "1", step["run"])],
        cwd=checkout,
        env={**os.environ, **known, **further},
        text=True,
        capture_output=True,
        check=False,
    )


def test_it_is_short() -> None:
    assert len(workflow().splitlines()) <= 30


@pytest.mark.slow
@pytest.mark.extra("zephyr")
def test_a_change_that_makes_add_slower_and_bigger(checkout: Path) -> None:
    named, env = steps()
    measured = run_step(named["Measure"], checkout, env)
    assert measured.returncode == 0, measured.stderr
    compared = run_step(named["Compare"], checkout, env)
    assert compared.returncode == 1, compared.stderr
    errors = [line for line in compared.stderr.splitlines() if line.startswith("::")]
    assert len(errors) == 1
    assert errors[0].startswith("::error title=limits.add.instructions::add(")
    summary = (checkout.parent / "summary.md").read_text()
    assert summary.startswith("### Timings: 1 of 1 slower")
    assert re.search(r"^add +\d+ +\d+ +\+\d+$", summary, re.MULTILINE), "by symbol"
    assert re.search(r"^\| `add\(.* \| instructions +\| ", summary, re.MULTILINE)
    commented = run_step(named["Comment"], checkout, env)
    assert commented.returncode == 0, commented.stderr
    assert "--edit-last" in (checkout.parent / "asked").read_text()
    (file,) = re.findall(r"--body-file (\S+)", (checkout.parent / "asked").read_text())
    assert (checkout / file).read_text() == summary


@pytest.mark.slow
@pytest.mark.extra("zephyr")
def test_a_change_that_changes_nothing(checkout: Path) -> None:
    named, env = steps()
    git(checkout, "revert", "--no-edit", "HEAD")
    assert run_step(named["Measure"], checkout, env).returncode == 0
    compared = run_step(named["Compare"], checkout, env)
    assert (compared.returncode, compared.stderr) == (0, "")
    assert "none of 1 slower" in (checkout.parent / "summary.md").read_text()


@pytest.mark.slow
@pytest.mark.extra("zephyr")
def test_a_change_that_brings_the_function(checkout: Path) -> None:
    """The first run has no base to compare with: the job continues with its summary and comment."""
    named, env = steps()
    git(checkout, "checkout", "--orphan", "first")
    git(checkout, "rm", "--cached", "add.c")
    git(checkout, "commit", "-m", "nothing yet")
    git(checkout, "push", "-f", "origin", "first:later")
    git(checkout, "add", "add.c")
    git(checkout, "commit", "-m", "add")
    further = env | {"GITHUB_BASE_REF": "later"}
    measured = run_step(named["Measure"], checkout, further)
    assert measured.returncode == 0, measured.stderr
    assert "there is no file add.c" in measured.stderr
    compared = run_step(named["Compare"], checkout, further)
    assert compared.returncode == 0, compared.stderr
    assert "limits.add.instructions" in compared.stderr
    summary = (checkout.parent / "summary.md").read_text()
    assert summary.startswith("No comparison: the merge base can't be measured.\n")
    assert "| add(int16[64], int16[64], int16[64], 64) | bare_mps2_an385" in re.sub(" +", " ", summary)
    assert run_step(named["Comment"], checkout, further).returncode == 0
    assert (checkout.parent / "report.md").read_text() == summary
