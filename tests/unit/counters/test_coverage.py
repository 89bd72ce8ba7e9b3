# SPDX-License-Identifier: Apache-2.0
"""Coverage by counts: the lines, the files, and the sum over several processes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from minrpc import ConfigurationError
from minrpc.counters import Image
from minrpc.counters.coverage import add_coverage, covered_lines, lcov, parse
from minrpc.counters.image import LoadedCode

from tests.unit.counters.test_image import image, named

__all__ = ["image"]


def test_executed_lines_and_others(image: Image) -> None:
    (lines,) = covered_lines(image, [(None, {named(image, "work"): 7})], Path).values()
    assert lines[5] == 7
    assert lines[3] == lines[4] == 0
    assert 1 not in lines


def test_sources_that_are_not_here_or_not_wanted_are_left_out(image: Image) -> None:
    assert covered_lines(image, [(None, {})], lambda name: Path(f"/nowhere/{name}")) == {}
    assert covered_lines(image, [(None, {})], lambda name: None) == {}


SHORT = """\
#include <stdint.h>

__attribute__((noinline)) int twice(int x)
{
\treturn x + x;
}

int main(int argc, char **argv)
{
\tint n = 0;

\t(void)argv;
\tfor (int i = 0; i < 3; i++) {
\t\tn += twice(i);
\t}
\tif (argc == 77) {
\t\tn = twice(n);
\t}
\treturn n == 6 ? 0 : 1;
}
"""


def executions_of_gcov(directory: Path, shown: str, *sources: str) -> dict[int, int]:
    """Executions of each line of the file `shown`, by gcov's report: another witness."""
    command = ["gcc", "-O0", "--coverage", *sources, "-o", "short"]
    subprocess.run(command, cwd=directory, check=True)
    subprocess.run(["./short"], cwd=directory, check=True)
    data = [file.name for file in directory.glob("*.gcda")]
    subprocess.run(["gcov", *data], cwd=directory, check=True, capture_output=True)
    counts: dict[int, str] = {}
    for row in (directory / f"{shown}.gcov").read_text().splitlines():
        if told := re.match(r" *([^: ]+): *(\d+):", row):
            # The executions by all files come first; GCC 16 has those by each file below.
            counts.setdefault(int(told[2]), told[1].rstrip("*"))
    return {number: int(count) for number, count in counts.items() if count.isdigit()}


def test_lines_that_share_an_address_are_all_executed(tmp_path: Path) -> None:
    """At -O2 a function of one line has its first line, its body and its brace at one address."""
    (tmp_path / "short.c").write_text(SHORT)
    expected = executions_of_gcov(tmp_path, "short.c", "short.c").keys()
    subprocess.run(["gcc", "-O2", "-g", "-no-pie", "short.c", "-o", "fast"], cwd=tmp_path, check=True)
    image = Image(tmp_path / "fast")
    twice = next(function for function in image.functions if function.name == "twice")
    (lines,) = covered_lines(image, [(None, dict.fromkeys(range(twice.start, twice.end), 3))], Path).values()
    ours = {number for number, count in lines.items() if count == 3}
    # gcov counts a function's first line at its name; the line table has it at its brace.
    body = {3, 4, 5, 6}
    assert expected & body == {3, 5}
    assert ours == {4, 5, 6}


def test_a_function_of_a_header_has_the_executions_of_all_files(tmp_path: Path) -> None:
    """Each file that includes the header has its own code of the function."""
    (tmp_path / "clamp.h").write_text(
        "static __attribute__((noinline)) int clamp(int x)\n{\n\treturn x > 3 ? 3 : x;\n}\n"
    )
    calls = '#include "clamp.h"\n\nint %s(void)\n{\n\tint n = 0;\n\n\tfor (int i = 0; i < %d; i++) {\n'
    calls += "\t\tn += clamp(i);\n\t}\n\treturn n == 1000;\n}\n"
    (tmp_path / "one.c").write_text(calls % ("one", 5))
    caller = (calls % ("main", 2)).replace("int n = 0;", "int one(void), n = one();")
    (tmp_path / "main.c").write_text(caller)
    expected = executions_of_gcov(tmp_path, "clamp.h", "main.c", "one.c")
    subprocess.run(["gcc", "-O1", "-g", "-no-pie", "main.c", "one.c", "-o", "fast"], cwd=tmp_path, check=True)
    image = Image(tmp_path / "fast")
    both = [function for function in image.functions if function.name == "clamp"]
    counts: dict[int, int | None] = {}
    for function, times in zip(both, (2, 5), strict=True):
        counts |= dict.fromkeys(range(function.start, function.end), times)
    lines = covered_lines(image, [(None, counts)], Path)[str(tmp_path / "clamp.h")]
    assert lines[3] == expected[3] == 7


def test_loaded_code_is_covered_apart_from_what_lay_there_before(tmp_path: Path) -> None:
    codes: list[tuple[LoadedCode | None, dict[int, int | None]]] = []
    for name in ("first", "second"):
        (tmp_path / f"{name}.c").write_text(f"int {name}(int x)\n{{\n\treturn x + 1;\n}}\n")
        words = ["gcc", "-O1", "-g", "-shared", "-nostdlib", f"{name}.c", "-o", name]
        subprocess.run(words, cwd=tmp_path, check=True)
        image = Image(tmp_path / name)
        (function,) = (function for function in image.functions if function.name == name)
        content = image.path.read_bytes()
        codes.append((LoadedCode(0, 1 << 20, name, content), {function.start: len(codes) + 1}))
    lines = covered_lines(image, codes, Path)
    assert lines[str(tmp_path / "first.c")][3] == 1
    assert lines[str(tmp_path / "second.c")][3] == 2


def test_a_file_is_as_lcov_has_it() -> None:
    text = lcov({"/a.c": {3: 0, 1: 5}})
    assert text == "TN:\nSF:/a.c\nDA:1,5\nDA:3,0\nLF:2\nLH:1\nend_of_record\n"
    assert parse(text) == {"/a.c": {1: 5, 3: 0}}


def test_what_several_devices_executed_adds_up(tmp_path: Path) -> None:
    file = tmp_path / "coverage.info"
    add_coverage(file, {"/a.c": {1: 5, 3: 0, 4: None, 5: None, 6: 1}})
    add_coverage(file, {"/a.c": {1: 1, 2: 2, 4: 0, 5: 3, 6: None}, "/b.c": {9: 9}})
    assert parse(file.read_text()) == {"/a.c": {1: 6, 2: 2, 3: 0, 4: None, 5: 3, 6: 1}, "/b.c": {9: 9}}


def test_a_file_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "none" / "coverage.info"
    with pytest.raises(ConfigurationError, match=f"{file} can't be written: No such file"):
        add_coverage(file, {"/a.c": {1: 5}})


def test_a_line_that_was_perhaps_executed_has_a_branch_that_was_perhaps_evaluated(image: Image) -> None:
    (lines,) = covered_lines(image, [(None, {named(image, "work"): None})], Path).values()
    assert lines[5] is None
    text = lcov({"/a.c": {3: None, 1: 5}})
    assert text == "TN:\nSF:/a.c\nBRDA:3,0,0,-\nBRF:1\nBRH:0\nDA:1,5\nDA:3,0\nLF:2\nLH:1\nend_of_record\n"
    assert parse(text) == {"/a.c": {1: 5, 3: None}}
