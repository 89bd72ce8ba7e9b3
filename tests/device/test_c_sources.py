# SPDX-License-Identifier: Apache-2.0
"""Sources that can be loaded: C++, assembler, objects, archives; with headers, definitions, libraries."""

from __future__ import annotations

import copy
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from minrpc import (
    Address,
    CFunctions,
    ConfigurationError,
    Device,
    GuardError,
    LinkerError,
    LoadedLibrary,
    LoadError,
    UndefinedSymbolsError,
    out,
)
from minrpc.library import Toolset, firmware_of, program_facts, toolset_of

from tests.device.conftest import Load
from tests.native import need_tools

# Tests of compiling, linking and passing on the host; test_c_functions.py has them for each device.
pytestmark = pytest.mark.once

# The same function for each processor that has a port.
ASSEMBLER = """\
	.text
	.globl seven
#if defined(__arm__)
	.syntax unified
	.thumb
	.type seven, %function
	.thumb_func
seven:
	movs r0, #SEVEN
	bx lr
#elif defined(__riscv)
	.type seven, %function
seven:
	li a0, SEVEN
	ret
#elif defined(__aarch64__)
	.type seven, %function
seven:
	mov w0, SEVEN
	ret
#else
	.type seven, @function
seven:
	mov $SEVEN, %eax
	ret
#endif
	.size seven, . - seven
"""
USES = "int seven(void);\nint fourteen(void) { return 2 * seven(); }\n"


@pytest.fixture
def toolset(device: Device) -> Toolset:
    """The compiler and linker of the running firmware."""
    return toolset_of(firmware_of(device))


@pytest.fixture
def compiled(toolset: Toolset, tmp_path: Path) -> Callable[[str, str], Path]:
    """Compiles C as another build does: to an object with debug information."""

    def make(name: str, text: str) -> Path:
        source, made = tmp_path / f"{name}.c", tmp_path / f"{name}.o"
        source.write_text(text)
        words = [toolset.compiler, *toolset.code_flags, "-g", "-c", str(source), "-o", str(made)]
        subprocess.run(words, check=True)
        return made

    return make


@pytest.fixture
def archived(toolset: Toolset, tmp_path: Path) -> Callable[..., Path]:
    """Makes an archive of objects."""

    def make(name: str, *objects: Path) -> Path:
        subprocess.run([toolset.program("ar"), "rcs", str(tmp_path / name), *map(str, objects)], check=True)
        return tmp_path / name

    return make


@pytest.fixture
def many(load: Load, toolset: Toolset) -> Callable[[int], LoadedLibrary]:
    """Loads C++, compiled with this FACTOR."""
    need_tools(toolset.cxx)
    return lambda factor: load("c/many.cpp", defines={"FACTOR": factor})


def test_cxx(many: Callable[[int], LoadedLibrary]) -> None:
    """Constructors have run, also those of templates; names of C++ are found as they are written."""
    cxx = many(3)
    assert cxx["started_with"]() == 21
    assert cxx["twice"](np.array([21], np.int32)) == 42
    assert [cxx["plain"](1), cxx["plain"](1)] == [2, 3]


def test_names_that_several_functions_of_cxx_have(load: Load, toolset: Toolset, tmp_path: Path) -> None:
    """Overloads are in one file and in two; the name of an extern "C" function is unique."""
    need_tools(toolset.cxx)
    (tmp_path / "one.cpp").write_text(
        "int f(int a) { return a; }\nint f(float a) { return 2 * (int)a; }\nint g(int a) { return a; }\n"
        'int h(float a) { return (int)a; }\nextern "C" int h(int a) { return 3 * a; }\n'
        "int alone(int a) { return 4 * a; }\n"
    )
    (tmp_path / "two.cpp").write_text("int g(float a) { return 2 * (int)a; }\n")
    made = load(tmp_path / "one.cpp", tmp_path / "two.cpp")
    assert (made["h"](2), made["alone"](2)) == (6, 8)
    for name in ("f", "g"):
        with pytest.raises(TypeError, match=f"{name} can't be called: it is overloaded"):
            made[name](1)


