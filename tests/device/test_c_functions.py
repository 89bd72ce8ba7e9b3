# SPDX-License-Identifier: Apache-2.0
"""C that is loaded into the running device and called with its own types, the same for all devices."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from pathlib import Path

import minrpc
import numpy as np
import numpy.typing as npt
import pytest
from minrpc import (
    Address,
    CompileError,
    Device,
    Firmware,
    GuardError,
    HarnessError,
    LinkerError,
    LoadedLibrary,
    LoadError,
    RunningDevice,
    UndefinedSymbolsError,
    open_device,
    out,
)

from tests.device.conftest import Load
from tests.native import of_another_build


def i16(values: list[int]) -> npt.NDArray[np.int16]:
    """An array of int16."""
    return np.array(values, np.int16)


def i32(values: list[int]) -> npt.NDArray[np.int32]:
    """An array of int32."""
    return np.array(values, np.int32)


def f32(values: list[float]) -> npt.NDArray[np.float32]:
    """An array of float32."""
    return np.array(values, np.float32)


@pytest.fixture
def kinds(load: Load) -> LoadedLibrary:
    """A function for each kind of argument."""
    return load("c/kinds.c")


def test_arrays_go_in_and_come_back(kinds: LoadedLibrary) -> None:
    x, y = np.arange(-3, 5, dtype=np.int16), np.zeros(8, np.int16)
    assert kinds["scale"](x, y, 8, -2) is None
    assert y.tolist() == [6, 4, 2, 0, -2, -4, -6, -8]
    assert x.tolist() == list(range(-3, 5))


def test_blanks_and_letters_in_paths(device: Device, tmp_path: Path) -> None:
    headers = tmp_path / "prö j" / "ínc dir"
    headers.mkdir(parents=True)
    (headers / "k ö.h").write_text("#define K 3\n")
    source = tmp_path / "prö j" / "fílt er.c"
    source.write_text('#include "k ö.h"\nint triple(int x) { return K * x; }\n')
    assert device.load(source, include=[headers], flags=['-DNAME="a b"']).triple(5) == 15


def test_arrays_of_several_dimensions(kinds: LoadedLibrary) -> None:
    y = np.zeros((2, 3), np.int16)
    kinds["scale"](np.ones((2, 3), np.int16), y, 6, 4)
    assert (y == 4).all()


def test_arrays_that_are_on_the_device(kinds: LoadedLibrary, device: Device) -> None:
    x, y = device.array(i16([1, 2])), device.empty((2,), "int16")
    kinds["scale"](x, y, 2, 5)
    assert y.numpy().tolist() == [5, 10]
    for other in (device.array(np.array([1, 2])), device.array(i16([1, 2]).view(np.uint16))):
        with pytest.raises(TypeError, match="scale: x: expected const int16_t \\*, got"):
            kinds["scale"](other, y, 2, 5)
    y.free()
    with pytest.raises(ValueError, match="has been freed"):
        kinds["scale"](x, y, 2, 5)


def test_arrays_of_the_device_and_of_python_in_turns(kinds: LoadedLibrary, device: Device) -> None:
    """A call is tried in the way of the call before it, and then in the others."""
    there, here = device.array(i16([1, 2])), i16([3, 4])
    for number in range(8):
        x = (there, here)[number & 1]
        y = (device.empty((2,), "int16"), np.zeros(2, np.int16))[number >> 1 & 1]
        kinds["scale"](x, y, 2, number)
        first = 3 if number & 1 else 1
        written = y if isinstance(y, np.ndarray) else y.numpy()
        assert written.tolist() == [first * number, (first + 1) * number]
    assert (there.numpy().tolist(), here.tolist()) == ([1, 2], [3, 4])


def test_what_is_only_written_is_returned(kinds: LoadedLibrary) -> None:
    y = kinds["scale"](i16([3, 4]), out(2), 2, 3)
    assert (y.dtype, y.tolist()) == (np.int16, [9, 12])


def test_numbers(kinds: LoadedLibrary) -> None:
    assert kinds["mean"](f32([1.5, 2.5]), 2) == 2.0
    assert kinds["product"](-(1 << 40), 3) == -3 << 40
    assert kinds["largest"]() == (1 << 64) - 1
    assert kinds["both"](True, 1) is True


def test_numbers_of_a_byte_keep_to_their_range(load: Load, tmp_path: Path) -> None:
    """Plain char takes both: whether it has a sign differs between compilers."""
    (tmp_path / "bytes.c").write_text(
        "#include <stdint.h>\nint i8(int8_t a) { return a; }\nint u8(uint8_t a) { return a; }\n"
        "int plain(char a) { return (unsigned char)a; }\n"
    )
    made = load(tmp_path / "bytes.c")
    assert (made["i8"](-128), made["u8"](255), made["plain"](200), made["plain"](-56)) == (
        -128,
        255,
        200,
        200,
    )
    for function, value in (
        (made["i8"], 200),
        (made["i8"], -129),
        (made["u8"], -1),
        (made["u8"], 256),
        (made["plain"], 256),
    ):
        with pytest.raises(ValueError, match=f"got {value}, which is out of its range"):
            function(value)


def test_a_va_list_can_not_be_given(load: Load, tmp_path: Path) -> None:
    (tmp_path / "listed.c").write_text(
        "#include <stdarg.h>\n"
        "int first(va_list args) { return va_arg(args, int); }\n"
        "int second(int n, va_list *args) { return n + va_arg(*args, int); }\n"
        "int third(int n) { return n; }\n"
    )
    made = load(tmp_path / "listed.c")
    assert made["third"](3) == 3
    with pytest.raises(TypeError, match="first can't be called: it takes a va_list"):
        made["first"](0)
    with pytest.raises(TypeError, match="second can't be called: it takes a va_list"):
        made["second"](1, None)


def test_enums_by_name_and_value(kinds: LoadedLibrary) -> None:
    colour = kinds.types.colour
    assert kinds["next_colour"]("RED") is colour.GREEN
    assert kinds["next_colour"](colour.GREEN) == colour.BLUE == 7
    with pytest.raises(ValueError, match="enum colour has no constant 'GREAN'; it has GREEN"):
        kinds["next_colour"]("GREAN")


def test_structs_by_value(kinds: LoadedLibrary) -> None:
    point = kinds.types.point(x=3, y=-4)
    assert kinds["swapped"](point) == kinds.types.point(x=-4, y=3)
    assert kinds["flags_sum"](kinds.types.flags(a=7, b=31, c=-100)) == 317


def test_structs_as_c_writes_them(kinds: LoadedLibrary) -> None:
    point = kinds.types.point
    assert point(3, -4) == point(x=3, y=-4)
    assert kinds["swapped"]((3, -4)) == kinds["swapped"]({"y": -4, "x": 3}) == point(-4, 3)
    with pytest.raises(TypeError, match="point has 2 members, x, y; got 3 values"):
        point(1, 2, 3)
    with pytest.raises(TypeError, match="point: x is given twice"):
        point(1, x=2)
    with pytest.raises(ValueError, match=r"swapped: p.*\.x: .*out of its range"):
        kinds["swapped"]((1 << 40, 0))


def test_arrays_of_structs(kinds: LoadedLibrary) -> None:
    by = kinds.types.point(x=10, y=20)
    points = np.zeros(3, kinds.types.point.dtype)
    points["x"] = [1, 2, 3]
    kinds["move"](points, 3, by)
    assert points["x"].tolist() == [11, 12, 13]
    several = [kinds.types.point(x=1), kinds.types.point(y=1)]
    kinds["move"](several, 2, by)
    assert [(item.x, item.y) for item in several] == [(11, 20), (10, 21)]
    kinds["move"](several, 2, (1, -1))
    kinds["move"](several, 1, {"x": 5})
    assert [(item.x, item.y) for item in several] == [(17, 19), (11, 20)]
    with pytest.raises(GuardError, match=r"move wrote to points\[1\]: a tuple can't change"):
        kinds["move"]([*several[:1], (1, 2)], 2, by)
    with pytest.raises(TypeError, match=r"points\[0\]: expected struct point, got a list: make one with"):
        kinds["move"]([[1, 2]], 1, by)


def test_pointers_in_structs_are_followed_and_remembered(kinds: LoadedLibrary) -> None:
    """The state's address on the device differs from call to call: the struct keeps the array itself."""
    coefficients, state = i16([1, 10, 100]), i16([9, 9, 9])
    made = kinds.types.filter()
    kinds["filter_init"](made, 3, coefficients, state)
    assert made.state is state
    assert made.coefficients is coefficients
    assert [kinds["filter_step"](made, sample) for sample in (1, 2, 3)] == [1, 12, 123]
    assert (made.steps, state.tolist()) == (3, [3, 2, 1])


