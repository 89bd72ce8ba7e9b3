# SPDX-License-Identifier: Apache-2.0
"""Compiler and flags of a program, for programs that are compiled here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from minrpc.program.compiler import compiler_of, floating_point

ARM, RISCV = "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"
SOURCE = "float twice(float x)\n{\n\treturn 2.0f * x;\n}\n"


@pytest.mark.parametrize(
    ("compiler", "flags", "computes"),
    [
        (ARM, "-mcpu=cortex-m3", "software"),
        (ARM, "-mcpu=cortex-m4 -mfloat-abi=hard", "FPU, single precision"),
        (ARM, "-mcpu=cortex-m4 -mfloat-abi=softfp", "FPU, single precision"),
        (ARM, "-mcpu=cortex-m4 -mfloat-abi=soft", "software"),
        (ARM, "-mcpu=cortex-m7 -mfloat-abi=hard", "FPU"),
        (RISCV, "-march=rv32imac -mabi=ilp32", "software"),
        (RISCV, "-march=rv32imafc -mabi=ilp32f", "FPU, single precision"),
        (RISCV, "-march=rv64gc -mabi=lp64d", "FPU"),
        ("gcc", "", "FPU"),
    ],
)
def test_what_computes_floating_point(tmp_path: Path, compiler: str, flags: str, computes: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    source, program = tmp_path / "twice.c", tmp_path / "twice.elf"
    source.write_text(SOURCE)
    link = ["-nostdlib", "-Wl,--entry=twice"]
    subprocess.run(
        [compiler, "-g", *flags.split(), *link, str(source), "-lgcc", "-o", str(program)], check=True
    )
    assert floating_point(program) == computes
    assert compiler_of(program).name.startswith("GNU C")