def test_assembler_without_a_preprocessor(load: Load, tmp_path: Path) -> None:
    (tmp_path / "uses.c").write_text("extern int value; int get(void) { return value; }\n")
    (tmp_path / "number.inc").write_text(".long 8\n")
    (tmp_path / "value.s").write_text('.data\n.balign 4\n.globl value\nvalue: .include "number.inc"\n')
    library = load(tmp_path / "uses.c", tmp_path / "value.s", include=[tmp_path])
    assert library["get"]() == 8
    (tmp_path / "number.inc").write_text(".long 9\n")
    library = load(tmp_path / "uses.c", tmp_path / "value.s", include=[tmp_path])
    assert library["get"]() == 9


def test_assembler_beside_c(load: Load, tmp_path: Path) -> None:
    (tmp_path / "seven.S").write_text(ASSEMBLER)
    (tmp_path / "uses.c").write_text(USES)
    library = load(tmp_path / "uses.c", tmp_path / "seven.S", defines={"SEVEN": 7})
    assert (library["fourteen"](), library["seven"]()) == (14, 7)
    alone = load(tmp_path / "seven.S", defines={"SEVEN": 7})
    with pytest.raises(TypeError, match="seven can't be called: it is written in assembler"):
        alone["seven"]()
    (tmp_path / "seven.h").write_text("#pragma once\nint seven(void);\n")
    for declare in ("seven.h", "int16_t seven(void)"):
        declared = load(tmp_path / "seven.S", defines="SEVEN=7", declare=declare)
        assert declared["seven"]() == 7
    assert declared["seven"].prototype == "int16_t seven(void)"


HANDLES = """
#include <stdint.h>

struct unit { int32_t gain; struct unit *next; };
static struct unit units[2] = {{3, 0}, {-7, units}};
static uint32_t *const words = (uint32_t[]){1, 0xffffffff};

int unit_init(struct unit **unit, int index) { *unit = &units[index]; return index; }
int unit_gain(const struct unit *unit) { return unit->gain; }
uint32_t *unit_words(void) { return words; }
void *unit_any(void) { return words; }
"""


def test_handles_and_what_is_behind_a_pointer(device: Device, load: Load, tmp_path: Path) -> None:
    """A pointer may point into the loaded code, an array, or the firmware."""
    (tmp_path / "unit.c").write_text(HANDLES)
    library = load(tmp_path / "unit.c")
    index, unit = library["unit_init"](out(), 1)
    assert (index, library["unit_gain"](unit)) == (1, -7)
    assert library["unit_gain"](Address(int(unit))) == -7
    assert library.read(unit).gain == -7
    assert library.read(library["unit_words"]()) == 1
    assert bytes(library.read(library["unit_any"](), 8)) == b"\1\0\0\0\xff\xff\xff\xff"
    with pytest.raises(TypeError, match="give a size"):
        library.read(library["unit_any"]())
    array = device.array(np.arange(8, dtype=np.int16))
    library.write(array.address, b"\x34\x12")
    library.write(array.address + 2, b"\x78\x56\x00")
    assert bytes(library.read(array.address, 4)) == b"\x34\x12\x78\x56"
    assert array.view("uint32").numpy().tolist()[:2] == [0x56781234, 0x00030000]
    assert library["unit_gain"].with_timeout(60)(unit) == -7
    with pytest.raises(ValueError, match="seconds above 0"):
        library["unit_gain"].with_timeout(0)


def test_members_that_are_set_on_the_device(load: Load) -> None:
    """A struct that was read is the device's: members, bit fields, whole arrays. Const and elements are
    refused."""
    lib = load(Path(__file__).with_name("c") / "context.c", fakes="zero")
    uart = lib.variables.uart
    uart.sr = 100
    lib.variables["uart"].write({**{name: getattr(uart, name) for name in dir(uart)}, "low": 31})
    uart.high = 3
    uart.fifo = b"abcd"
    assert str(lib.variables.uart) == "uart(sr=100, dr=2, low=31, high=3, fifo=[ 97,  98,  99, 100])"
    with pytest.raises(ValueError, match="read-only"):
        uart.fifo[0] = 1
    with pytest.raises(TypeError, match=r"uart\.sr is const"):
        lib.variables.reset_values.sr = 1
    with pytest.raises(TypeError, match=r"uart\.sr is const"):
        lib.read(lib["reset"]()).sr = 1
    bank = lib["bank"](1)
    lib.read(bank).dr = 7
    assert [lib.read(bank).dr, lib.read(lib["bank"](0)).dr] == [7, 0]
    banks = lib.variables.banks
    banks[0].sr = 8
    copied = copy.copy(banks[0])
    copied.sr = 9
    assert [item.sr for item in lib.variables.banks] == [8, 0]