def test_a_struct_that_points_to_itself_can_be_shown(load: Load, tmp_path: Path) -> None:
    (tmp_path / "ring.c").write_text(
        "struct ring { int v; struct ring *next; };\nint value(struct ring *r) { return r->next->v; }\n"
    )
    library = load(tmp_path / "ring.c")
    ring = library.types.ring(v=1)
    ring.next = ring
    assert repr(ring) == "ring(v=1, next=...)"
    assert library["value"](ring) == 1


def test_a_list_of_structs_is_followed_to_its_end(kinds: LoadedLibrary) -> None:
    node = kinds.types.node
    assert kinds["depth"](node(weight=1, next=node(weight=20, next=node(weight=300)))) == 321
    assert kinds["depth"](None) == 0


def test_functions_as_arguments(kinds: LoadedLibrary) -> None:
    values = i32([3, 1, 2])
    kinds["sort"](values, 3, kinds["ascending"])
    assert values.tolist() == [1, 2, 3]
    kinds["sort"](values, 3, kinds["descending"])
    assert values.tolist() == [3, 2, 1]
    with pytest.raises(
        TypeError, match=r"sort: compare: expected compare_t, got (_?[bB]ool) both\(\1 a, \1 b\)"
    ):
        kinds["sort"](values, 3, kinds["both"])


