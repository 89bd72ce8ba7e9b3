# SPDX-License-Identifier: Apache-2.0
"""A long run: `python -m tests.fuzz [--runs N] [--target NAME]`, from the top of the checkout.

It ends at the first finding and keeps the input in build/fuzz: the target's program runs this input alone if
the file is its only argument.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tests.fuzz.targets import HERE, MAX_LENGTH, SANITIZER, command
from tests.native import build


def main() -> int:
    """Run each target in turn; the status of the first target with a finding."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--runs", type=int, default=10_000_000, help="inputs of each target (%(default)s)")
    parser.add_argument("--target", action="append", choices=list(MAX_LENGTH), help="only this one")
    options = parser.parse_args()
    directory = Path("build/fuzz")
    directory.mkdir(parents=True, exist_ok=True)
    programs = build(HERE, directory, env={"CC": "clang"})
    for target in options.target or MAX_LENGTH:
        corpus = directory / "corpus" / target
        corpus.mkdir(parents=True, exist_ok=True)
        run = command(programs, target, options.runs, corpus, directory)
        status = subprocess.run(run, check=False, env=os.environ | SANITIZER).returncode
        if status != 0:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
