# SPDX-License-Identifier: Apache-2.0
"""Every byte of a program is in one piece: with any variables, on each processor's linker."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from minrpc.counters import Image
from minrpc.sizes import ProgramSizes, program_sizes
from minrpc.sizes.pieces import HEADERS, NO_DEBUG, NO_SYMBOL, PADDING, SizedSymbol, component_of, cut, totals

COMPILERS = {
    "x86": ["cc", "-no-pie"],
    "arm": ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-nostdlib"],
    "riscv": ["riscv64-unknown-elf-gcc", "-march=rv32imac", "-mabi=ilp32", "-nostdlib"],
}
KINDS = {
    "constant": "const char {name}[{size}] __attribute__((aligned({align}))) = {{1}};",
    "data": "char {name}[{size}] __attribute__((aligned({align}))) = {{1}};",
    "zeroed": "static char {name}[{size}] __attribute__((aligned({align}), used));",
    "function": 'void {name}(void) {{ __asm__ volatile (".space {size} * 4"); }}',
    "text": 'const char *{name}(void) {{ return "text of {name}, {size}"; }}',
}
# A thread-local variable has an address, but each thread has its memory elsewhere.
THREADS = {"thread": "__thread char {name}[{size}] __attribute__((aligned({align})));"}
MAIN = "int main(void) { return 0; }\nvoid _start(void) { main(); }\n"

variables = st.lists(
    st.tuples(st.sampled_from(sorted(KINDS)), st.integers(1, 300), st.sampled_from([1, 2, 8, 64])), max_size=8
)


@pytest.fixture(params=sorted(COMPILERS))
def link(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Path]:
    command = COMPILERS[request.param]
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]}")

    def made(things: list[tuple[str, int, int]], *flags: str) -> Path:
        source, elf = tmp_path / "program.c", tmp_path / "program"
        lines = [
            (KINDS | THREADS)[kind].format(name=f"thing{index}", size=size, align=align)
            for index, (kind, size, align) in enumerate(things)
        ]
        start = "int main(void) { return 0; }\n" if command[0] == "cc" else MAIN
        source.write_text("\n".join([*lines, start]))
        subprocess.run([*command, "-O1", *flags, str(source), "-o", str(elf)], check=True)
        return elf

    return made


def load_segments(elf: Path) -> list[tuple[int, int]]:
    """Address and bytes in the file of each segment, from readelf."""
    shown = subprocess.check_output(["readelf", "-lW", str(elf)], text=True)
    found = re.findall(r"^\s*LOAD\s+\S+ (0x\S+) \S+ (0x\S+)", shown, re.MULTILINE)
    return [(int(address, 16), int(size, 16)) for address, size in found]


def written_sections(elf: Path) -> int:
    shown = subprocess.check_output(["readelf", "-SW", str(elf)], text=True)
    rows = re.findall(r"\] \S+\s+(\S+)\s+[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+) \S+\s+([A-Z]*) ", shown)
    return sum(int(size, 16) for kind, size, flags in rows if "W" in flags and "A" in flags)


def check_each_byte_once(sizes: ProgramSizes, elf: Path) -> None:
    assert sizes.flash == sum(size for _, size in load_segments(elf))
    assert sizes.ram == written_sections(elf)
    assert (sizes.flash, sizes.ram) == totals(elf)
    for memory in ("flash", "ram"):
        spans = sorted(
            (piece.address, piece.address + piece.size) for piece in sizes.pieces if piece.memory == memory
        )
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
        assert all(start < end for start, end in spans)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(things=variables)
def test_sums_are_those_of_the_elf(link: Callable[..., Path], things: list[tuple[str, int, int]]) -> None:
    elf = link(things, "-g")
    sizes = program_sizes(elf)
    check_each_byte_once(sizes, elf)
    flash, ram = sizes.by(lambda size: size.symbol, "flash"), sizes.by(lambda size: size.symbol, "ram")
    for index, (kind, size, _) in enumerate(things):
        name = f"thing{index}"
        assert flash.get(name, 0) == (size if kind in ("constant", "data") else flash.get(name, 0))
        assert ram.get(name, 0) == (size if kind in ("data", "zeroed") else 0)
        assert (kind == "zeroed") == (name not in flash)
    own = {piece.symbol: piece.file for piece in sizes.pieces if piece.symbol.startswith("thing")}
    assert all(file.endswith("/program.c") for file in own.values()), own
    # The sums by component, file and section are complete, too.
    for key in (lambda item: item.component, lambda item: item.file, lambda item: item.section):
        assert sum(sizes.by(key, "flash").values()) == sizes.flash


def test_without_debug_information_it_says_so(link: Callable[..., Path]) -> None:
    elf = link([("data", 5, 1), ("constant", 3, 8)])
    sizes = program_sizes(elf)
    check_each_byte_once(sizes, elf)
    assert {piece.file for piece in sizes.pieces} <= {NO_DEBUG, PADDING, HEADERS}


def test_what_aligns_is_padding(link: Callable[..., Path]) -> None:
    elf = link([("data", 1, 64), ("data", 1, 64)], "-g")
    padding = [
        piece for piece in program_sizes(elf).pieces if piece.symbol == PADDING and piece.memory == "ram"
    ]
    assert 63 in {item.size for item in padding}


def test_a_gap_that_aligns_nothing_is_no_padding(tmp_path: Path) -> None:
    source, elf = tmp_path / "gap.s", tmp_path / "gap"
    first, second = (
        f".type {name}, %object\n.size {name}, 4\n{name}: .long 1" for name in ("first", "second")
    )
    lines = [".section .data", ".balign 8", ".skip 4", first, ".skip 4", second, ".globl main", "main:", ""]
    source.write_text("\n".join(lines))
    subprocess.run(["cc", "-nostdlib", "-static", "-Wl,-e,main", str(source), "-o", str(elf)], check=True)
    pieces = [(piece.symbol, piece.size) for piece in program_sizes(elf).pieces if piece.memory == "ram"]
    # Four bytes before a multiple of four are not padding: they are data without a symbol.
    assert pieces == [(NO_SYMBOL, 4), ("first", 4), (NO_SYMBOL, 4), ("second", 4)]


@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
def test_both_parts_of_a_split_function_are_of_its_source(version: str, tmp_path: Path) -> None:
    source, elf = tmp_path / "split.c", tmp_path / "split"
    source.write_text(
        "__attribute__((cold, noinline)) void seldom(int *x) { *x += 1000; }\n"
        "int split(int x) { if (x > 7) { seldom(&x); x *= 3; seldom(&x); } return x + 1; }\n"
        "int main(int count, char **words) { (void)words; return split(count); }\n"
    )
    flags = ["-O2", "-freorder-blocks-and-partition", "-fno-inline", version]
    subprocess.run(["cc", *flags, str(source), "-o", str(elf)], check=True)
    files = {piece.symbol: piece.file for piece in program_sizes(elf).pieces}
    assert files["split"] == files["split.cold"] == str(source)


def test_functions_begin_where_their_code_does(link: Callable[..., Path]) -> None:
    elf = link([("function", 3, 1), ("function", 5, 1)], "-g")
    thumb = "ARM" in subprocess.check_output(["readelf", "-h", str(elf)], text=True)
    table = subprocess.check_output(["readelf", "-sW", str(elf)], text=True)
    rows = re.findall(r": ([0-9a-f]+)\s+(\d+) FUNC .* (thing\d)$", table, re.MULTILINE)
    expected = {name: (int(value, 16) & (-2 if thumb else -1), int(size)) for value, size, name in rows}
    assert len(expected) == 2
    found = {piece.symbol: (piece.address, piece.size) for piece in program_sizes(elf).pieces}
    assert {name: found[name] for name in expected} == expected


def test_zeroes_of_each_thread_take_no_room(link: Callable[..., Path]) -> None:
    elf = link([("zeroed", 8, 8), ("thread", 400, 8)], "-g")
    sizes = program_sizes(elf)
    assert "thing1" not in sizes.by(lambda size: size.symbol, "ram")
    assert sizes.ram == totals(elf)[1] == written_sections(elf) - 400


symbols = st.lists(
    st.builds(SizedSymbol, st.integers(0, 120), st.integers(0, 40), st.sampled_from("abc")), max_size=12
)


@given(st.integers(0, 60), st.integers(1, 60), symbols)
def test_a_section_is_cut_without_a_gap(start: int, size: int, symbols: list[SizedSymbol]) -> None:
    pieces = list(cut(start, start + size, sorted(symbols)))
    assert pieces[0][0] == start
    assert pieces[-1][1] == start + size
    for (_, end, _), (following, _, _) in itertools.pairwise(pieces):
        assert end == following
    assert all(begin < end for begin, end, _ in pieces)


@pytest.mark.parametrize(
    ("file", "component"),
    [
        ("/minrpc/app/zephyr-app/runtime/timer.c", "runtime"),
        ("/home/other/checkout/zephyr-app/runtime/timer.c", "runtime"),
        ("/home/other/checkout/zephyr-app/ports/zephyr/main.c", "ports/zephyr"),
        ("/home/me/zephyr-app/src/main.c", "/home/me/zephyr-app/src"),
        ("/minrpc/workspace/zephyr/kernel/sched.c", "zephyr/kernel"),
        ("/minrpc/project/fir.c", "project"),
        ("/build/gcc/x/libgcc/config/arm/lib1funcs.S", "libgcc"),
        ("/home/me/kernels/fir.c", "/home/me/kernels"),
        (NO_DEBUG, NO_DEBUG),
    ],
)
def test_components_are_directories_below_a_checkout(file: str, component: str) -> None:
    assert component_of(file) == component


SCRIPT = """
MEMORY { flash (rx) : ORIGIN = 0, LENGTH = 64K ram (rw) : ORIGIN = 0x20000000, LENGTH = 64K }
SECTIONS {
  .init : { KEEP(*(.init)) } > flash
  .text : { *(.text*) *(.rodata*) } > flash
  .data : { *(.data*) } > ram AT > flash
  .bss (NOLOAD) : { *(.bss*) } > ram
}
"""
VECTORS = '.section .init, "aw", %progbits\n.space 76, 1\n'


def test_vectors_in_flash_take_no_ram_though_their_section_is_writable(tmp_path: Path) -> None:
    """picolibc's vectors on Arm have such a section. If no data are copied out of flash, the program does not
    show that they lie there."""
    command = COMPILERS["arm"]
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]}")
    for name, text in (("program.ld", SCRIPT), ("vectors.S", VECTORS)):
        (tmp_path / name).write_text(text)
    (tmp_path / "main.c").write_text(
        "char data[40] = {1}; static char zeroed[24] __attribute__((used));\n" + MAIN
    )
    words = [*command, "-T", "program.ld", "vectors.S", "main.c", "-o", "program"]
    subprocess.run(words, cwd=tmp_path, check=True)
    sizes = program_sizes(tmp_path / "program")
    assert written_sections(tmp_path / "program") == 76 + 40 + 24
    assert (sizes.flash, sizes.ram) == totals(tmp_path / "program")
    assert sizes.ram == 40 + 24
    assert ".init" in {piece.section for piece in sizes.pieces if piece.memory == "flash"}
    regions = Image(tmp_path / "program").regions
    assert {region.kind for region in regions if region.base < 0x20000000} == {"flash"}
    assert {region.kind for region in regions if region.base >= 0x20000000} == {"ram"}