def test_text_and_untyped_memory(kinds: LoadedLibrary) -> None:
    assert kinds["length"]("größer") == 8
    assert kinds["length"](b"abc") == 3
    held = bytearray(4)
    kinds["fill"](held, 7, 4)
    assert held == b"\7\7\7\7"
    numbers = np.zeros(2, np.float64)
    kinds["fill"](numbers, 0xFF, 8)
    assert np.isnan(numbers[0])
    assert numbers[1] == 0.0


def test_pointers_to_pointers(kinds: LoadedLibrary) -> None:
    assert kinds["total"]([i32([1, 2]), None, i32([30, 40])], 3, 2) == 73


def test_results_that_are_pointers(kinds: LoadedLibrary) -> None:
    assert kinds["place"](-1) is None
    second = kinds["place"](1)
    assert isinstance(second, Address)
    assert second == kinds.variables["table"].address + 4
    values = i32([1])
    assert kinds["total"]([second, values], 2, 1) == 3


def test_text_behind_a_pointer_that_came_back(load: Load, tmp_path: Path) -> None:
    (tmp_path / "version.c").write_text('const char *version(void) { return "2.1"; }\n')
    made = load(tmp_path / "version.c")
    assert bytes(made.read(made["version"](), 16)).partition(b"\0")[0].decode() == "2.1"


def test_variables(kinds: LoadedLibrary) -> None:
    before = kinds.variables.calls
    kinds["scale"](None, None, 0, 1)
    assert kinds.variables.calls == before + 1
    kinds.variables.calls = -5
    kinds["scale"](None, None, 0, 1)
    assert kinds.variables.calls == -4
    kinds.variables.table = i32([4, 3, 2, 1])
    assert kinds.variables.table.tolist() == [4, 3, 2, 1]
    kinds["sort"](kinds.variables["table"], 4, kinds["ascending"])
    assert kinds.variables.table.tolist() == [1, 2, 3, 4]
    assert kinds.variables.origin == kinds.types.point(x=1, y=-2)
    with pytest.raises(TypeError, match=r"fixed.* can't be written"):
        kinds.variables.fixed = [1, 2]
    with pytest.raises(AttributeError, match="has no variable 'tabel'; it has table"):
        _ = kinds.variables.tabel


def test_memory_is_zeroed_and_constructors_have_run(load: Load) -> None:
    """A second call uses the memory of the call before."""
    for _ in range(2):
        with load("c/kinds.c", linked=False) as kinds:
            assert kinds["was_started"]() == 42


