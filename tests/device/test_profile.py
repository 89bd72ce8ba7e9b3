# SPDX-License-Identifier: Apache-2.0
"""The profile of a call on the device: exact, and the same each time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import pytest
from minrpc import (
    Device,
    Firmware,
    HarnessError,
    Profile,
    connect,
    counters_for,
    library_of,
    profile_call,
    start,
)
from minrpc.counters import Counts
from minrpc.counters.image import Image
from minrpc.counters.packed_code import packed_function_code
from minrpc.counters.profile import CALLING, INTERRUPTS, Unit
from minrpc.counters.qemu_counters import QemuCounters
from minrpc.cycles import Core, load_core

ROUNDS = 1000


@contextmanager
def loading(image: Firmware, core: Core | None = None) -> Iterator[tuple[Device, QemuCounters]]:
    """A device with the counters of a profile, which takes code."""
    with (
        counters_for(image.elf, flow=True, core=core) as counters,
        start(image, counters=counters) as running,
        connect(running) as device,
    ):
        if "code_loading" not in device.info().options:
            pytest.skip("its firmware takes no code")
        yield device, counters


def spin_profile(image: Firmware) -> Profile:
    with (
        counters_for(image.elf, flow=True) as counters,
        start(image, counters=counters) as running,
        connect(running) as device,
    ):
        lib = device.system_lib()
        return profile_call(lib, counters, "spin", [ROUNDS])


def test_sums_are_equal_whoever_is_asked(image: Firmware) -> None:
    profile = spin_profile(image)
    assert profile.functions[0].own > max(ROUNDS, 0.9 * profile.total)
    assert isinstance(profile.counts, Counts)
    by_function = profile.counts.by_function(profile.image)
    assert sum(by_function.values()) == profile.tree.total == profile.total
    for row in profile.tree.rows():
        assert by_function.get(row.name) == row.own or row.own == 0


def test_the_code_of_a_packed_function_is_found_by_its_name(image: Firmware) -> None:
    """The device's own table gives the code; an unknown name has no code."""
    program = Image(image.elf)
    found = {name: packed_function_code(program, name) for name in ("add", "exp", "myexpf", "inc", "nobody")}
    assert found["nobody"] is None
    assert found["exp"] == found["myexpf"]
    sizes = {name: item.end - item.start for name, item in found.items() if item is not None}
    assert 4 <= sizes["inc"] < sizes["exp"]
    assert sizes["add"] >= 4


LOADED = """
__attribute__((noinline)) static int helper(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++) {
		sum += i * n;
	}
	return sum;
}

int outer(int n) { return helper(n) + helper(n + 1); }
"""


NAMES = """
int labelled(int n) __asm__("other_name");
int labelled(int n) { return helper(n) + helper(n + 1); }
int alias(int n) __attribute__((alias("outer")));
int inc(int n) { return helper(n); }
"""

WAYS = """
int left(int depth);
__attribute__((noinline, noclone)) int right(int depth)
{
	return depth == 0 ? 1 : left(depth - 1) + right(depth - 1);
}
__attribute__((noinline, noclone)) int left(int depth)
{
	return depth == 0 ? 2 : left(depth - 1) + right(depth - 1);
}
"""


