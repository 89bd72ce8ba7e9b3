# SPDX-License-Identifier: Apache-2.0
"""`minrpc functions`, `minrpc call`, `minrpc time --source`: a C file from the command line."""

import json
from pathlib import Path

import pytest
from minrpc.cli import main

SOURCE = """\
#include <stdint.h>

void scale(const int16_t *x, int16_t *y, int n, int16_t by)
{
	for (int i = 0; i < n; i++) {
		y[i] = (int16_t)(x[i] * by);
	}
}

int32_t square(int32_t x)
{
	return x * x;
}

int any(int count, ...)
{
	return count;
}
"""


@pytest.fixture
def source(tmp_path: Path) -> str:
    """A C file."""
    (tmp_path / "f.c").write_text(SOURCE)
    return str(tmp_path / "f.c")


def test_functions_lists_prototypes_sizes_and_stack(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["functions", source, "--flags", "-Os", "--platform", "posix", "--json", "-"]) == 0
    told = capsys.readouterr()
    assert "int32_t square(int32_t x)" in told.err
    assert "int any(int count, ...)    can't be called: it is variadic" in told.err
    functions = {load["name"]: load for load in json.loads(told.out)["functions"]}
    assert list(functions) == ["scale", "square", "any"]
    assert 0 < functions["square"]["code_bytes"] < functions["scale"]["code_bytes"]
    assert functions["square"]["stack_bytes"] >= 0


def test_functions_of_a_header_have_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "f.h").write_text("static inline int twice(int x) { return 2 * x; }\n")
    assert main(["functions", str(tmp_path / "f.h"), "--platform", "posix", "--json", "-"]) == 0
    (twice,) = json.loads(capsys.readouterr().out)["functions"]
    assert twice["code_bytes"] > 0


def test_call_shows_the_result_and_what_changed(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", source, "square", "--arg", "-12", "--platform", "posix"]) == 0
    assert "returned 144" in capsys.readouterr().out
    words = ["--arg", "int16[3]", "--arg", "int16[3]", "--arg", "3", "--arg", "0"]
    assert main(["call", source, "scale", *words, "--platform", "posix"]) == 0
    shown = capsys.readouterr().out
    assert "y = [0, 0, 0]" in shown
    assert "x = " not in shown


def test_call_shows_a_null_pointer_and_takes_all_of_64_bits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = str(tmp_path / "wide.c")
    Path(source).write_text(
        "char *none(void) { return 0; }\nunsigned long long same(unsigned long long x) { return x; }\n"
    )
    assert main(["call", source, "none", "--platform", "posix"]) == 0
    assert "returned NULL" in capsys.readouterr().out
    assert main(["call", source, "same", "--arg", "0xffffffffffffffff", "--platform", "posix"]) == 0
    assert "returned 18446744073709551615" in capsys.readouterr().out


def test_call_says_what_does_not_fit(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", source, "square", "--platform", "posix"]) == 2
    assert "square: expected 1 argument, got 0" in capsys.readouterr().err
    assert main(["call", source, "sqare", "--arg", "1", "--platform", "posix"]) == 2
    assert "did you mean square" in capsys.readouterr().err


def test_time_takes_a_source(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["time", "--source", source, "--flags", "-O3", "square", "--arg", "3", "--platform", "posix"])
        == 0
    )
    assert "square(3) on posix" in capsys.readouterr().out
    assert main(["time", "--source", source, "cube", "--arg", "3", "--platform", "posix"]) == 2
    assert "it has scale, square, any" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["report"], ["profile"], ["time"], ["time", "--constant-time", "--secret", "1"]]
)
def test_a_function_that_the_source_lacks_is_told(
    command: list[str], source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["cube", "--source", source, "--arg", "int16[4]", "--platform", "bare_mps2_an385"]
    assert main([*command, *given]) == 2
    assert "f.c has no function cube\n  next: it has scale, square" in capsys.readouterr().err


def test_a_function_that_needs_what_nobody_has_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "f.c").write_text(
        "int hal(void);\nint f(int n) { return hal() + n; }\nint g(void) { return 1; }"
    )
    given = ["f", "--source", str(tmp_path / "f.c"), "--arg", "1", "--platform", "posix"]
    assert main(["time", *given]) == 2
    assert "f can't be called: it needs hal, which neither its sources" in capsys.readouterr().err


