# SPDX-License-Identifier: Apache-2.0
"""The tables of an ELF file, against readelf."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from minrpc.program import Elf, read_program

_BINDS = {"LOCAL": 0, "GLOBAL": 1, "WEAK": 2}
_SOURCE = """
#include <stdint.h>
extern int elsewhere(int);
static int32_t table[100];
const char text[] = "text";
int32_t sum(int32_t n)
{
	int32_t all = 0;
	for (int32_t i = 0; i < n; i++)
		all += table[i];
	return all;
}
int main(void)
{
	return sum(100);
}
"""


def run(*command: str | Path, cwd: Path | None = None) -> str:
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("program")
    (directory / "sub").mkdir()
    (directory / "sub" / "sum.c").write_text(_SOURCE)
    run("gcc", "-g", "-O1", "-no-pie", "-o", "sum", "sub/sum.c", cwd=directory)
    return directory / "sum"


def test_symbols_are_those_of_readelf(program: Path) -> None:
    rows = re.findall(
        r"^ +\d+: ([0-9a-f]+) +(\d+|0x\w+) (\w+) +(\w+) +\w+ +(\w+) (\S+)",
        run("readelf", "-sW", "--syms", program).partition("'.symtab'")[2],
        re.MULTILINE,
    )
    told = [(int(value, 16), int(size, 0), _BINDS[bind], name) for value, size, _, bind, _, name in rows]
    found = [
        (symbol.value, symbol.size, symbol.bind, symbol.name) for symbol in read_program(program).elf.symbols
    ]
    assert len(told) > 20
    # readelf adds the version of symbols from a shared library.
    assert [(*item, name.partition("@")[0]) for *item, name in told] == [
        (*item, name.partition("@")[0]) for *item, name in found if name
    ]


def test_segments_are_those_of_readelf(program: Path) -> None:
    rows = re.findall(r"^  LOAD +(.*)$", run("readelf", "-lW", program), re.MULTILINE)
    told = [[int(word, 16) for word in row.split()[1:5]] for row in rows]
    found = read_program(program).elf.segments
    assert len(told) > 2
    assert [[item.address, item.loaded_at, item.stored, item.size] for item in found] == told
    assert [item.executable for item in found] == ["E" in row[50:] for row in rows]


def test_a_line_is_addr2lines_by_either_way(program: Path) -> None:
    known = read_program(program)
    function = next(function for function in known.functions if function.name == "sum")
    addresses = range(function.start, function.end)
    told = run("addr2line", "-e", program, *(hex(address) for address in addresses)).splitlines()
    assert len(set(told)) > 2
    ours = [known.lines.at(address) for address in addresses]
    assert [f"{line.file}:{line.number}" for line in ours if line] == [
        re.sub(r" \(.*", "", item) for item in told
    ]
    assert ours == [known.line_at(address) for address in addresses]
    assert known.function_at(function.end - 1) == function


def test_behind_a_table_of_lines_is_no_line(tmp_path: Path) -> None:
    """This holds also if the last row of a sequence has no code, as after a function that never returns."""
    (tmp_path / "end.s").write_text(
        '.file 1 "end.c"\n.text\n.globl end\nend:\n.loc 1 3\nnop\n.loc 1 4\n.loc 1 5\n'
        ".section .debug_abbrev\n.byte 1,0x11,0,0x10,0x17,0,0,0\n"
        ".section .debug_info\n.long 2f-1f\n1: .short 4\n.long .debug_abbrev\n.byte 8,1\n"
        ".long .debug_line\n2:\n.section .debug_line\n"
    )
    run("gcc", "-nostdlib", "-static", "-Wl,-e,end", "-o", "end", "end.s", cwd=tmp_path)
    table = read_program(tmp_path / "end").lines
    start = table.starts[0][0]
    assert [line and line.number for line in map(table.at, (start, start + 1, start + 0x10000))] == [
        3,
        None,
        None,
    ]


def test_code_that_the_linker_dropped_has_no_lines(tmp_path: Path) -> None:
    """The dropped code's line table begins at 0 and covers low addresses of other code."""
    dropped = "volatile int held;\nvoid dropped(void)\n{\n" + "held++;\n" * 3000 + "}\n"
    (tmp_path / "low.c").write_text(f"{dropped}int kept(int n)\n{{\nreturn n / 7 + n % 11;\n}}\n")
    options = ["-g", "-O1", "-ffunction-sections", "-nostdlib", "-static", "-Wl,--gc-sections"]
    run("gcc", *options, "-Wl,-e,kept", "-Wl,-Ttext=0x1000", "-o", "low", "low.c", cwd=tmp_path)
    known = read_program(tmp_path / "low")
    kept = next(function for function in known.functions if function.name == "kept")
    lines = {known.lines.at(address) for address in range(kept.start, kept.end)}
    assert kept.start < 0x2000
    numbers = {line.number for line in lines if line}
    assert 3007 in numbers
    assert min(numbers) > 3004


def test_the_build_id_is_readelfs(program: Path) -> None:
    found = re.search(r"Build ID: (\w+)", run("readelf", "-n", program))
    assert read_program(program).build_id == (found[1] if found else "")
    assert Elf(program.read_bytes(), "sum").bits == 64


def test_another_byte_order(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"12345")
    run("objcopy", "-I", "binary", "-O", "elf32-big", "data", "big.o", cwd=tmp_path)
    elf = Elf((tmp_path / "big.o").read_bytes(), "big.o")
    assert (elf.little_endian, elf.bits) == (False, 32)
    assert {
        symbol.name: symbol.value for symbol in elf.symbols if symbol.name.endswith(("end", "start"))
    } == {
        "_binary_data_start": 0,
        "_binary_data_end": 5,
    }
    assert elf.section(".data") == b"12345"


def test_a_program_is_read_again_only_when_its_file_has_changed(tmp_path: Path, program: Path) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes(program.read_bytes())
    first = read_program(copy)
    assert read_program(copy) is first
    copy.write_bytes(program.read_bytes() + b"\0")
    assert read_program(copy) is not first
