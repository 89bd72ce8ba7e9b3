# SPDX-License-Identifier: Apache-2.0
"""Damaged and cut files: each is read, or is an error that names the file."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from elftools.dwarf.die import DIE
from elftools.elf.elffile import ELFFile
from minrpc.errors import ProgramFileError
from minrpc.program import Elf, Program
from minrpc.program.compiler import compiler_of, compiler_of_object, floating_point
from minrpc.program.objects import elves_of, function_sizes, read_objects, section_sizes
from minrpc.sizes.pieces import program_sizes

_SOURCE = """
typedef struct node { struct node *next; union { float f; int w; } v; unsigned bits : 5; } node;
int table[20];
const char text[] = "text";
static inline int weight(const node *n) { return n->bits + n->v.w; }
int sum(const int *values, int n)
{
	int all = 0;
	for (int i = 0; i < n; i++)
		all += values[i] + table[i % 20];
	return all;
}
void scale(node *n, float by, int (*cmp)(const node *)) { n->v.f *= by + cmp(n->next) + weight(n); }
int twice(int x) { return 2 * x; }
int fourfold(int x) { return twice(twice(x)); }
int main(void) { return sum(table, 20); }
"""


def made(directory: Path, name: str, *command: str) -> Path:
    (directory / "seed.c").write_text(_SOURCE)
    subprocess.run([*command, "-g", "-O2", "seed.c", "-lgcc", "-o", name], cwd=directory, check=True)
    return directory / name


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    arm = ["arm-none-eabi-gcc", "-mcpu=cortex-m3"]
    commands = {
        "host.o": ["gcc", "-c"],
        "arm.o": [*arm, "-c"],
        "host.elf": ["gcc", "-no-pie"],
        "arm.elf": [*arm, "-nostdlib", "-Wl,-e,main"],
    }
    directory = tmp_path_factory.mktemp("seeds")
    return {name: made(directory, name, *command) for name, command in commands.items()}


def read_all(path: Path) -> None:
    """Read all that the package reads of an object or a program."""
    if path.suffix == ".o":
        read_objects([path], [path.read_bytes()])
        function_sizes([path])
        section_sizes(path)
        for elf in elves_of(path):
            compiler_of_object(elf)
            _ = elf.used(), elf.references, elf.thread_locals
        return
    program_sizes(path)
    program = Program(path.name, path.read_bytes())
    for function in program.functions:
        _ = program.line_at(function.start), program.name_of(function)
    for name in program.function_names:
        program.function(name)
    program.returns_from("sum")
    _ = program.build_id, program.contents, program.everything, program.lines
    compiler_of(path)
    floating_point(path)


def damaged(content: bytes, count: int) -> Iterator[bytes]:
    """The content with a flipped bit, anywhere or in a section: most of the file is debug information."""
    chosen = random.Random(count)
    headers = Elf(content, "seed")._headers
    for _ in range(count):
        header = chosen.choice(headers)
        places = [(0, len(content)), (int(header["offset"]), int(header["size"]))]
        begin, size = chosen.choice(places)
        at = min(begin + chosen.randrange(max(size, 1)), len(content) - 1)
        yield content[:at] + bytes([content[at] ^ 1 << chosen.randrange(8)]) + content[at + 1 :]


@pytest.mark.parametrize("count", [12, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["host.o", "arm.o", "host.elf", "arm.elf"])
def test_a_flipped_bit(seeds: dict[str, Path], tmp_path: Path, name: str, count: int) -> None:
    refused = []
    file = tmp_path / name
    for content in damaged(seeds[name].read_bytes(), count):
        file.write_bytes(content)
        try:
            read_all(file)
        except ProgramFileError as error:
            refused.append(error.message)
    assert count // 50 <= len(refused) < count
    assert all(message.startswith(f"{name} is ") for message in refused)


def test_a_cut_file(seeds: dict[str, Path]) -> None:
    """The headers of sections are at its end, so a part of it is never taken for the whole file."""
    content = seeds["host.elf"].read_bytes()
    for end in range(0, len(content), 485):
        with pytest.raises(ProgramFileError, match=r"cut is (no ELF file|damaged or cut off)"):
            Elf(content[:end], "cut")


def entries(die: DIE) -> Iterator[DIE]:
    for child in die.iter_children():
        yield child
        yield from entries(child)


@pytest.mark.parametrize(
    ("tag", "attribute", "chosen"),
    [
        ("DW_TAG_structure_type", "DW_AT_sibling", lambda die: die),
        ("DW_TAG_typedef", "DW_AT_type", lambda die: die),
        ("DW_TAG_subprogram", "DW_AT_abstract_origin", lambda die: die),
        ("DW_TAG_member", "DW_AT_type", lambda die: die.get_parent()),
    ],
)
def test_an_entry_that_refers_to_itself_ends(
    seeds: dict[str, Path], tmp_path: Path, tag: str, attribute: str, chosen: Callable[[DIE], DIE]
) -> None:
    """A walk over siblings that lead back had no end, and neither had a struct in itself."""
    source = tmp_path / "host.o"
    with seeds["host.o"].open("rb") as file:
        elf = ELFFile(file)
        dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False)
        section = elf.get_section_by_name(".debug_info")
        assert section is not None
        top = next(dwarf.iter_CUs()).get_top_DIE()
        die = next(die for die in entries(top) if die.tag == tag and attribute in die.attributes)
        place, wanted = section["sh_offset"] + die.attributes[attribute].offset, chosen(die).offset
    content = bytearray(seeds["host.o"].read_bytes())
    content[place : place + 4] = wanted.to_bytes(4, "little")
    source.write_bytes(content)
    with pytest.raises(ProgramFileError, match=r"host\.o is damaged"):
        read_all(source)


def test_attributes_of_no_length_end(seeds: dict[str, Path], tmp_path: Path) -> None:
    content = bytearray(seeds["arm.elf"].read_bytes())
    header = next(
        header
        for header, name in zip(
            *(lambda elf: (elf._headers, elf._names))(Elf(bytes(content), "arm")), strict=True
        )
        if name == b".ARM.attributes"
    )
    begin = int(header["offset"]) + 1
    content[begin : begin + 4] = bytes(4)
    (tmp_path / "arm.elf").write_bytes(content)
    with suppress(ProgramFileError):
        floating_point(tmp_path / "arm.elf")
