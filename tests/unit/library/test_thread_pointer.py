# SPDX-License-Identifier: Apache-2.0
"""The thread pointer that loaded code has on a RISC-V, and its thread-local variables."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from minrpc.library import Sources, Toolset
from minrpc.library.compiling import compile_sources
from minrpc.library.linking import link
from minrpc.program import Elf

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


@pytest.mark.parametrize(
    ("taken", "place"), [([], 0), ([range(3, 8)], 16), ([range(32, 40), range(40, 41)], 0)]
)
def test_thread_locals_lie_in_the_room_that_each_thread_has(
    tmp_path: Path, taken: list[range], place: int
) -> None:
    """The linker's own offsets from the thread pointer, of the firmware's variables as well."""
    need_tools(GCC)
    firmware = (
        "__thread int before = 1;\n__thread char minrpc_thread_room[48] __attribute__((aligned(16)));\n"
        "__thread int errno;"
    )
    (tmp_path / "firmware.c").write_text(firmware)
    (tmp_path / "f.c").write_text(
        "__thread char first = 3;\n__thread long wide __attribute__((aligned(16)));\n"
        "extern __thread int errno;\nchar value(void) { return first; }\n"
        "long f(void) { return (char *)&wide - (char *)__builtin_thread_pointer(); }\n"
        "long g(void) { return (char *)&errno - (char *)__builtin_thread_pointer(); }\n"
    )
    command = [GCC, "-nostdlib", "-Wl,-e0", "firmware.c", "-o", "firmware.elf"]
    subprocess.run(command, cwd=tmp_path, check=True)
    symbols = {item.name: item.value for item in Elf((tmp_path / "firmware.elf").read_bytes(), "f").symbols}
    toolset = Toolset(GCC, ("-O2", "-mcmodel=medany"), (), tmp_path / "firmware.elf")
    compiled = compile_sources(Sources.of([tmp_path / "f.c"]), toolset)
    assert compiled.start
    room = symbols["minrpc_thread_room"]
    others = [range(own.start + room, own.stop + room) for own in taken]
    image = link(compiled, toolset, 0x80001000, taken=others)
    own, at = image.thread_locals, image.symbols["minrpc_thread_locals"] - image.base
    room += place
    assert room <= own.start < own.stop <= room + 32
    assert image.data[at] == 3
    assert _number(r"lbu\s+a0,(\d+)\(a5\)", _disassembled(tmp_path, image.program, "value")) == own.start
    wide = _number(r"add\w?\s+a0,a0,(\d+)", _disassembled(tmp_path, image.program, "f"))
    assert wide == own.stop - 8 == room + 16
    stored = (
        _number(r"# ([0-9a-f]+) <_GLOBAL_OFFSET", _disassembled(tmp_path, image.program, "g"), 16)
        - image.base
    )
    assert int.from_bytes(image.data[stored : stored + 8], "little") == symbols["errno"]


def _disassembled(directory: Path, program: bytes, function: str) -> str:
    (directory / "loaded.elf").write_bytes(program)
    command = ["riscv64-unknown-elf-objdump", "-d", f"--disassemble={function}", "loaded.elf"]
    return subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True).stdout


def _number(pattern: str, text: str, base: int = 10) -> int:
    found = re.search(pattern, text)
    assert found is not None, text
    return int(found[1], base)
