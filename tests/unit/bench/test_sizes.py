# SPDX-License-Identifier: Apache-2.0
"""Sizes and stack frames, from what the compiler writes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from minrpc.bench import sizes
from minrpc.bench.rows import SourceSize

USAGE = """../runtime/arena.c:10:6:minrpc_arena_init\t16\tstatic
../runtime/arena.c:31:25:minrpc_arena_alloc\t40\tstatic
arena.c:90:1:walk.constprop\t128\tdynamic,bounded
"""


def test_frames_are_read_by_function() -> None:
    assert sizes.stack_frames(USAGE) == {
        "minrpc_arena_init": 16,
        "minrpc_arena_alloc": 40,
        "walk.constprop": 128,
    }
    assert sizes.stack_frames("") == {}


def test_what_tvm_does_not_have_is_not_in_the_sum_that_has_the_goal() -> None:
    found = [
        SourceSize("crc32.c", 100, 0, 0, 0, "", {}),
        SourceSize("info.c", 200, 0, 0, 0, "", {}),
        SourceSize("resend.c", 250, 0, 0, 0, "", {}),
        SourceSize("server.c", 8000, 0, 0, 0, "", {}),
        SourceSize("stream.c", 180, 0, 0, 0, "", {}),
        SourceSize("timer.c", 700, 4, 8, 0, "", {}),
    ]
    values = {row.name: row.value for row in sizes.rows(found, state=400)}
    assert values == {
        "text of what TVM's runtime has too": 8000,
        "text of what it has not": 730,
        "text of the timer": 700,
        "RAM beside receive buffer and arena": 412,
    }
    assert [row.verdict for row in sizes.rows(found, state=400)] == ["met", "", "", "met"]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_sections_of_an_object_are_summed_as_size_does(tmp_path: Path) -> None:
    source = tmp_path / "one.c"
    source.write_text(
        'const char text[100] = "x"; int set[4] = {1}; char zero[1000];\n'
        "const char *name(void) { return text; }\n"
    )
    subprocess.run(["gcc", "-c", "-fno-asynchronous-unwind-tables", source], cwd=tmp_path, check=True)
    text, data, bss = sizes.object_sizes(tmp_path / "one.o")
    assert 100 < text < 200
    assert (data, bss) == (16, 1000)
