# SPDX-License-Identifier: Apache-2.0
"""LLVM's target for a core, and code that does not fit the core."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from minrpc import ConfigurationError
from minrpc.library import Toolset
from minrpc.library.tvm_targets import description, extensions, float16_flags, misfit, uses_float16

ARM, RISCV = "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"
M4F = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")
M0 = ("-mcpu=cortex-m0", "-mthumb")

MakeToolset = Callable[..., Toolset]


@pytest.fixture
def toolset(tmp_path: Path) -> MakeToolset:
    def make(compiler: str, *flags: str) -> Toolset:
        """A toolset of an installed compiler, with an object of this compiler as the firmware."""
        (tmp_path / "f.c").write_text("int x;")
        made = tmp_path / f"{len(list(tmp_path.iterdir()))}.o"
        try:
            subprocess.run([compiler, *flags, "-c", "f.c", "-o", str(made)], cwd=tmp_path, check=True)
        except FileNotFoundError:
            pytest.skip(f"{compiler} is not installed")
        return Toolset(compiler, flags, (), made)

    return make


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (M0, {"mtriple": "thumbv6m-none-unknown-eabi", "mattr": ["+soft-float", "-fpregs"]}),
        (M4F, {"mtriple": "thumbv7em-none-unknown-eabi", "mfloat-abi": "hard", "mattr": ["-fp64"]}),
        (("-mcpu=cortex-m7", "-mfloat-abi=hard", "-mfpu=fpv5-d16"), {"mfloat-abi": "hard"}),
        (("-mcpu=cortex-m4", "-mfloat-abi=softfp", "-mfpu=fpv4-sp-d16"), {"mattr": ["-fp64"]}),
        (
            ("-mcpu=cortex-m33+nodsp",),
            {"mtriple": "thumbv8m.main-none-unknown-eabi", "mattr": ["-dsp", "+soft-float", "-fpregs"]},
        ),
    ],
)
def test_an_arm_core(toolset: MakeToolset, flags: tuple[str, ...], told: dict[str, Any]) -> None:
    """LLVM does not read the EABI from a triple of three words. A core is assumed to have all its optional
    units."""
    found = description(toolset(ARM, *flags))
    core = flags[0].removeprefix("-mcpu=").partition("+")[0]
    assert found == {"kind": "llvm", "num-cores": 1, "mcpu": core, "mtriple": found["mtriple"]} | told
    assert len(found["mtriple"].split("-")) == 4


def test_a_riscv_core(toolset: MakeToolset) -> None:
    found = description(toolset(RISCV, "-march=rv32imac_zicsr", "-mabi=ilp32"))
    assert found["mtriple"] == "riscv32-unknown-elf"
    assert found["mabi"] == "ilp32"
    assert found["mattr"] == ["+m", "+a", "+c", "+zicsr"]


@pytest.mark.parametrize(
    ("march", "expected"),
    [
        ("rv32i", []),
        ("rv32imac", ["m", "a", "c"]),
        ("rv64gcv", ["m", "a", "f", "d", "c", "v"]),
        ("rv64gc_zba_zbb", ["m", "a", "f", "d", "c", "zba", "zbb"]),
    ],
)
def test_extensions(march: str, expected: list[str]) -> None:
    assert extensions(march) == expected


@pytest.mark.parametrize(
    ("flag", "triple"), [("-m64", "x86_64-unknown-linux-gnu"), ("-m32", "i686-unknown-linux-gnu")]
)
def test_this_machine(toolset: MakeToolset, flag: str, triple: str) -> None:
    assert description(toolset("gcc", flag)) == {"kind": "llvm", "num-cores": 1, "mtriple": triple}


def test_a_core_that_nothing_is_known_of(toolset: MakeToolset) -> None:
    made = toolset("gcc", "-m64")
    content = bytearray(made.elf.read_bytes())
    content[18:20] = (2).to_bytes(2, "little")
    made.elf.with_suffix(".sparc").write_bytes(content)
    with pytest.raises(ConfigurationError, match="no target of LLVM's is known for EM_SPARC"):
        description(replace(made, elf=made.elf.with_suffix(".sparc")))


@pytest.mark.parametrize(
    ("flags", "used", "why"),
    [
        (M4F, "__adddf3", "calls __adddf3 by no EABI's convention"),
        (M4F, "__floatdidf", "calls __floatdidf"),
        (M4F, "__aeabi_dadd", ""),
        (M4F, "__divdi3", ""),
        (M0, "__unordsf2", "calls __unordsf2"),
        (("-mcpu=cortex-m3",), "__adddf3", ""),
    ],
)
def test_arms_arithmetic(toolset: MakeToolset, flags: tuple[str, ...], used: str, why: str) -> None:
    found = misfit(toolset(ARM, *flags), ["memcpy", used])
    assert found.startswith(why)
    assert bool(found) == bool(why)


@pytest.mark.parametrize(("abi", "fits"), [("lp64d", False), ("lp64", True)])
def test_float16_of_llvms_on_riscv(toolset: MakeToolset, abi: str, fits: bool) -> None:
    march = "-march=rv64gc" if abi == "lp64d" else "-march=rv64imac"
    made = toolset(RISCV, march, f"-mabi={abi}")
    assert (misfit(made, ["__extendhfsf2"]) == "") is fits
    assert misfit(made, ["__adddf3"]) == ""


def test_float16_of_c(toolset: MakeToolset, tmp_path: Path) -> None:
    source = "half *a = (half *)b;"
    assert uses_float16("  half* a = b;")
    assert uses_float16("  half condval_4;")
    assert uses_float16("x = ((half*)y)[0];")
    assert not uses_float16("float half = 1; /* the other half */ f(half[0], half_handle);")
    assert float16_flags(source, toolset(ARM, *M0)) == ["-mfp16-format=ieee"]
    assert float16_flags(source, toolset("gcc", "-m64")) == []
    older = tmp_path / "gcc"  # GCC 13 of an x86 without SSE has none; GCC 14 has.
    older.write_text('#!/bin/sh\nexec gcc -U__FLT16_MANT_DIG__ "$@"\n')
    older.chmod(0o755)
    assert float16_flags("float halfway;", toolset(str(older))) == []
    with pytest.raises(ConfigurationError, match="has no float16 for this device"):
        float16_flags(source, toolset(str(older)))
