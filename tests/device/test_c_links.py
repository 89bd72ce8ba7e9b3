# SPDX-License-Identifier: Apache-2.0
"""Several files as one program: which definition counts, in which order, at which place."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from minrpc import ConfigurationError, Device, LoadedLibrary
from minrpc.library import program_facts, toolset_of
from minrpc.library.loading import firmware_of

from tests.device.conftest import Load

pytestmark = pytest.mark.once

Write = Callable[..., list[Path]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes C files: their paths, in the order of their names here."""

    def written(**texts: str) -> list[Path]:
        for name, text in texts.items():
            (tmp_path / f"{name}.c").write_text(text)
        return [tmp_path / f"{name}.c" for name in texts]

    return written


@pytest.fixture
def archived(device: Device, write: Write) -> Callable[..., Path]:
    """Compiles a C file for the device into an archive."""

    def made(text: str, options: str = "rcs") -> Path:
        toolset = toolset_of(firmware_of(device))
        (source,) = write(member=text)
        archive = source.with_name("libmember.a")
        archive.unlink(missing_ok=True)
        compiler = [toolset.compiler, *toolset.code_flags, *toolset.includes]
        archiver = [toolset.program("ar"), options, "libmember.a", "member.o"]
        for command in ([*compiler, "-g", "-c", "member.c", "-o", "member.o"], archiver):
            subprocess.run(command, cwd=source.parent, check=True)
        return archive

    return made


def test_a_users_section_without_content_is_zeroed(device: Device, load: Load, write: Write) -> None:
    machine = program_facts(firmware_of(device).elf).machine
    comment = {"EM_ARM": "@", "EM_AARCH64": "//"}.get(machine, "#")
    kind = "%nobits" if machine in ("EM_ARM", "EM_AARCH64") else "@nobits"
    (source,) = write(
        held="#include <stdint.h>\n"
        f'static uint32_t held[100] __attribute__((section(".dma,\\"aw\\",{kind} {comment}")));\n'
        "uint32_t next(void)\n{\n\tuint32_t sum = 0;\n\n"
        "\tfor (int i = 0; i < 100; i++) {\n\t\tsum += ++held[i];\n\t}\n\treturn sum;\n}\n"
    )
    for _ in range(2):  # The second library is in the memory of the first one.
        with load(source, linked=False) as library:
            assert library["next"]() == 100


def test_an_archive_of_the_user_comes_before_the_firmware(
    load: Load, write: Write, archived: Callable[..., Path]
) -> None:
    declared = "unsigned minrpc_crc32(unsigned crc, const void *data, unsigned size)"
    (source,) = write(uses=f'{declared};\nunsigned get(void) {{ return minrpc_crc32(0, "abc", 3); }}\n')
    assert load(source)["get"]() == 0x352441C2
    library = archived(f"{declared} {{ return size + 1231; }}\n")
    assert load(source, libraries=library)["get"]() == 1234


def test_a_thin_archive_is_refused(load: Load, write: Write, archived: Callable[..., Path]) -> None:
    """Its objects may be compiled again without a change of the archive."""
    (source,) = write(uses="int member(void);\nint get(void) { return member(); }\n")
    thin = archived("int member(void) { return 1; }\n", "rcsT")
    with pytest.raises(ConfigurationError, match="thin archive"):
        load(source, libraries=thin)


def test_constructors_run_by_their_priority(load: Load, write: Write) -> None:
    sources = write(
        one="int order[8], count;\n"
        "__attribute__((constructor)) static void p(void) { order[count++] = 1; }\n"
        "__attribute__((constructor(200))) static void q(void) { order[count++] = 200; }\n",
        two="extern int order[], count;\n"
        "__attribute__((constructor(101))) static void r(void) { order[count++] = 101; }\n"
        "__attribute__((constructor)) static void s(void) { order[count++] = 2; }\n"
        "int number(void) { return count; }\n",
    )
    for given, last in ((sources, [1, 2]), (sources[::-1], [2, 1])):
        assert load(*given).variables.order.tolist() == [101, 200, *last, 0, 0, 0, 0]


@pytest.mark.parametrize("swapped", [False, True])
def test_a_fake_has_the_prototype_that_one_of_the_files_has(load: Load, write: Write, swapped: bool) -> None:
    sources = write(
        old="float hal();\nint old(void) { hal(2.5); return 1; }\n",
        new="float hal(double x);\nfloat new(void) { return hal(1.5); }\n",
    )
    seen: list[float] = []

    def hal(x: float) -> float:
        seen.append(x)
        return 2.0

    library = load(
        *(sources[::-1] if swapped else sources),
        flags="-std=gnu17",
        fakes={"hal": hal},
    )
    assert (library["old"](), library["new"]()) == (1, 2.0)
    assert seen == [2.5, 1.5]


@pytest.mark.parametrize("swapped", [False, True])
def test_types_are_those_of_the_definition_that_is_linked(load: Load, write: Write, swapped: bool) -> None:
    sources = write(
        weak="__attribute__((weak)) int table[2] = {1, 2};\n"
        "__attribute__((weak)) float half(float x) { return x / 2; }\n"
        "int first(void) { return table[0]; }\n",
        strong="struct pair { int a; double b; };\nstruct pair table = {5, 6.5};\n"
        "double half(double x) { return x / 2; }\n",
    )
    library = load(*(sources[::-1] if swapped else sources))
    table = library.variables.table
    assert (table.a, table.b) == (5, 6.5)
    assert library["half"](3.0) == 1.5
    assert library["first"]() == 5


