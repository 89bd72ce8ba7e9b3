# SPDX-License-Identifier: Apache-2.0
"""RAM of a program, from its ELF."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from minrpc_bench.memory_use import state_bytes

SOURCE = """
char arena[100000];
static char receive_buffer[8192], ring[4096];
char state[400];
int set[5] = {1};
char *volatile used;
void _start(void) { used = receive_buffer; used = ring; for (;;) { } }
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_arena_and_what_receives_are_not_counted(tmp_path: Path) -> None:
    (tmp_path / "one.c").write_text(SOURCE)
    command = ["gcc", "-nostdlib", "-static", "-fno-stack-protector", "one.c", "-o", "one"]
    subprocess.run(command, cwd=tmp_path, check=True)
    counted = state_bytes(tmp_path / "one")
    # The rest is what the linker leaves free between them.
    assert 428 <= counted < 428 + 128