def test_loaded_code_is_known_by_its_names(image: Firmware, tmp_path: Path) -> None:
    (tmp_path / "loaded.c").write_text(LOADED)
    with loading(image) as (device, counters):
        lib = library_of(device.load(tmp_path / "loaded.c", flags=["-O1"]))
        profile = profile_call(lib, counters, "outer", [50])
        compiler, sizes = lib.compiled.compiler, lib.own_sizes
        lib.unload()
        # The code is loaded again at the same place, under other names.
        (tmp_path / "again.c").write_text(LOADED.replace("helper", "other").replace("outer", "inner"))
        other = library_of(device.load(tmp_path / "again.c", flags=["-O1"]))
        again = profile_call(other, counters, "inner", [50])
    calls = {row.name: row.calls for row in profile.functions}
    assert (calls["outer"], calls["helper"]) == (1, 2)
    own = {row.name: row.own for row in again.functions}
    assert own["other"] == next(row.own for row in profile.functions if row.name == "helper")
    assert "helper" not in own
    # The called functions are the user's only, and nothing is lost.
    called = {row.name: row.own for row in profile.called.rows()}
    assert called.keys() == {"outer", "helper", CALLING}
    assert sum(called.values()) == profile.total
    assert sizes.keys() == {"outer", "helper"}
    # The option follows the firmware's own -Os or -O2, which does not count.
    assert [flag for flag in compiler.flags.split() if flag.startswith("-O")] == ["-O1"]
    # Each code has its own lines, although the second lies where the first lay.
    body = LOADED[: LOADED.index("sum +=")].count("\n") + 1
    for shown, file in ((profile, "loaded.c"), (again, "again.c")):
        files = {Path(line.file).name for line in shown.lines if line}
        assert files >= {file}
        assert not files & ({"loaded.c", "again.c"} - {file})
        most = max((line for line in shown.lines if line), key=lambda line: shown.lines[line])
        assert body - 1 <= most.number <= body


def test_functions_of_one_name_in_two_files_have_their_lines(image: Firmware, tmp_path: Path) -> None:
    """A profile sums what ran at an address, also after other code was at it."""
    helper = "__attribute__((noinline)) static int helper(volatile int n)\n{\n\treturn n %s 3;\n}\n\n"
    (tmp_path / "one.c").write_text(helper % "+" + "int one(int n) { return helper(n) + 1; }\n")
    (tmp_path / "two.c").write_text(
        "int one(int n);\n" + helper % "-" + "int two(int n) { return one(n) * helper(n); }\n"
    )
    (tmp_path / "other.c").write_text(LOADED)
    with loading(image) as (device, counters):
        profiles = []
        for sources, name in (
            (["one.c", "two.c"], "two"),
            (["other.c"], "outer"),
            (["one.c", "two.c"], "two"),
        ):
            library = library_of(device.load([tmp_path / source for source in sources]))
            profiles.append(profile_call(library, counters, name, [5]))
            library.unload()
    for profile in profiles[::2]:
        assert sum(profile.called_lines.values()) == profile.inclusive
        lines = {(Path(line.file).name, line.number) for line in profile.called_lines if line}
        assert {("one.c", 3), ("two.c", 4)} <= lines
        assert {"helper (one.c)", "helper (two.c)"} <= {row.name for row in profile.functions}
        assert profile.skipped_lines == {}
    assert profiles[0].called_lines == profiles[2].called_lines


def test_a_function_that_has_other_names_in_its_file_has_its_figure(image: Firmware, tmp_path: Path) -> None:
    """The packed function's name, an alias and an assembler's label are not the name in the tree."""
    (tmp_path / "names.c").write_text(LOADED + NAMES)
    given = {"labelled": [50], "outer": [50], "inc": [50]}
    with loading(image) as (device, counters):
        own = device.system_lib()
        alone = profile_call(own, counters, "inc", [50]).inclusive
        lib = library_of(device.load(tmp_path / "names.c", flags=["-O1"]))
        profiles = {name: profile_call(lib, counters, name, given[name]) for name in given}
        timed = {
            name: lib.measure(name, number=1, repeat=3, counters=["instructions"])(*given[name])
            for name in given
        }
        # The firmware's function has the name of a loaded one.
        firmwares = profile_call(own, counters, "inc", [50])
        measured = own.measure("inc", number=1, repeat=3, counters=["instructions"])(50)
    for name, profile in profiles.items():
        assert timed[name].inclusive == {"instructions": profile.inclusive}
        assert profile.inclusive < profile.total
    assert profiles["labelled"].inclusive == profiles["outer"].inclusive
    assert firmwares.function == "inc (firmware)"
    assert firmwares.inclusive == alone == measured.inclusive["instructions"]


