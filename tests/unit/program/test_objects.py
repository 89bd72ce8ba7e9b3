# SPDX-License-Identifier: Apache-2.0
"""Section sizes of objects, compared with binutils."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from minrpc import ProgramFileError
from minrpc.program.debug_info import read_declarations
from minrpc.program.objects import elves_in, read_object, section_sizes

_SOURCE = """
const int constants[3] = {1, 2, 3};
int initial[5] = {1};
static char zeros[100];
char *f(void) { return zeros + constants[initial[0]]; }
"""


def test_sections_are_as_size_counts_them(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(_SOURCE)
    for name in ("a.o", "b.o"):
        command = ["gcc", "-c", "-O2", "-fdata-sections", "-ffunction-sections", "a.c", "-o", name]
        subprocess.run(command, cwd=tmp_path, check=True)
    subprocess.run(["ar", "cr", "both.a", "a.o", "b.o"], cwd=tmp_path, check=True)
    said = subprocess.run(["size", "a.o"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    expected = [int(word) for word in said.splitlines()[1].split()[:3]]
    assert list(section_sizes(tmp_path / "a.o")) == expected
    assert list(section_sizes(tmp_path / "both.a")) == [2 * size for size in expected]
    assert expected[1:] == [20, 100]


def test_what_is_damaged_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(_SOURCE)
    subprocess.run(["gcc", "-c", "a.c", "-o", "a.o"], cwd=tmp_path, check=True)
    content = bytearray((tmp_path / "a.o").read_bytes())
    headers = range(int.from_bytes(content[40:48], "little"), len(content), 64)
    relocations = next(at for at in headers if content[at + 4] == 4)  # SHT_RELA
    content[relocations + 44] = 0xFF  # The number of its section.
    for damaged, told in [(content, "refers to a section that is not there"), (b"text", "is no object file")]:
        with pytest.raises(ProgramFileError, match=told):
            elves_in(Path("a.o"), bytes(damaged))


@pytest.mark.parametrize(
    "renamed",
    [{}, {"_ZN12_GLOBAL__N_17unnamedE": "_ZN12_GLOBAL__N_1L7unnamedE", "_ZL4of_c": "of_c"}],
    ids=["this-gcc", "gcc-16"],
)
def test_variables_of_cxx_have_the_symbols_of_their_compiler(tmp_path: Path, renamed: dict[str, str]) -> None:
    (tmp_path / "a.cpp").write_text(
        "namespace { int unnamed = 9; static int both = 8; } static int plain = 1; "
        "namespace pid { const int gains[2] = {3, 4}; const int folded = 6; }\n"
        'extern "C" { static int of_c = 3; int sum(int i) { return unnamed++ + both++ + plain++ + of_c++ + '
        "pid::gains[i] + pid::folded; } }\n"
    )
    subprocess.run(["g++", "-g", "-O1", "-S", "a.cpp"], cwd=tmp_path, check=True)
    assembler = (tmp_path / "a.s").read_text()
    for name, new in renamed.items():
        assembler = re.sub(rf"\b{name}\b", new, assembler)
    (tmp_path / "a.s").write_text(assembler)
    subprocess.run(["g++", "-c", "a.s"], cwd=tmp_path, check=True)
    [elf] = elves_in(tmp_path / "a.o", (tmp_path / "a.o").read_bytes())
    variables = read_declarations(elf).variables
    assert set(variables) == {"unnamed", "both", "plain", "of_c", "gains"}
    assert {variable.symbol for variable in variables.values()} == elf.statics.keys()


def test_functions_of_an_object_without_types_can_t_be_called(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int seven(void) { return 7; }\nvoid nothing() {}\n")
    for level, reason in (("-g1", "it was compiled with -g1, which leaves out the types"), ("-g", "")):
        subprocess.run(["gcc", level, "-c", "a.c"], cwd=tmp_path, check=True)
        functions = read_object(tmp_path / "a.o", (tmp_path / "a.o").read_bytes()).functions
        for name in ("seven", "nothing"):
            assert functions[name].unsupported.startswith(reason)
            assert bool(functions[name].unsupported) == bool(reason)