def test_objects(load: Load, compiled: Callable[[str, str], Path]) -> None:
    library = load(compiled("one", "int one(int x) { return x + 1; }\n"), compiled("two", "int two;\n"))
    assert library["one"](2) == 3
    library.variables.two = 5
    assert library.variables.two == 5


def test_archives(
    load: Load, compiled: Callable[[str, str], Path], archived: Callable[..., Path], tmp_path: Path
) -> None:
    """An archive among the sources is loaded whole; of an archive among the libraries only the needed
    functions."""
    archive = archived(
        "libs.a",
        compiled("seven", "int seven(void) { return 7; }\n"),
        compiled("no", "int no(void) { return 0; }\n"),
    )
    whole = load(archive)
    assert (whole["seven"](), whole["no"]()) == (7, 0)
    (tmp_path / "uses.c").write_text(USES)
    needed = load(tmp_path / "uses.c", libraries=[archive])
    assert needed["fourteen"]() == 14
    assert "no" not in needed.image.symbols
    with pytest.raises(UndefinedSymbolsError, match=r"uses\.c needs seven, which neither"):
        load(tmp_path / "uses.c")


def test_a_file_that_is_no_archive(load: Load, tmp_path: Path) -> None:
    (tmp_path / "bad.a").write_text("not one")
    with pytest.raises(ConfigurationError, match=r"bad\.a is no archive"):
        load(tmp_path / "bad.a")


def test_headers_and_includes_and_definitions(load: Load, tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "deep.h").write_text("#define DEEP 5\n")
    (tmp_path / "first.h").write_text("#include <deep.h>\n#define FIRST (DEEP * SCALE)\n")
    (tmp_path / "h.c").write_text("int h(void) { return FIRST + PLUS; }\n")
    given = {"headers": [tmp_path / "first.h"], "include": [tmp_path / "include"]}
    assert load(tmp_path / "h.c", defines={"SCALE": 3, "PLUS": 1}, **given)["h"]() == 16
    assert load(tmp_path / "h.c", defines=["SCALE=2", "PLUS"], **given)["h"]() == 11
    (tmp_path / "include" / "deep.h").write_text("#define DEEP 6\n")
    assert load(tmp_path / "h.c", defines=["SCALE=2", "PLUS"], **given)["h"]() == 13


def test_the_same_file_twice(many: Callable[[int], LoadedLibrary]) -> None:
    """Each of the two loaded copies has its own variables."""
    item, other = many(1), many(1)
    assert [item["plain"](0), item["plain"](0), other["plain"](0)] == [1, 2, 1]


def test_the_same_names_in_two(load: Load, tmp_path: Path) -> None:
    """One name is also a function of the C library, which is unchanged for other code."""
    (tmp_path / "a.c").write_text(
        "int held = 1;\nint abs(int x) { return -x; }\nint f(int x) { return abs(x) + held; }\n"
    )
    (tmp_path / "b.c").write_text(
        "#include <stdlib.h>\nint held = 10;\nint f(int x) { return abs(x) + held; }\n"
    )
    flags = ["-fno-builtin"]
    a, b = load(tmp_path / "a.c", flags=flags), load(tmp_path / "b.c", flags=flags)
    assert (a["f"](5), b["f"](5), a["f"](-5), b["f"](-5)) == (-4, 15, 6, 15)
    a.variables.held = 2
    assert (a.variables.held, b.variables.held) == (2, 10)


