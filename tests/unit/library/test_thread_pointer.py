# SPDX-License-Identifier: Apache-2.0
"""The thread pointer that loaded code has on a RISC-V."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from minrpc.library import Sources, Toolset
from minrpc.library.compiling import compile_sources

from tests.native import need_tools

GCC = "riscv64-unknown-elf-gcc"


@pytest.mark.parametrize(("firmware", "own"), [("int x;", True), ("__thread int current;", False)])
def test_a_firmware_with_thread_locals_keeps_its_pointer(tmp_path: Path, firmware: str, own: bool) -> None:
    """Zephyr's kernel reads the current thread by it in each interrupt and fault, as of loaded code."""
    need_tools(GCC)
    (tmp_path / "firmware.c").write_text(firmware)
    # A part of the C library might have thread-local variables.
    (tmp_path / "f.c").write_text("int part(int x);\nint f(int x) { return part(x); }\n")
    subprocess.run([GCC, "-c", "firmware.c", "-o", "firmware.o"], cwd=tmp_path, check=True)
    toolset = Toolset(GCC, ("-O1",), (), tmp_path / "firmware.o")
    assert compile_sources(Sources.of([tmp_path / "f.c"]), toolset).thread_pointer is own
