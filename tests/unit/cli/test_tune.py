# SPDX-License-Identifier: Apache-2.0
"""`minrpc tune`: its files, the remains after Ctrl-C, and continued runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc.cli import main
from minrpc.cli.tune import _check_of
from minrpc.targets import load_platforms

C = """
#include <stdint.h>
int32_t sum(const int32_t *x, int32_t n)
{
	int32_t sum = WRONG;

	for (int32_t i = 0; i < n; i += UNROLL) {
		for (int32_t j = 0; j < UNROLL; j++) {
			sum += x[i + j];
		}
	}
	return sum;
}
"""
CHECK = """
def right(x, n):
    return int(x[:n].sum())
"""
SPACE = ["--param", "UNROLL=1,4", "--param", "WRONG=0,1", "--flags=-O2,-Os"]


@pytest.fixture
def command(compiler_here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """`tune` of a function, on a process of this machine."""
    monkeypatch.chdir(tmp_path)
    Path("sum.c").write_text(C)
    Path("right.py").write_text(CHECK)
    return ["tune", "sum.c", "sum", *SPACE, "--arg", "int32[64]", "--arg", "64", "--platform", "posix"]


def lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def outcomes(path: str) -> dict[int, str]:
    return {line["number"]: line["outcome"] for line in lines(path)}


def due() -> dict[int, str]:
    """The expected outcome by number: the flags change first, then WRONG."""
    return {number: "wrong" if number // 2 % 2 else "correct" for number in range(8)}


def test_all_that_it_writes(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--results", "r.jsonl", "--t4", "t4.json"]
    assert main([*command, "--check", "right.py:right", *files]) == 0
    shown = capsys.readouterr().out
    assert "8 tried: 4 right, 4 wrong" in shown
    assert "Not beaten in ticks, code and frame at once:" in shown
    assert outcomes("r.jsonl") == due()
    assert {line["platform"] for line in lines("r.jsonl")} == {"posix"}
    t4 = json.loads(Path("t4.json").read_text())
    assert [item["invalidity"] == "correct" for item in t4["results"]] == [
        outcome == "correct" for outcome in due().values()
    ]


@pytest.mark.extra("plot")
def test_a_picture(command: list[str]) -> None:
    assert main([*command, "--budget", "2", "--plot", "p.png"]) == 0
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")


def test_going_on_tries_what_is_missing_and_no_more(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    check = ["--check", "right.py:right"]
    assert main([*command, *check, "--budget", "5", "--results", "r.jsonl"]) == 0
    first = lines("r.jsonl")
    assert len(first) == 5
    assert main([*command, *check, "--resume", "r.jsonl"]) == 0
    assert lines("r.jsonl")[:5] == first
    assert len(lines("r.jsonl")) == 8
    assert outcomes("r.jsonl") == due()
    assert "5 known" in capsys.readouterr().out


def test_ctrl_c_keeps_what_is_done(command: list[str]) -> None:
    """A terminal sends SIGINT to the whole process group. No process lives on."""
    # Enough candidates that the run is not finished before the signal comes, on any host.
    many = ["--param", "MORE=1:1000:1", "--check", "right.py:right", "--results", "r.jsonl"]
    with subprocess.Popen(
        [sys.executable, "-m", "minrpc", *command, *many],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as running:
        assert running.stdout is not None
        while "  2/8000" not in running.stdout.readline():
            assert running.poll() is None
        os.killpg(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "stopped; finished results are kept" in err
    assert "Traceback" not in err
    assert "tried: " in out
    kept = lines("r.jsonl")
    assert 2 <= len(kept) < 8000
    for line in kept:
        assert line["outcome"] == ("wrong" if line["params"]["WRONG"] != "0" else "correct")


def test_results_of_another_kernel_are_not_gone_on_with(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    check = ["--check", "right.py:right"]
    assert main([*command, *check, "--budget", "1", "--results", "r.jsonl"]) == 0
    Path("sum.c").write_text(C.replace("sum += x[i + j]", "sum = sum + x[i + j]"))
    Path("right.py").write_text(CHECK + "\n")
    capsys.readouterr()
    assert main([*command, *check, "--resume", "r.jsonl"]) == 2
    told = capsys.readouterr().err
    assert "r.jsonl, line 1 is a result of other inputs: the source, check are different" in told
    assert len(lines("r.jsonl")) == 1


def test_only_the_best_is_checked(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--check", "right.py:right", "--check-only", "best", "--results", "r.jsonl"]) == 0
    checked = lines("r.jsonl")[8:]
    assert checked
    assert checked[-1]["outcome"] == "correct"
    assert due()[checked[-1]["number"]] == "correct"
    assert all(due()[line["number"]] == line["outcome"] for line in checked)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--check", "nobody.py:right"], "there is no such file"),
        (["--check", "sum.c:right"], "sum.c is no Python file"),
        (["--check", "right.py:wrong"], "has no function"),
        (["--check-only", "x"], "a number or `best`"),
        (["--check-only", "0"], "a number or `best`"),
        (["--jobs", "0"], "--jobs is at least 1"),
        (["--check-only", "2"], "--check-only: of no use without --check\n"),
        (["--compile-timeout", "0"], "--compile-timeout is a number of seconds above 0, and at most "),
        (["--compile-timeout", "5", "--dask", "tcp://127.0.0.1:1"], "leave it out with --dask"),
        (["--plot", "p.txt"], "a plot is one of"),
        (["--results", "a", "--resume", "b"], "adds to its own file"),
        (["--resume", "nowhere.jsonl"], "--resume nowhere.jsonl: there is no such file"),
        (["--results", "right.py"], "go on with it by --resume right.py, or name another file"),
        (["--param", "1=2"], "NAME=VALUES"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_runs(
    command: list[str], capsys: pytest.CaptureFixture[str], more: list[str], reason: str
) -> None:
    assert main([*command, *more]) == 2
    assert reason in capsys.readouterr().err
    assert Path("right.py").read_text() == CHECK


@pytest.mark.extra("dask")
def test_a_scheduler_that_is_not_there_is_named(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--dask", "tcp://127.0.0.1:1"]) == 2
    assert "tcp://127.0.0.1:1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--param", "UNROLL=16"], "--param UNROLL is given twice"),
        (["--check", "broken.py:f"], "broken.py can't be loaded: SyntaxError"),
        (["--check", "right.py:fails"], "the check fails has failed: RuntimeError: no idea"),
        (["--check", "right.py:few"], "the check few has failed: TypeError: few() takes 1"),
        (["--arg", "3"], "sum: expected 2 arguments, got 3: int32_t sum(const int32_t *x, int32_t n)"),
    ],
)
def test_what_the_user_got_wrong_is_told_in_a_line(
    command: list[str], capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    Path("broken.py").write_text("def f(:\n")
    wrong = "def fails(x, n):\n    raise RuntimeError('no idea')\n\ndef few(x):\n    return 0\n"
    Path("right.py").write_text(CHECK + wrong)
    assert main([*command, *words]) == 2
    assert said in capsys.readouterr().err


def test_a_function_that_is_not_there_and_a_macro_that_nobody_reads(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command[2] = "summ"
    assert main([*command, "--param", "UNROL=1"]) == 2
    told = capsys.readouterr().err
    assert "sum.c has no function 'summ' with external linkage; did you mean sum?" in told
    assert "note: sum.c has no UNROL; unless a header has it, it changes nothing" in told


def test_where_tries_some_and_the_best_is_applied(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command += ["--check", "right.py:right", "--where", "UNROLL == 4 and WRONG < 1"]
    assert main([*command, "--apply", "best.h", "--results", "r.jsonl"]) == 0
    assert set(outcomes("r.jsonl")) == {4, 5}
    assert "2 candidates, 2 to try" in capsys.readouterr().out
    program = '#include "best.h"\n_Static_assert(UNROLL == 4 && WRONG == 0, "best");\n'
    subprocess.run(["gcc", "-fsyntax-only", "-I.", "-xc", "-"], input=program, text=True, check=True)


def test_the_best_as_a_librarys_entry_and_for_cmake(command: list[str]) -> None:
    Path("minrpc.toml").write_text("[libraries.other]\nsources = ['sum.c']\nlinked = false\n")
    command += ["--where", "UNROLL == 4 and WRONG == 0", "--check", "right.py:right"]
    assert main([*command, "--apply", "best.cmake", "--apply", "minrpc.toml"]) == 0
    libraries = load_platforms("minrpc.toml")["posix"].named_libraries
    entry = {item.name: item for item in libraries}["sum"]
    assert [Path(source).name for source in entry.sources] == ["sum.c"]
    assert sorted(entry.defines) == ["UNROLL=4", "WRONG=0"]
    assert entry.flags in (("-O2",), ("-Os",))
    assert main([*command, "--apply", "minrpc.toml"]) == 2
    text = (
        'cmake_minimum_required(VERSION 3.20)\nproject(p NONE)\nmessage("${UNROLL} ${WRONG} ${SUM_FLAGS}")\n'
    )
    Path("CMakeLists.txt").write_text(text)
    said = subprocess.run(["cmake", "-G", "Ninja", "-C", "best.cmake", "."], capture_output=True, text=True)
    assert "4 0 -O" in said.stderr


def test_an_argument_from_a_file(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", np.arange(64, dtype=np.int32))
    Path("right.py").write_text("def right(x, n):\n    assert x[63] == 63\n    return int(x.sum())\n")
    command[command.index("int32[64]")] = "x.npy"
    assert main([*command, "--check", "right.py:right", "--results", "r.jsonl"]) == 0
    assert outcomes("r.jsonl") == due()
    np.save("x.npy", np.array([None]))
    assert main(command) == 2
    assert "--arg x.npy can't be read: it has no whole array of numbers" in capsys.readouterr().err


def test_a_check_imports_what_is_beside_it_and_has_dataclasses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "helper_of_check.py").write_text("ONE = 1\n")
    (tmp_path / "ref.py").write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\nfrom helper_of_check import ONE\n"
        "@dataclass\nclass Sizes:\n    n: int = ONE\n"
        "def dot():\n    return Sizes().n\n"
    )
    check = _check_of(f"{tmp_path}/ref.py:dot")
    assert check is not None
    assert check() == 1


@pytest.mark.parametrize(("given", "limit"), [([], "0.2 s"), (["--call-timeout", "0.5"], "0.5 s")])
@pytest.mark.parametrize("command", [["tune", "--param"], ["study", "--over"]], ids=["tune", "study"])
def test_a_candidates_time_is_as_given(
    compiler_here: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    given: list[str],
    limit: str,
) -> None:
    """A time that is given may be longer than the usual limit of a candidate."""
    monkeypatch.setattr("minrpc.tuning.judging.CANDIDATE_TIMEOUT_S", 0.2)
    source = tmp_path / "hang.c"
    source.write_text("int hang(int n)\n{\n\tvolatile int on = n;\n\twhile (on) {\n\t}\n\treturn N;\n}\n")
    name, values = command
    assert main([name, str(source), "hang", values, "N=1", "--arg", "1", "--platform", "posix", *given]) == 1
    assert f"did not come to its end within {limit}" in capsys.readouterr().out