def test_calls_of_objects_that_expect_everything_near(load: Load, toolset: Toolset, tmp_path: Path) -> None:
    """Other compilers make such objects: if the C library is far away, a jump to it lies beside the code."""
    (tmp_path / "near.c").write_text(
        "#include <math.h>\n#include <string.h>\n"
        "float wave(float x) { return expf(x) * 2; }\n"
        "void fill(char *to, int value, int n) { memset(to, value, (unsigned)n); }\n"
    )
    words = [toolset.compiler, *toolset.flags, *toolset.includes, "-g", "-O2"]
    words += ["-fno-pic"] if toolset.calls_far else []
    subprocess.run([*words, "-c", "near.c", "-o", "near.o"], cwd=tmp_path, check=True)
    near = load(tmp_path / "near.o")
    to = np.zeros(5, np.int8)
    near["fill"](to, 3, 4)
    assert to.tolist() == [3, 3, 3, 3, 0]
    assert near["wave"](0.0) == 2.0


def test_variables_that_are_too_far(load: Load, toolset: Toolset, tmp_path: Path) -> None:
    if not toolset.calls_far:
        pytest.skip("all is within reach here")
    # A variable of the C library that the firmware does not use lies in the shared library.
    (tmp_path / "far.c").write_text("#include <unistd.h>\nint f(void) { return optind; }\n")
    words = [toolset.compiler, *toolset.flags, "-g", "-O2", "-fno-pic"]
    subprocess.run([*words, "-c", "far.c", "-o", "far.o"], cwd=tmp_path, check=True)
    with pytest.raises(LinkerError) as caught:
        load(tmp_path / "far.o")
    assert "compile it with -fPIC" in str(caught.value)


def test_a_header_that_comes_to_stand_in_front(load: Load, tmp_path: Path) -> None:
    """A new header is found first, although no file that the compiler read has changed."""
    for name in ("first", "second"):
        (tmp_path / name / "deep").mkdir(parents=True)
    (tmp_path / "second" / "deep" / "n.h").write_text("#define N 1\n")
    for name in ("a", "b"):
        text = f"#include <deep/n.h>\nint {name}(void) {{ return N; }}\n"
        (tmp_path / f"{name}.c").write_text(text)
    include = [tmp_path / "first", tmp_path / "second"]
    before = load(tmp_path / "*.c", include=include)
    assert (before["a"](), before["b"]()) == (1, 1)
    (tmp_path / "first" / "deep" / "n.h").write_text("#define N 2\n")
    assert load(tmp_path / "*.c", include=include)["b"]() == 2


@pytest.fixture
def layouts(load: Load) -> LoadedLibrary:
    """Structs with an unusual layout."""
    return load("c/layouts.c")


def test_packed_structs(layouts: LoadedLibrary) -> None:
    packet = layouts.types.packet
    assert packet.size == 7
    made = layouts["swapped"](packet(kind=1, length=0x12345678, crc=9))
    assert (made.kind, made.length, made.crc) == (1, 9, 0x5678)
    several = np.zeros(3, packet.dtype)
    several["length"] = [1, 20, 300]
    assert layouts["total"](several, 3) == 321


def test_bit_fields(layouts: LoadedLibrary) -> None:
    made = layouts["turned"](layouts.types.bits(low=5, middle=-3, high=1023, tail=200))
    assert (made.low, made.middle, made.high, made.tail) == (2, 3, 0, 200)
    with pytest.raises(ValueError, match="a bit field of 6 bits holds -32 to 31, got 32"):
        layouts.types.bits(middle=32)


def test_unions(layouts: LoadedLibrary) -> None:
    number = layouts.types.number
    assert layouts["bits_of"](number(real=1.0)) == 0x3F800000
    assert layouts["number_of"](-2.0).bytes.tolist() == [0, 0, 0, 0xC0]
    tagged = layouts.types.tagged(which=1, number=number(whole=0), y=-5)
    layouts["move"](tagged)
    assert (tagged.which, tagged.number.real, tagged.x) == (2, 2.0, -5)


THREAD_LOCALS = """
__thread int five = 5;
static __thread int counted;
__thread char aligned __attribute__((aligned(ALIGNMENT)));

int get_five(void) { return five; }
int count(void) { return ++counted; }
/* The compiler takes the address for aligned unless it does not know the address. */
int is_aligned(void)
{
	char *at = &aligned;

	__asm__("" : "+r"(at));
	return (__UINTPTR_TYPE__)at % ALIGNMENT == 0;
}
"""