def test_code_keeps_its_alignment(load: Load, write: Write) -> None:
    (source,) = write(
        aligned="int one(int x) { return x * 3; }\n"
        "__attribute__((aligned(256))) int two(int x) { return x; }\nint three(int x) { return x * 5; }\n"
        "__attribute__((aligned(256))) int four(int x) { return x - 2; }\n"
    )
    library: LoadedLibrary = load(source)
    assert [library.symbols.addresses[name] & 0xFE for name in ("two", "four")] == [0, 0]
    assert [library[name](4) for name in ("one", "two", "three", "four")] == [12, 4, 20, 2]


def test_integers_of_sixteen_bytes(device: Device, load: Load, write: Write) -> None:
    if program_facts(firmware_of(device).elf).bits != 64:
        pytest.skip("its compiler has no __int128")
    (source,) = write(wide="__int128 wide(long long x) { return (__int128)x * x * x; }\n")
    assert load(source)["wide"](-(10**10)) == -(10**30)


def test_sizes_of_one_name_in_several_files_are_all_told(load: Load, write: Write) -> None:
    helper = "static int state[%d];\n__attribute__((noinline)) static int helper(volatile int n)\n"
    helper += "{\n\tstate[0]++;\n\treturn n * 3 + state[%d];\n}\n"
    files = {
        name: helper % (size, size - 1) + f"int {name}(int n) {{ return helper(n) + 1; }}\n"
        for name, size in (("one", 5), ("two", 9))
    }
    sizes = load(*write(**files)).own_sizes
    assert (sizes["state (one.c)"], sizes["state (two.c)"]) == (20, 36)
    assert min(sizes[f"helper ({name}.c)"] for name in ("one", "two")) > 4
    assert sizes.keys() >= {"one", "two"}
    assert not {"helper", "state"} & sizes.keys()


def test_variables_of_cxx_with_internal_linkage(load: Load, tmp_path: Path) -> None:
    (tmp_path / "p.cpp").write_text(
        "namespace pid { static int hid = 6; const int gains[2] = {3, 4}; }\n"
        "static int plain = 1; int shared = 2; namespace { int unnamed = 9; static int both = 8; }\n"
        "namespace a { namespace b { static int deep = 4; namespace { int inner = 5; } } }\n"
        'extern "C" { static int of_c = 3; int sum(int i) { return pid::gains[i] + pid::hid++ + '
        "plain++ + unnamed++ + both++ + a::b::deep++ + a::b::inner++ + shared++ + of_c++; } }\n"
    )
    library = load(tmp_path / "p.cpp", flags=["-O1"])
    assert library["sum"](0) == 41
    assert list(library.variables.gains) == [3, 4]
    found = {name: getattr(library.variables, name) for name in library.variables if name != "gains"}
    expected = {"hid": 7, "plain": 2, "unnamed": 10, "both": 9, "deep": 5, "inner": 6, "shared": 3, "of_c": 4}
    assert found == expected
    library.variables["hid"].write(100)
    assert library["sum"](1) == 143


def test_variables_of_one_name_in_several_namespaces(load: Load, tmp_path: Path) -> None:
    (tmp_path / "pid.cpp").write_text(
        'namespace pid { int n = 3; }\nextern "C" int of_pid(void) { return pid::n; }\n'
    )
    (tmp_path / "pump.cpp").write_text(
        "namespace pump { namespace inner { int n = 5; } int alone = 7; }\n"
        'extern "C" int of_pump(void) { return pump::inner::n; }\n'
    )
    lib = load(tmp_path / "pid.cpp", tmp_path / "pump.cpp")
    lib.variables["pid::n"].write(30)
    lib.variables["pump::inner::n"].write(50)
    assert (lib["of_pid"](), lib["of_pump"](), lib.variables.alone) == (30, 50, 7)
    with pytest.raises(AttributeError, match="pid::n"):
        _ = lib.variables.n


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("int get(int n)", "float get(int n)"),
        ("int get(int n)", "int get(double n)"),
        ("int get(int n)", "int get(int n, int m)"),
    ],
)
def test_a_fake_with_two_prototypes_is_refused(load: Load, write: Write, first: str, second: str) -> None:
    files = {}
    for name, prototype in (("one", first), ("two", second), ("three", first)):
        given = "1, 2" if "m" in prototype else "1"
        files[name] = f"extern {prototype};\nint {name}(void) {{ return (int)get({given}); }}\n"
    with pytest.raises(ConfigurationError, match="get can't be a fake: files declare it in different ways"):
        load(*write(**files), fakes={"get": lambda *_: 1})


def test_a_fake_whose_prototypes_pass_the_same(load: Load, write: Write) -> None:
    """A struct that one file does not know, and names of types, are no difference."""
    sources = write(
        one="struct s;\nunsigned get(struct s *p, char c);\nint one(void) { return (int)get(0, 1); }\n",
        two="struct s { int n; };\nenum e { A, B = 99999 };\nenum e get(struct s *p, signed char c);\n"
        "int two(void) { struct s s = {4}; return (int)get(&s, 1); }\n",
    )
    lib = load(*sources, fakes={"get": lambda p, c: 5})
    assert (lib["one"](), lib["two"]()) == (5, 5)


def test_a_function_that_a_program_chooses_at_its_start_is_refused(load: Load, tmp_path: Path) -> None:
    text = ".globl chosen\n.type chosen, %gnu_indirect_function\nchosen:\n\t.long 0\n.size chosen, 4\n"
    (tmp_path / "chosen.S").write_text(text)
    with pytest.raises(ConfigurationError, match=r"chosen of .* is chosen when a program starts .ifunc."):
        load(tmp_path / "chosen.S", declare="int chosen(void)")
