# SPDX-License-Identifier: Apache-2.0
"""Functions, code and the timed window in ELF files of the host's compiler."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from minrpc.counters import Counts, Image
from minrpc.counters.image import LoadedCode

SOURCE = """
static volatile int sink;
__attribute__((noinline)) void minrpc_timer_start(void) { sink++; }
__attribute__((noinline)) void minrpc_timer_stop(void) { sink--; }
__attribute__((noinline)) void work(void) { sink += 2; }
int main(void)
{
    minrpc_timer_start();
    work();
    minrpc_timer_stop();
    return sink;
}
"""


def program(directory: Path, *flags: str, compiler: str = "cc") -> Path:
    source, made = directory / "program.c", directory / "program"
    source.write_text(SOURCE)
    subprocess.run([compiler, "-O2", "-no-pie", *flags, str(source), "-o", str(made)], check=True)
    return made


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image(program(tmp_path, "-g"))


def named(image: Image, name: str) -> int:
    (start,) = (function.start for function in image.functions if function.name == name)
    return start


def test_functions_do_not_overlap(image: Image) -> None:
    assert {"main", "work", "minrpc_timer_start", "minrpc_timer_stop"} <= {
        function.name for function in image.functions
    }
    for function, following in zip(image.functions, image.functions[1:], strict=False):
        assert function.start < function.end <= following.start


def test_each_address_has_its_function(image: Image) -> None:
    for function in image.functions:
        assert image.function_at(function.start) == image.function_at(function.end - 1) == function
    assert image.function_at(image.functions[0].start - 1) is None
    assert image.function_at(image.functions[-1].end) is None


def test_code_holds_the_functions(image: Image) -> None:
    start = named(image, "main")
    assert any(code.base <= start < code.base + code.size for code in image.code)


def test_the_window_is_found_in_older_debug_information(tmp_path: Path) -> None:
    image = Image(program(tmp_path, "-gdwarf-4"))
    assert image.window == Image(program(tmp_path, "-gdwarf-5")).window
    assert image.window.opens != (named(image, "minrpc_timer_start"),)


def test_the_window_opens_where_the_timers_start_returns(image: Image) -> None:
    (opens,), (closes,) = image.window.opens, image.window.closes
    main = image.function_at(named(image, "main"))
    assert main is not None
    assert main.start < opens < main.end
    assert closes == named(image, "minrpc_timer_stop")


def test_without_debug_information_the_window_holds_the_timers_start(tmp_path: Path) -> None:
    image = Image(program(tmp_path))
    assert image.window.opens == (named(image, "minrpc_timer_start"),)


def test_counts_by_function_add_up(image: Image) -> None:
    work, main = named(image, "work"), named(image, "main")
    counts = Counts({work: 3, work + 1: 4, main: 5, image.functions[-1].end: 2}, elsewhere=1)
    assert counts.by_function(image) == {"work": 7, "main": 5, "?": 3}
    assert counts.total == 15


def test_counts_since(image: Image) -> None:
    before, after = Counts({1: 2, 3: 4}, 5), Counts({1: 2, 3: 9, 7: 1}, 6)
    assert after - before == Counts({3: 5, 7: 1}, 1)


STATIC = "__attribute__((noinline)) static int twice(volatile int *x) { return *x * 2; }\n"


@pytest.mark.parametrize(
    ("files", "flags", "expected"),
    [
        (["a.c", "b.c"], ["-g"], {"twice (a.c)", "twice (b.c)"}),
        (["a/x.c", "b/x.c"], ["-g"], {"twice (a/x.c)", "twice (b/x.c)"}),
        (["a.c", "b.c"], [], {"twice (0x"}),
        (["a.c"], ["-g"], {"twice"}),
    ],
)
def test_static_functions_of_a_name_have_rows_of_their_own(
    tmp_path: Path, files: list[str], flags: list[str], expected: set[str]
) -> None:
    calls = "".join(f"int f{index}(volatile int *x);\n" for index in range(len(files)))
    uses = " + ".join(f"f{index}(&x)" for index in range(len(files)))
    (tmp_path / "main.c").write_text(f"{calls}int main(void) {{ volatile int x = 1; return {uses}; }}\n")
    for index, name in enumerate(files):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{STATIC}int f{index}(volatile int *x) {{ return twice(x); }}\n")
    command = ["cc", "-O1", "-no-pie", *flags, "main.c", *files, "-o", "made"]
    subprocess.run(command, check=True, cwd=tmp_path)
    made = Image(tmp_path / "made")
    twice = [function for function in made.functions if function.name == "twice"]
    counts = Counts({function.start: 3 for function in twice}).by_function(made)
    assert list(counts.values()) == [3] * len(files)
    assert {re.sub(r"0x.*", "0x", name.replace(f"{tmp_path}/", "")) for name in counts} == expected


def test_static_functions_of_a_name_in_loaded_code_have_rows_of_their_own(tmp_path: Path) -> None:
    """A linker script's symbol at the first function's address is not its name."""
    for index, name in enumerate(("a.c", "b.c")):
        (tmp_path / name).write_text(f"{STATIC}int f{index}(volatile int *x) {{ return twice(x); }}\n")
    (tmp_path / "first.s").write_text(".text\n.globl first\nfirst:\n")
    command = ["cc", "-O1", "-g", "-shared", "-nostdlib", "first.s", "a.c", "b.c", "-o", "made"]
    subprocess.run(command, check=True, cwd=tmp_path)
    code = LoadedCode(0, 1 << 20, "both", (tmp_path / "made").read_bytes())
    names = [function.name for function in code.functions]
    assert sorted(names) == ["(both)", "f0", "f1", "twice (a.c)", "twice (b.c)"]
    (nameless,) = [function for function in code.functions if function.name == "(both)"]
    assert code.function_at(0) is nameless
    assert code.function_at(1 << 20) is None


def test_a_function_of_the_firmware_that_loaded_code_has_too_has_a_row_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(STATIC + "int main(void) { volatile int x = 1; return twice(&x); }\n")
    subprocess.run(["cc", "-O1", "-g", "-no-pie", "a.c", "-o", "made"], check=True, cwd=tmp_path)
    made = Image(tmp_path / "made")
    (own,) = (function for function in made.functions if function.name == "twice")
    assert made.name_of(own) == "twice"
    subprocess.run(["cc", "-O1", "-g", "-c", "a.c", "-o", "a.o"], check=True, cwd=tmp_path)
    code = LoadedCode(1 << 40, 1 << 20, "a", (tmp_path / "a.o").read_bytes())
    made.loaded.append(code)
    (loaded,) = (function for function in code.functions if function.name == "twice")
    assert (made.name_of(own), made.name_of(loaded)) == ("twice (firmware)", "twice")


def test_a_public_function_keeps_its_name_beside_a_static_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(STATIC + "int f(volatile int *x) { return twice(x); }\n")
    (tmp_path / "b.c").write_text(
        "int f(volatile int *x);\n"
        "__attribute__((noinline)) int twice(volatile int *x) { return *x * 3; }\n"
        "int main(void) { volatile int x = 1; return twice(&x) + f(&x); }\n"
    )
    subprocess.run(["cc", "-O1", "-g", "-no-pie", "a.c", "b.c", "-o", "made"], check=True, cwd=tmp_path)
    made = Image(tmp_path / "made")
    names = {made.name_of(function) for function in made.functions if function.name == "twice"}
    assert names == {"twice", "twice (a.c)"}
