# SPDX-License-Identifier: Apache-2.0
"""Threads share a program: devices that crash at the same time read lines of the same program."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from minrpc.program import Program

FUNCTIONS = 60


@pytest.fixture
def eager_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("eager_switches")
def test_lines_are_the_same_for_threads_that_ask_at_once(tmp_path: Path) -> None:
    sources = []
    for number in range(FUNCTIONS):
        source = tmp_path / f"part{number}.c"
        source.write_text(f"int part{number}(int x)\n{{\n\treturn x + {number};\n}}\n")
        sources.append(str(source))
    shared = tmp_path / "parts.so"
    subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-nostdlib", "-o", str(shared), *sources], check=True)
    program = Program("parts.so", shared.read_bytes())
    starts = [program.symbols.addresses[f"part{number}"] for number in range(FUNCTIONS)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(program.line_at, starts * 4))
    expected = [(f"part{number}.c", 2) for number in range(FUNCTIONS)] * 4
    assert [(Path(line.file).name, line.number) for line in found if line] == expected