def test_zeroed_variables_of_several_small_files_are_zero(load: Load, tmp_path: Path) -> None:
    """The files are small, and have together more than an image is filled up with."""
    sources = [tmp_path / f"held_{name}.c" for name in "abc"]
    for source in sources:
        name = source.stem
        source.write_text(
            f"static int {name}[80];\n"
            f"int next_{name}(void)\n{{\n\tint sum = 0;\n\n"
            f"\tfor (int i = 0; i < 80; i++) {{\n\t\tsum += ++{name}[i];\n\t}}\n\treturn sum;\n}}\n"
        )
    for _ in range(2):  # The second library is in the memory of the first one.
        with load(*sources, linked=False) as library:
            assert [library[f"next_{source.stem}"]() for source in sources] == [80, 80, 80]


@pytest.mark.parametrize(
    ("n", "before", "behind", "text"),
    [
        (5, 0, 1, r"overrun wrote 2 bytes behind y \(int16\[5\]\)"),
        (5, 1, 0, r"overrun wrote 2 bytes before y \(int16\[5\]\)"),
        (4, 0, 3, r"overrun wrote 6 bytes behind y \(int16\[4\]\)"),
    ],
)
def test_writing_outside_of_an_array_is_found(
    kinds: LoadedLibrary, n: int, before: int, behind: int, text: str
) -> None:
    y = np.zeros(n, np.int16)
    with pytest.raises(GuardError, match=text):
        kinds["overrun"](y, n, before, behind)
    assert not y.any()
    kinds["overrun"](y, n, 0, 0)
    assert y.all()


def test_writing_far_behind_an_array_is_found(kinds: LoadedLibrary, device: Device) -> None:
    """A write is found within the guard, which is larger if more bytes cost nothing."""
    if not device.rpc.facts.direct.usable:
        pytest.skip("the guards are of 8 bytes over a link")
    y = np.zeros(64, np.int8)
    with pytest.raises(GuardError, match=r"poke wrote 1 byte 40 bytes behind y \(int8\[64\]\)"):
        kinds["poke"](y, 64 + 40)


def test_calls_can_be_timed(kinds: LoadedLibrary) -> None:
    x, y = np.zeros(64, np.int16), np.zeros(64, np.int16)
    few, many = (kinds.measure("scale", number=5, repeat=3)(x, y, n, 2) for n in (1, 64))
    assert few.samples[0].number == 5
    assert kinds.time_evaluator("scale", number=5, repeat=2)(x, y, 64, 2).min > 0
    if few.clock.mode == "exact":
        assert min(sample.ticks for sample in many.samples) > max(sample.ticks for sample in few.samples)


