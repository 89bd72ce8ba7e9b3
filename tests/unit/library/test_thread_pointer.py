# SPDX-License-Identifier: Apache-2.0
"""The thread pointer that loaded code has on a RISC-V, and its thread-local variables."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from unittest.mock import Mock

import pytest
from minrpc import LinkerError
from minrpc.library import Compiled, Sources, Toolset
from minrpc.library.compiling import compile_sources
from minrpc.library.linking import link
from minrpc.library.loading import _Linker
from minrpc.library.thunks import thunk_source
from minrpc.library.toolset import program_facts
from minrpc.program import Elf
from minrpc.program.c_types import AlignmentLimits

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
    compiled, toolset = _compiled(
        tmp_path,
        "__thread char first = 3;\n__thread long wide __attribute__((aligned(16)));\n"
        "extern __thread int errno;\nchar value(void) { return first; }\n"
        "long f(void) { return (char *)&wide - (char *)__builtin_thread_pointer(); }\n"
        "long g(void) { return (char *)&errno - (char *)__builtin_thread_pointer(); }\n",
    )
    symbols = {item.name: item.value for item in Elf((tmp_path / "firmware.elf").read_bytes(), "f").symbols}
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


@pytest.mark.parametrize("more", [0, 1])
def test_thread_locals_may_fill_the_rest_of_the_room(tmp_path: Path, more: int) -> None:
    compiled, toolset = _compiled(tmp_path, f"__thread char a[{32 + more}]; char f(void) {{ return *a; }}")
    room = program_facts(toolset.elf).thread_room
    taken = [range(room.start, room.start + 16)]
    if more:
        with pytest.raises(LinkerError, match=r"a is thread-local .*: 33 bytes, .* has 32 of 48 free"):
            link(compiled, toolset, 0x80001000, taken=taken)
    else:
        own = link(compiled, toolset, 0x80001000, taken=taken).thread_locals
        assert (own.start, own.stop) == (taken[0].stop, room.stop)


def test_an_image_is_linked_anew_for_another_part_of_the_room(tmp_path: Path) -> None:
    compiled, toolset = _compiled(tmp_path, "__thread char one = 1; char f(void) { return one; }")
    room = program_facts(toolset.elf).thread_room
    linker = _Linker(Mock(), toolset)
    taken = [(), (range(room.start, room.start + 16),), ()]
    starts = [linker.link(compiled, 0x80001000, each).thread_locals.start - room.start for each in taken]
    assert starts == [0, 16, 0]


def test_the_room_has_its_first_values_before_constructors_run() -> None:
    text = thunk_source([], AlignmentLimits(), start=True, thread_room=True)
    assert text.index("\tfill_room(a);") < text.index("(*next)();")
    assert "; i < a[1].i; " in text


def _compiled(directory: Path, source: str) -> tuple[Compiled, Toolset]:
    """`source` for a firmware whose threads have a room of 48 bytes between variables of its own."""
    need_tools(GCC)
    (directory / "firmware.c").write_text(
        "__thread int before = 1;\n__thread char minrpc_thread_room[48] __attribute__((aligned(16)));\n"
        "__thread int errno;"
    )
    (directory / "f.c").write_text(source)
    command = [GCC, "-nostdlib", "-Wl,-e0", "firmware.c", "-o", "firmware.elf"]
    subprocess.run(command, cwd=directory, check=True)
    toolset = Toolset(GCC, ("-O2", "-mcmodel=medany"), (), directory / "firmware.elf")
    return compile_sources(Sources.of([directory / "f.c"]), toolset), toolset


def _disassembled(directory: Path, program: bytes, function: str) -> str:
    (directory / "loaded.elf").write_bytes(program)
    command = ["riscv64-unknown-elf-objdump", "-d", f"--disassemble={function}", "loaded.elf"]
    return subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True).stdout


def _number(pattern: str, text: str, base: int = 10) -> int:
    found = re.search(pattern, text)
    assert found is not None, text
    return int(found[1], base)