def test_thread_local_variables_are_right_or_refused(load: Load, toolset: Toolset, tmp_path: Path) -> None:
    """Two libraries have thread-local variables of their own; a call that uses neither keeps them."""
    first, second = tmp_path / "first.c", tmp_path / "second.c"
    facts = program_facts(toolset.elf)
    for path in (first, second):
        path.write_text(f"#define ALIGNMENT {16 if facts.thread_room else 32}\n{THREAD_LOCALS}")
    if facts.dynamic or facts.machine not in ("EM_ARM", "EM_RISCV"):
        with pytest.raises(LinkerError, match=r"first.c: .*five.* thread-local \(__thread\)"):
            load(first)
        return
    item, other = load(first), load(second)
    for library in (item, other):
        assert library["get_five"]() == 5
        assert library["is_aligned"]()
    assert [item["count"](), other["count"](), item["count"](), other["count"]()] == [1, 1, 2, 2]
    assert item["get_five"]() == 5


def test_threads_have_room_for_some_variables(load: Load, toolset: Toolset, tmp_path: Path) -> None:
    """Zephyr's threads on a RISC-V keep their thread pointer: loaded code has a part of their variables."""
    room = len(program_facts(toolset.elf).thread_room)
    if not room:
        pytest.skip("loaded code has thread-local variables of its own, or none")
    half, small, large, wide = (tmp_path / f"{name}.c" for name in ("half", "small", "large", "wide"))
    half.write_text(
        f"__thread char a = 3, b[{room // 2}]; int f(void) {{ return b[{room // 2 - 1}]++ + a; }}"
    )
    large.write_text(f"__thread char buffer[{room + 1}]; int f(void) {{ return buffer[0]; }}")
    wide.write_text("__thread char wide __attribute__((aligned(32))); int f(void) { return wide; }")
    with pytest.raises(
        LinkerError, match=rf"buffer is thread-local .*: {room + 1} bytes, .* has {room} of {room} free"
    ):
        load(large)
    with pytest.raises(LinkerError, match=r"wide is thread-local .*: aligned to 32 bytes, and the stacks"):
        load(wide)
    item = load(half)
    assert [item["f"](), item["f"]()] == [3, 4]
    small.write_text("__thread char c = 1; int f(void) { return c++; }")
    other = load(small)
    with pytest.raises(LinkerError, match=rf"b, a are thread-local .* has \d+ of {room} free") as caught:
        load(half)
    assert "CONFIG_MINRPC_THREAD_LOCALS" in caught.value.next_step
    assert item["f"]() == 5
    item.unload()
    again = load(half)
    assert [again["f"](), other["f"](), again["f"](), other["f"]()] == [3, 1, 4, 2]


def test_hidden_functions(layouts: LoadedLibrary) -> None:
    """A hidden function can be called: it is hidden from a shared library's users, not from other files."""
    assert layouts["seen"](3) == 8
    assert layouts["hidden"](3) == 4


@pytest.mark.parametrize("direct", [True, False])
def test_what_is_const_is_not_written(device: Device, layouts: LoadedLibrary, direct: bool) -> None:
    """A write to a const array is found also over the link, where the array is not copied back: long arrays
    by their checksum."""
    device.direct = direct
    long, y = np.ones(1000, np.int16), np.zeros(1, np.int16)
    with pytest.raises(GuardError, match=r"spoil_constant wrote 1 byte of x \(int16\[1000\]\)"):
        layouts["spoil_constant"](long, 700)
    with pytest.raises(GuardError, match=r"spoil_constant wrote 2 bytes behind x \(int16\[1000\]\)"):
        layouts["spoil_constant"](long, 1000)
    with pytest.raises(GuardError, match=r"spoil_and_write wrote 1 byte of x"):
        layouts["spoil_and_write"](long, y, 999)
    assert long.tolist() == [1] * 1000
    x = np.array([1, 2, 3], np.int16)
    with pytest.raises(GuardError, match=r"spoil_constant wrote 2 bytes behind x \(int16\[3\]\)"):
        layouts["spoil_constant"](x, 3)
    text = r"spoil_constant wrote 1 byte of x \(int16\[3\]\), which it may only read; the first at offset 2"
    with pytest.raises(GuardError, match=text):
        layouts["spoil_constant"](x, 1)
    with pytest.raises(GuardError, match=r"of t \(struct tagged\), which it may only read"):
        layouts["spoil_struct"](layouts.types.tagged(which=1))
    # A const array next to data that is copied back is checked without a further request.
    with pytest.raises(GuardError, match=r"spoil_and_write wrote 1 byte of x"):
        layouts["spoil_and_write"](x, y, 1)
    assert x.tolist() == [1, 2, 3]
    assert y.tolist() == [0]
    assert layouts["spoil_constant"](x, 1, guards=False) == 1