@pytest.mark.parametrize(
    ("name", "arguments", "error", "text"),
    [
        ("scale", (1, 2), TypeError, r"scale: expected 4 arguments, got 2: void scale\(const int16_t \*x"),
        ("scale", (i32([1]), None, 1, 1), TypeError, r"scale: x: expected int16 .*, got int32\[1\]"),
        ("scale", (np.zeros((4, 4), np.int16)[:, 1], None, 1, 1), TypeError, "scale: x: .* not C-contiguous"),
        (
            "scale",
            (None, [1, 2], 1, 1),
            TypeError,
            r"scale: y: expected int16_t \*, got a list: pass a numpy",
        ),
        ("scale", (None, None, 1, 40000), ValueError, "scale: factor: .* -32768 to 32767, got 40000"),
        ("scale", (None, None, -1, 1), ValueError, "scale: n: expected size_t, 0 to .* got -1"),
        ("scale", (None, None, 1, 1.5), TypeError, r"scale: factor: expected int16_t, got 1.5 \(float\)"),
        ("mean", (np.zeros(2), 2), TypeError, r"mean: x: expected float32 .* got float64\[2\]"),
        (
            "scale",
            (np.zeros(1, ">i2"), None, 1, 1),
            TypeError,
            r"expected int16 .*, got big-endian int16\[1\]",
        ),
        ("sum_of", (1,), TypeError, "sum_of can't be called: it is variadic"),
        ("look", (np.zeros(1, np.uint8),), TypeError, "look: h: .* incomplete struct"),
        ("swapped", (3,), TypeError, r"swapped: p: expected struct point, got 3 \(int\)"),
    ],
)
def test_wrong_arguments_are_refused_before_a_byte_is_sent(
    kinds: LoadedLibrary, name: str, arguments: tuple[object, ...], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        kinds[name](*arguments)
    assert kinds["product"](6, 7) == 42


def test_names(kinds: LoadedLibrary) -> None:
    assert kinds["scale"].__doc__ == "void scale(const int16_t *x, int16_t *y, size_t n, int16_t factor)"
    assert {"scale", "sort"} < set(kinds)
    with pytest.raises(KeyError, match=r"has no function 'scael' .*did you mean scale"):
        _ = kinds["scael"]
    with pytest.raises(KeyError, match=r"has no function 'zz' .*it has ascending, .*, …"):
        _ = kinds["zz"]
    for time in (kinds.measure, kinds.time_evaluator):
        with pytest.raises(AttributeError, match=r"has no function 'zz' .*it has ascending, .*, …$"):
            time("zz")
    with pytest.raises(TypeError, match=r"product: parameters are given by position.* as b: int64_t product"):
        kinds["product"](1, b=2)


def test_what_was_unloaded_says_so(load: Load, device: Device) -> None:
    before = device.info().arena_used
    with load("c/kinds.c", linked=False) as kinds:
        assert kinds["product"](2, 3) == 6
    with pytest.raises(ValueError, match="has been freed"):
        kinds["product"](2, 3)
    assert device.info().arena_used == before


def test_variables_and_addresses_of_what_was_unloaded(
    load: Load, kinds: LoadedLibrary, tmp_path: Path
) -> None:
    (tmp_path / "gone.c").write_text(
        "int count;\nint up(void) { return ++count; }\n"
        "int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }\n"
    )
    gone = load(tmp_path / "gone.c")
    gone.variables.count = 4
    assert gone["up"]() == 5
    gone.unload()
    with pytest.raises(ValueError, match="has been freed"):
        _ = gone.variables.count
    with pytest.raises(ValueError, match="has been freed"):
        gone.variables.count = 1
    with pytest.raises(ValueError, match="has been freed"):
        kinds["sort"](np.array([2, 1], np.int32), 2, gone["order"])


def test_a_function_of_another_device(kinds: LoadedLibrary, running_device: RunningDevice) -> None:
    if running_device.firmware is None:
        pytest.skip("the firmware is not known")
    with open_device(running_device.firmware) as device:
        other = device.load(Path(__file__).with_name("c") / "kinds.c")
        with pytest.raises(ValueError, match=", not on "):
            kinds["sort"](np.array([2, 1], np.int32), 2, other.ascending)


def test_arrays_of_rows_that_are_only_written(load: Load, tmp_path: Path) -> None:
    (tmp_path / "rows.c").write_text(
        "#include <stdint.h>\n"
        "void count(int16_t a[2][3]) { for (int i = 0; i < 6; i++) { a[i / 3][i % 3] = i; } }\n"
    )
    made = load(tmp_path / "rows.c")
    for shape in (2, (2, 3)):
        assert made["count"](out(shape)).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_an_array_that_a_parameter_sizes(load: Load, tmp_path: Path) -> None:
    (tmp_path / "sized.c").write_text(
        "const short table[2][2] = {{1, 2}, {3, 4}};\n"
        "int at(int i) { return table[i][i]; }\n"
        "void fill(int rows, int columns, double a[rows][columns])\n"
        "{\n\tfor (int i = 0; i < rows; i++)\n\t\tfor (int j = 0; j < columns; j++)\n"
        "\t\t\ta[i][j] = 10 * i + j;\n}\n"
    )
    library = load(tmp_path / "sized.c")
    assert library["fill"].prototype == "void fill(int rows, int columns, double (*a)[])"
    values = np.zeros((2, 3))
    library["fill"](2, 3, values)
    assert values.tolist() == [[0, 1, 2], [10, 11, 12]]
    assert library["fill"](2, 3, out((2, 3))).tolist() == values.tolist()
    with pytest.raises(TypeError, match=r"a: expected float64\[\.\.,\.\.\]"):
        library["fill"](2, 3, values.astype(np.float32))
    assert "variables of sized.c: const short int table[2][2]>" in repr(library.variables)


@pytest.mark.once
def test_loads_leave_nothing_behind(load: Load, device: Device) -> None:
    base = None
    for round_ in range(6):
        made = load("c/kinds.c", defines={"ROUND": round_ % 2})
        base = base or made.image.base
        assert made.image.base == base
        del made
        gc.collect()


@pytest.mark.once
def test_the_last_reference_frees_a_library_without_garbage_collection(load: Load, tmp_path: Path) -> None:
    (tmp_path / "n.c").write_text("int n = 7;\nint number(void) { return n; }\n")
    gc.disable()
    try:
        made = load(tmp_path / "n.c")
        number = made["number"]
        assert (number(), made.variables.n) == (7, 7)
        library, module = weakref.ref(made), weakref.ref(made.module)
        del made
        assert library() is None
        assert number() == 7, "a function keeps its code"
        del number
        assert module() is None
    finally:
        gc.enable()


def test_two_libraries_at_a_time(load: Load, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.c").write_text(f"int number(void) {{ return '{name}'; }}\n")
    item, other = load(tmp_path / "a.c"), load(tmp_path / "b.c")
    assert (item["number"](), other["number"]()) == (ord("a"), ord("b"))


def test_a_compilers_error_has_the_files_own_line(load: Load, tmp_path: Path) -> None:
    (tmp_path / "bad.c").write_text("int ok(void) { return 1; }\nint bad(void) { return missing; }\n")
    with pytest.raises(CompileError, match=r"bad.c:2:24: error: .*missing") as caught:
        load(tmp_path / "bad.c")
    assert "int bad(void) { return missing; }" in str(caught.value)


def test_symbols_that_are_nowhere(load: Load, tmp_path: Path, kinds: LoadedLibrary) -> None:
    (tmp_path / "half.c").write_text("int elsewhere(int);\nint half(void) { return elsewhere(1); }\n")
    with pytest.raises(UndefinedSymbolsError, match=r"half.c needs elsewhere, which neither"):
        load(tmp_path / "half.c")
    assert kinds["product"](2, 2) == 4


@pytest.mark.once
def test_functions_that_need_nothing_that_is_nowhere_are_loaded(load: Load, tmp_path: Path) -> None:
    (tmp_path / "part.c").write_text(
        "int elsewhere(int);\nstatic int deep(int n) { return elsewhere(n); }\n"
        "int (*table[])(int) = {deep};\nint kept = 7;\nint direct(int n) { return deep(n) + 1; }\n"
        "int by_table(int n) { return table[0](n); }\nint fine(int n) { return n + kept; }\n"
    )
    lib = load(tmp_path / "part.c")
    assert lib["fine"](1) == 8
    for name in ("direct", "by_table"):
        with pytest.raises(TypeError, match=f"^{name} can't be called: it needs elsewhere, which neither"):
            lib[name](1)
        with pytest.raises(TypeError, match=f"^{name} can't be called: it needs elsewhere, which neither"):
            lib.measure(name)


def test_what_does_not_link(load: Load, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.c").write_text("int twice(void) { return 1; }\n")
    with pytest.raises(LinkerError, match=r"a.c does not link\n *twice is defined at"):
        load(tmp_path / "a.c", tmp_path / "b.c")


def test_a_device_whose_firmware_is_not_known(running_device: RunningDevice) -> None:
    with pytest.raises(LoadError, match="the running firmware of") as caught:
        Device(running_device.transport, keep_link=True).load(Path(__file__).parent / "c/kinds.c")
    assert "firmware=" in caught.value.next_step


@pytest.mark.once
def test_another_build_than_the_one_that_runs(
    device: Device, firmware: Firmware | None, tmp_path: Path
) -> None:
    if firmware is None or not device.info().build_id:
        pytest.skip("the device does not know its build")
    other = replace(firmware, elf=of_another_build(firmware.elf, tmp_path / "other.elf"))
    source = tmp_path / "product.c"
    source.write_text("int product(int a, int b) { return a * b; }\n")
    for load in (device.load, device.load_tvm):
        with pytest.raises(LoadError, match=r"runs build [0-9a-f]{16}, .* is build [0-9a-f]{16}"):
            load(source, firmware=other)
    assert device.load(source, firmware=firmware).product(2, 3) == 6


def test_code_that_is_too_large(load: Load, tmp_path: Path, kinds: LoadedLibrary) -> None:
    (tmp_path / "large.c").write_text("static char large[1 << 29];\nchar *at(int n) { return &large[n]; }\n")
    with pytest.raises(HarnessError, match=r"536\d+ bytes") as caught:
        load(tmp_path / "large.c")
    assert "large.c" in str(caught.value)
    assert kinds["product"](2, 2) == 4


def test_firmware_and_compiler_functions_can_be_called(load: Load, tmp_path: Path) -> None:
    """strlen comes from the C library; on 32-bit processors 64-bit division comes from the compiler's
    library."""
    (tmp_path / "uses.c").write_text(
        "#include <stdint.h>\n#include <string.h>\n"
        "uint64_t uses(const char *text, uint64_t a) { return a / strlen(text); }\n"
    )
    assert load(tmp_path / "uses.c")["uses"]("abcd", 4 << 40) == 1 << 40


@pytest.mark.parametrize("flags", [["-O0"], ["-O2"], ["-O3", "-funroll-loops"]], ids=" ".join)
def test_flags(load: Load, flags: list[str]) -> None:
    y = load("c/kinds.c", flags=flags)["scale"](np.arange(5, dtype=np.int16), out(5), 5, 3)
    assert y.tolist() == [0, 3, 6, 9, 12]


# Names that Python's objects have, and names in the generated C that calls the functions.
NAMES = (
    *(
        "read",
        "write",
        "run",
        "measure",
        "name",
        "types",
        "variables",
        "unload",
        "fakes",
        "module",
        "functions",
    ),
    *("names", "start", "copy", "pointer", "enter", "leave", "t0", "fits", "refused", "copied", "packed"),
)


@pytest.mark.once
def test_names_of_c_win(load: Load, device: Device, tmp_path: Path) -> None:
    """Each attribute is a C function; an attribute of an earlier version names its new spelling."""
    del load  # The fixture skips devices that can't load code.
    source = tmp_path / "names.c"
    lines = [f"int {name}(int n) {{ return n + {i}; }}\n" for i, name in enumerate(NAMES)]
    source.write_text("int count = 7;\n" + "".join(lines))
    with device.load(source) as lib:
        assert [getattr(lib, name)(1) for name in NAMES] == list(range(1, 1 + len(NAMES)))
        assert set(dir(lib)) == set(lib) == set(NAMES)
        assert minrpc.variables(lib).count == 7
        assert minrpc.read(lib, minrpc.variables(lib)["count"].address, 4) == bytes([7, 0, 0, 0])
        assert minrpc.read(lib, minrpc.variables(lib)["count"], 1) == b"\7"  # type: ignore[arg-type]
        assert minrpc.measure(lib, "measure", number=1)(1).summary.median > 0
        with pytest.raises(AttributeError, match=r"is now minrpc\.time_evaluator\(lib, NAME\)"):
            _ = lib.time_evaluator
        with pytest.raises(AttributeError, match=r"is now minrpc\.library_of\(lib\)\.symbols"):
            _ = lib.symbols
        with pytest.raises(AttributeError, match="has no function 'nam'"):
            _ = lib.nam
        run = lib.run
        beyond = minrpc.Address(1 << 8 * minrpc.library_of(lib).facts.pointer_size)
        for given, error, text in (
            (lambda: minrpc.read(lib, beyond, 4), ValueError, "an address of the device has"),
            (lambda: minrpc.read(lib, 0x1000, 1.5), TypeError, "a size is a number of bytes, not 1.5"),  # type: ignore[arg-type]
            (lambda: minrpc.read(lib, "x", 4), TypeError, "an address is a whole number"),  # type: ignore[arg-type]
            (lambda: minrpc.write(lib, beyond, b"1"), ValueError, "an address of the device has"),
            (lambda: minrpc.write(lib, 0x1000, "x"), TypeError, "write takes bytes or an array"),  # type: ignore[arg-type]
            (lambda: minrpc.read(device, 0x1000, 4), TypeError, "a library is expected"),  # type: ignore[arg-type]
        ):
            with pytest.raises(error, match=text):
                given()
    with pytest.raises(ValueError, match="freed"):
        run(1)