def test_recursion_that_is_too_deep_for_the_tree_is_told(image: Firmware, tmp_path: Path) -> None:
    """More ways from the call to its functions than the tree has room for."""
    (tmp_path / "ways.c").write_text(WAYS)
    with loading(image) as (device, counters):
        lib = library_of(device.load(tmp_path / "ways.c", flags=["-O1"]))
        profile = profile_call(lib, counters, "left", [12])
        calls = {row.name: row.calls for row in profile.called.rows()}
        assert calls["left"] + calls["right"] == 2**13 - 1
        with pytest.raises(HarnessError, match="no room for the call tree"):
            profile_call(lib, counters, "left", [17])
        # Counts without a tree are whole.
        measured = lib.measure("left", number=1, repeat=1, counters=["instructions"])(12)
    assert measured.inclusive == {}
    assert measured.counters["instructions"][0] > 2**13


def test_recursion_of_many_ways_has_cycles(image: Firmware, tmp_path: Path) -> None:
    """Each way has its own edges between blocks of code: they are found among tens of thousands."""
    core = image.target.platform.core
    if not core:
        pytest.skip("no core with a table stands for this platform")
    ways = "".join(
        f"__attribute__((noinline, noclone)) int {name}(int n)\n"
        f"{{\n\treturn n == 0 ? {number} : a(n - 1) + b(n - 1) + c(n - 1);\n}}\n"
        for number, name in enumerate("abc")
    )
    (tmp_path / "three.c").write_text("int a(int);\nint b(int);\nint c(int);\n" + ways)
    with loading(image, load_core(core)) as (device, counters):
        lib = library_of(device.load(tmp_path / "three.c", flags=["-O1"]))
        few, many = (profile_call(lib, counters, "a", [n], "cycles") for n in (3, 9))
    calls = {row.name: row.calls for row in many.called.rows()}
    assert sum(calls[name] for name in "abc") == (3**10 - 1) / 2
    # Each inner call costs the same, and each outer one.
    assert many.inclusive / few.inclusive == pytest.approx((3**10 - 1) / (3**4 - 1), rel=0.05)


STORM = Path(__file__).parent / "c" / "storm.c"
NAMED_LIKE_INTERRUPTS = ("trapezoid", "misread_count", "exchange_all")


@pytest.mark.parametrize("unit", get_args(Unit))
def test_interrupts_are_what_an_exception_entered_whatever_functions_are_called(
    image: Firmware, unit: Unit
) -> None:
    """Interrupts at all places of calls, returns and tables of jumps change no other function's row."""
    core = image.target.platform.core
    if unit == "cycles" and not core:
        pytest.skip("no core with a table stands for this platform")
    with loading(image, load_core(core) if core else None) as (device, counters):
        lib = library_of(device.load(STORM, flags=["-O2"]))
        quiet = profile_call(lib, counters, "storm", [500, 0], unit)
        # Elsewhere another peripheral may stand at the timer's address: on qemu_cortex_m3 a watchdog does.
        timer = counters.image.machine == "EM_RISCV" or "mps2" in image.target.name
        stormy = profile_call(lib, counters, "storm", [500, 331 if timer else 0], unit)
    calm = {row.name: (row.own, row.calls) for row in quiet.functions}
    assert all(calm[name][1] > 100 for name in NAMED_LIKE_INTERRUPTS)
    if not timer:
        return
    rows = {row.name: (row.own, row.calls) for row in stormy.functions}
    assert rows[INTERRUPTS][1] > 20
    assert {name: rows[name] for name in NAMED_LIKE_INTERRUPTS} == {
        name: calm[name] for name in NAMED_LIKE_INTERRUPTS
    }
    assert rows.keys() <= {*calm, INTERRUPTS}
    assert not stormy.called_elsewhere
