# SPDX-License-Identifier: Apache-2.0
"""The bound of the stack, from GCC's file of a program's call graph."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest
from minrpc.library.c_library import CLibrary
from minrpc.library.stack_bound import FLAG, parse_graphs
from minrpc.timing.measurement import MemoryUse

from tests.unit.timing.samples import measured

SOURCES = {
    "one": """
int other(int n);
int unknown(int n);
static __attribute__((noinline)) int leaf(int n) { volatile int a[8]; a[n & 7] = n; return a[0]; }
int twice(int n) { return leaf(n) + leaf(n + 1); }
int across(int n) { return other(n) + 1; }
int outside(int n) { return unknown(n) + 1; }
int pointer(int (*called)(int), int n) { return called(n) + 1; }
int circle(int n) { return n ? circle(n - 1) + twice(n) : 0; }
int sized(int n) { volatile char a[n]; a[0] = 1; return a[0]; }
int over(int n) { return sized(n) + 1; }
""",
    "two": "int other(int n) { volatile int a[20]; a[n % 20] = n; return a[1]; }",
}


def test_a_bound_is_of_all_below_or_not_known(tmp_path: Path) -> None:
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("there is no arm-none-eabi-gcc")
    for name, text in SOURCES.items():
        (tmp_path / f"{name}.c").write_text(text)
        command = ["arm-none-eabi-gcc", "-O1", "-fno-optimize-sibling-calls", "-mcpu=cortex-m3", "-mthumb"]
        subprocess.run([*command, FLAG, "-c", f"{name}.c"], cwd=tmp_path, check=True)
    graph = parse_graphs((tmp_path / f"{name}.ci").read_text() for name in SOURCES)
    other, twice = graph.bound("other"), graph.bound("twice")
    assert other is not None
    assert other >= 80
    assert twice == (graph.frames["twice"] or 0) + (graph.frames["one.c:leaf"] or 0) >= 32
    assert graph.bound("across") == (graph.frames["across"] or 0) + other
    for unbounded in ("outside", "pointer", "circle", "sized", "over", "not there"):
        assert graph.bound(unbounded) is None, unbounded


@pytest.mark.parametrize(
    ("name", "machine", "memory", "expected"),
    [
        ("small", "EM_ARM", None, None),
        ("small", "EM_ARM", MemoryUse(arena=8), MemoryUse(arena=8)),
        ("small", "EM_ARM", MemoryUse(10), MemoryUse(0, bound=20)),
        ("small", "EM_ARM", MemoryUse(16 + 28), MemoryUse(20, bound=20)),
        ("small", "EM_ARM", MemoryUse(16 + 29), MemoryUse(29, bound=20)),
        ("large", "EM_ARM", MemoryUse(16 + 28), MemoryUse(28, bound=40)),
        ("large", "EM_X86_64", MemoryUse(16 + 28), MemoryUse(28, bound=40 + 128)),
    ],
)
def test_a_functions_own_stack_beside_the_bound(
    name: str, machine: str, memory: MemoryUse | None, expected: MemoryUse | None
) -> None:
    """Without its thunk's 16 bytes; the check of the arguments needs 24 bytes and a return address."""
    library = Mock(check_frame=24, facts=Mock(pointer_size=4, machine=machine))
    bound = {"small": 20, "large": 40}[name]
    taken = replace(measured([5]), memory=memory).with_stack(lambda depth: max(0, depth - 16))
    found = cast(Any, CLibrary)._with_bound(library, taken, bound)
    assert found == replace(taken, memory=expected)
