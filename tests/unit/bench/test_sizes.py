# SPDX-License-Identifier: Apache-2.0
"""Sizes and stack frames, from what the compiler writes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from minrpc.firmware.sources import firmware_root
from minrpc_bench import sizes
from minrpc_bench.rows import SourceSize

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


def test_the_goal_is_for_the_text_without_options() -> None:
    sources = [
        SourceSize("crc32.c", 100, 0, 0, 0, "", {}),
        SourceSize("server.c", 9000, 0, 0, 0, "", {}),
        SourceSize("timer.c", 500, 4, 8, 0, "", {}),
    ]
    rows = sizes.rows(sizes.Sizes(sources, 400, 8000, {"GUARDS": 500, "CODE_LOADING": 569}))
    assert {row.name: row.value for row in rows} == {
        "text without options": 8000,
        "text with the defaults": 9100,
        "text of guards": 500,
        "text of code_loading": 569,
        "text of the timer": 500,
        "RAM beside receive buffer and arena": 412,
    }
    assert [row.verdict for row in rows] == ["met", "", "", "", "met", "met"]


def test_options_are_those_of_the_header() -> None:
    header = (firmware_root() / "zephyr-app/runtime/include/minrpc/minrpc_config.h").read_text()
    options = sizes.default_options(header)
    assert {"GUARDS": 1, "CODE_LOADING": 0}.items() <= options.items()
    assert "VERSION" not in options


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