def test_links_within_structs(layouts: LoadedLibrary) -> None:
    """A pointer into a struct keeps its target: the addresses differ from call to call."""
    items = [layouts.types.item(value=value) for value in (1, 20, 300)]
    held = layouts.types.list()
    for item in items:
        layouts["push"](held, item)
    assert layouts["sum_of"](held) == 321
    items[1].value = 40
    assert layouts["sum_of"](held) == 341
    found = [None]
    layouts["link_of"](found, items[0])
    assert found == [items[0].link]
    held.first.next = None
    assert (items[2].link.next, layouts["sum_of"](held)) == (None, 300)


def test_structs_that_begin_as_another(layouts: LoadedLibrary) -> None:
    """The object to which C has set a pointer may have another type than the pointer's target."""
    head, files = layouts.types.base(), [layouts.types.file() for _ in range(2)]
    for file in files:
        layouts["attach"](head, file)
    assert layouts["kinds"](head) == 10
    assert head.next is files[1]
    with pytest.raises(TypeError, match=r"kinds: head->next: expected struct base \*, got file"):
        layouts["kinds"](layouts.types.base(next=files[0]))


def test_pointers_into_arrays(layouts: LoadedLibrary) -> None:
    values = np.array([7, 8, 9], np.int16)
    window = layouts.types.window()
    layouts["open_window"](window, values)
    assert window.begin is values
    assert [layouts["next_of"](window), layouts["next_of"](window)] == [8, 9]
    assert window.at.tolist() == []


@pytest.mark.once
def test_misuse_is_named(load: Load, tmp_path: Path) -> None:
    files = {
        "one.c": "int dup(void) { return 1; }\n",
        "two.c": "\nint dup(void) { return 2; }\n",
        "empty.c": "",
        "text.o": "no object",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    foreign = bytearray(64)
    foreign[:6], foreign[18] = b"\x7fELF\x01\x01", 8
    (tmp_path / "mips.o").write_bytes(foreign)
    for names, given, error, told in (
        (["one.c", "two.c"], {}, LinkerError, r"dup is defined at \S*one.c:1\s+and at\s+\S*two.c:2"),
        (["empty.c"], {}, LoadError, r"empty.c has no function and no variable"),
        (["text.o"], {}, ConfigurationError, "text.o is no object file"),
        (["mips.o"], {}, ConfigurationError, "mips.o was compiled for MIPS, the device is"),
        (["one.c"], {"statics": "yes"}, TypeError, "statics= is True or False, not 'yes'"),
        (["one.c"], {"replace": "zero"}, TypeError, r'replace= takes {"name": function}, not \'zero\''),
    ):
        with pytest.raises(error, match=told):
            load(*(tmp_path / name for name in names), **given)
    lib = CFunctions(load(tmp_path / "one.c"))
    with pytest.raises(AttributeError, match=r"'dup' can't be set: .* minrpc.variables\(lib\).dup = "):
        lib.dup = 3


@pytest.mark.parametrize("flag", ["-g0", "-gz", "-gsplit-dwarf", "-fdebug-types-section"])
def test_types_are_known_with_other_flags_of_debug_information(load: Load, tmp_path: Path, flag: str) -> None:
    (tmp_path / "one.c").write_text("struct one { int x; };\nint x_of(struct one *o) { return o->x; }\n")
    assert load(tmp_path / "one.c", flags=[flag])["x_of"]((4,)) == 4