@pytest.mark.slow
def test_constant_time_of_a_function_of_the_source(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    arrays = ["--arg", "int16[4]", "--arg", "int16[4]", "--arg", "4", "--arg", "3"]
    given = ["time", "scale", "--source", source, *arrays, "--platform", "bare_mps2_an385"]
    assert main([*given, "--constant-time", "--secret", "x,by"]) == 0
    told = capsys.readouterr().out
    assert "scale took the same path and the same addresses" in told
    assert "for these 64 inputs" in told
    assert "secret: x, by; public: y, n" in told
    assert main([*given, "--constant-time"]) == 2
    assert "name the secret parameters: --secret key" in capsys.readouterr().err
    assert main([*given, "--constant-time", "--secret", "z"]) == 2
    assert "scale has no parameter z\n  next: it takes x, y, n, by" in capsys.readouterr().err
    assert main([*given, "--secret", "x"]) == 2
    assert "add --constant-time" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["report"], ["profile"], ["time"], ["time", "--constant-time", "--secret", "1"]]
)
def test_arguments_that_do_not_fit_are_told(
    command: list[str], source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arrays = ["--arg", "int8[4]", "--arg", "int16[4]", "--arg", "4", "--arg", "3"]
    assert main([*command, "scale", "--source", source, *arrays, "--platform", "bare_mps2_an385"]) == 2
    told = capsys.readouterr().err
    assert "scale: x: expected const int16_t *" in told
    assert "next: see its functions: minrpc functions " in told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--secret", "x"], "posix is not RTL"),
        (["--shares", "3"], "argument 3 is no array with two halves"),
        (["--secret", "1,none"], "the function has no parameter 'none'"),
        (["--secret", "bye"], "did you mean by"),
        (["--secret", "5"], "there is x, y, n, by"),
        (["--secret", "0"], "the function has no parameter '0'"),
    ],
)
def test_leakage_needs_a_secret_array_and_rtl(
    options: list[str], told: str, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arrays = ["--arg", "int16[4]", "--arg", "int16[4]", "--arg", "4", "--arg", "3"]
    assert main(["leakage", source, "scale", *arrays, *options, "--platform", "posix"]) == 2
    assert told in capsys.readouterr().err


def test_a_profile_beside_the_source_has_the_functions_own_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Inlined code has lines of another file."""
    (tmp_path / "inner.h").write_text("\n" * 60 + "static inline int part(int x) { return x * 3 + x / 7; }\n")
    source = tmp_path / "f.c"
    source.write_text(
        '#include "inner.h"\n\nint outer(int n)\n{\n\tint sum = 0;\n\twhile (n) {\n'
        "\t\tsum ^= n;\n\t\tsum += part(n--);\n\t}\n\treturn sum;\n}\n"
    )
    given = ["profile", "outer", "--source", str(source), "--arg", "5", "--platform", "bare_mps2_an385"]
    assert main([*given, "--top", "1", "--annotate", "outer"]) == 0
    title, *rows = capsys.readouterr().out.partition("outer, ")[2].splitlines()
    assert title == str(source)
    numbers = [int(row[16:21]) for row in rows]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert (numbers[0] in (3, 4), numbers[-1] in (10, 11)) == (True, True)
    lines = source.read_text().splitlines()
    assert [row[23:] for row in rows] == [lines[number - 1] for number in numbers]
    counts = {
        number: int(row[2:14] or 0) for number, row in zip(numbers, rows, strict=True) if row[2:14].strip()
    }
    assert counts[7] >= 5
    assert main([*given, "--annotate", "outr"]) == 2
    assert "the program has no function outr\n  next: did you mean outer" in capsys.readouterr().err


def test_a_number_that_does_not_fit_is_told(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    for number in ("1.5", str(2**40)):
        given = ["time", "square", "--source", source, "--arg", number, "--platform", "posix"]
        assert main(given) == 2, number
        assert "square: x: " in capsys.readouterr().err


@pytest.mark.parametrize("platform", ["posix", pytest.param("bare_mps2_an385", marks=pytest.mark.slow)])
def test_time_of_what_writes_far_past_its_array_leads_to_call(
    source: str, platform: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--arg", "int16[4]", "--arg", "int16[4]", "--arg", "100000000", "--arg", "3"]
    assert main(["time", "scale", "--source", source, *words, "--platform", platform]) != 0
    told = capsys.readouterr().err
    assert "guards are off while scale is timed" in told
    assert "`minrpc call`" in told
