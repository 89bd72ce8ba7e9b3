# SPDX-License-Identifier: Apache-2.0
"""Symbols that loaded code is linked with."""

import shutil
import subprocess
from pathlib import Path
from unittest.mock import Mock

import pytest
from elftools.elf.elffile import ELFFile
from minrpc import Target, build
from minrpc.library import Sources, compile_sources, linking, program_facts, toolset_of
from minrpc.library.linking import firmware_symbols, link
from minrpc.library.loading import firmware_from
from minrpc.library.reachable import needing

# Text of a section's attribute that GCC passes to the assembler: of memory without content.
_ZEROS = '{place},\\"aw\\",{mark}nobits{comment}'
_HELD = """
{data} volatile unsigned char held[300]{value};
{code} __attribute__((noinline)) int more(int n) {{ return n + 7; }}
int fill(int n)
{{
	for (int i = 0; i < 300; i++)
		held[i] = (unsigned char)n;
	return more(held[n]);
}}
"""
_PLACES = (
    ".noinit",
    ".noinit.mine",
    ".persistent",
    "mine",
    ".bss_of_mine",
    ".init",
    ".fast.text",
    ".note.mine",
)
_PLATFORMS = [
    "bare_mps2_an385",
    pytest.param("posix", marks=pytest.mark.slow),
    pytest.param("bare_rv32", marks=pytest.mark.slow),
]


def test_symbols_of_a_firmware_are_made_once_and_by_another_version_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolset = toolset_of(build(Target.named("posix")))
    monkeypatch.setattr(linking, "cache_home", lambda: tmp_path)
    made = firmware_symbols(toolset)
    assert firmware_symbols(toolset) == made
    monkeypatch.setattr(linking, "_maker", lambda: b"a later version")
    again = firmware_symbols(toolset)
    assert again != made
    assert again.read_bytes() == made.read_bytes()


def test_files_of_the_user_are_read_again_when_they_were_written_again(tmp_path: Path) -> None:
    """A session in which a user builds, loads, edits, builds and loads."""
    elf, archive = tmp_path / "firmware.elf", tmp_path / "libf.a"
    toolsets = []
    for name in ("posix", "bare_mps2_an385"):
        target = Target.named(name)
        shutil.copy2(build(target).elf, elf)
        toolsets.append(toolset_of(firmware_from(target, elf)))
        assert (program_facts(elf).machine == "EM_ARM") == (name == "bare_mps2_an385")
    assert toolsets[0] != toolsets[1]
    for body, lacks in (("return x;", {}), ("return gone(x);", {"f": ("gone",)}), ("return -x;", {})):
        (tmp_path / "f.c").write_text(f"int gone(int); int f(int x) {{ {body} }}")
        command = "gcc -c -g f.c -o f.o && ar rcs libf.a f.o"
        subprocess.run(command, shell=True, cwd=tmp_path, check=True)
        assert (
            needing(["f"], ["gone"], [archive], toolset_of(build(Target.named("posix")))).functions == lacks
        )


@pytest.mark.parametrize(
    ("source", "sent"),
    [
        ("int get(void) { return 1; }", None),
        ("volatile int here[4]; int get(void) { return here[1]; }", 16),
        ("volatile int here = 1; int get(void) { return here; }", 4),
    ],
)
def test_the_room_behind_code_is_sent_only_with_variables(
    tmp_path: Path, source: str, sent: int | None
) -> None:
    """In QEMU variables lie in a page of their own, and a link is slow."""
    file = tmp_path / "code.c"
    file.write_text(source)
    toolset = toolset_of(build(Target.named("bare_mps2_an385")))
    image = link(compile_sources(Sources.of([file]), toolset), toolset, 0x21000000, page=1024)
    code, variables = (image.symbols[f"minrpc_{name}"] - image.base for name in ("constructors_end", "data"))
    assert variables % 1024 == 0
    assert image.gap == variables - code > 0
    assert len(image.data) <= code if sent is None else len(image.data) == variables + sent


def placed(section: str) -> str:
    return f'__attribute__((section("{section}")))'


@pytest.mark.parametrize("name", _PLATFORMS)
def test_each_allocated_section_is_part_of_the_image(tmp_path: Path, name: str) -> None:
    """`.noinit` lay behind the block that the device gives, in memory of the runtime."""
    toolset = toolset_of(build(Target.named(name)))
    mark, comment = ("%", "//") if name.startswith("bare_mps2") else ("@", "#")
    files: list[Path] = []
    for index, place in enumerate(_PLACES):
        zeros = placed(_ZEROS.format(place=place, mark=mark, comment=comment))
        cases = [(zeros, "", ""), (placed(place), " = {1}", ""), ("", "", placed(place))]
        cases = cases[:1] if place.startswith(".noinit") else cases  # GCC knows this name.
        for data, value, code in cases:
            files.append(tmp_path / f"part{len(files)}_{index}.c")
            files[-1].write_text(_HELD.format(data=data, value=value, code=code))
    base = 0x21000000
    for file in files:
        image = link(compile_sources(Sources.of([file]), toolset), toolset, base)
        elf = tmp_path / "linked.elf"
        elf.write_bytes(image.program)
        with elf.open("rb") as content:
            sections = [section for section in ELFFile(content).iter_sections() if section["sh_flags"] & 2]
        for section in sections:
            if section["sh_size"] and section.name != ".firmware_thread_locals":
                assert base <= section["sh_addr"], section.name
                assert section["sh_addr"] + section["sh_size"] <= base + image.size, section.name
        if " = {1}" in file.read_text():
            assert image.data[image.symbols["held"] - base] == 1
        for symbol, size in (("held", 300), ("fill", 1), ("more", 1)):
            assert base <= image.symbols[symbol] <= base + image.size - size


@pytest.mark.parametrize(
    ("data", "chosen"),
    [
        (b"printf\0%-5.2f", True),
        (b"sscanf\0%lf", True),
        (b"printf\0%d %%", False),
        (b"\x01%f\x02", False),  # Code, or a table: a library of another ABI would not link.
    ],
)
def test_code_that_prints_floating_point_numbers_gets_their_printf(
    tmp_path: Path, data: bytes, chosen: bool
) -> None:
    (tmp_path / "libc.a").write_bytes(b"__d_vfprintf")
    (tmp_path / "code.o").write_bytes(data)
    toolset = Mock(**{"library_files.return_value": [tmp_path / "libc.a"]})
    options = linking._formats(Mock(options=(), objects=[tmp_path / "code.o"]), toolset)
    assert options == [f"--defsym={name}=__d_{name}" for name in ("vfprintf", "vfscanf")] * chosen
