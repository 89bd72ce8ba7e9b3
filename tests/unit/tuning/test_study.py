# SPDX-License-Identifier: Apache-2.0
"""A study on a process of this machine: its rows, as numpy, CSV, Markdown and a picture; its command."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc import ConfigurationError, HarnessError, Target
from minrpc.cli import main
from minrpc.tuning import Candidate, CandidateResult, Kernel, Study, study
from minrpc.tuning.study import _row

C = """
#include <stdint.h>
#if BROKEN
#error broken
#endif
int32_t sum(const int32_t *x, int32_t n)
{
	int32_t sum = 0;
	for (int32_t turn = 0; turn < 50; turn++)
		for (int32_t i = 0; i < n; i++)
			sum += *(const volatile int32_t *)&x[i];
	return sum;
}
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("study")
    (made / "sum.c").write_text(C)
    return made


@pytest.fixture(scope="module")
def found(compiler_here: None, directory: Path) -> Study:
    def of_size(n: int) -> Kernel:
        return Kernel(directory / "sum.c", "sum", (np.ones(n, np.int32), n))

    over: dict[str, list[Any]] = {"n": [16, 4096], "BROKEN": [0, 1], "flags": ["-O1", "-O2"]}
    return study(of_size, over, ["posix"], jobs=2)


def test_rows_are_all_combinations_in_order(found: Study) -> None:
    due = [(n, broken, flags) for n in (16, 4096) for broken in "01" for flags in ("-O1", "-O2")]
    assert [(row["n"], row["BROKEN"], row["flags"]) for row in found.rows] == due
    assert found.varied == ("platform", "n", "BROKEN", "flags")
    for row in found.rows:
        assert row["outcome"].startswith("compile" if row["BROKEN"] == "1" else "correct")
        assert ("ticks" in row) == (row["BROKEN"] == "0")
    small, large = found.rows[0], found.rows[4]
    assert small["seconds"] < large["seconds"]


def test_the_table_as_numpy_csv_and_markdown(found: Study) -> None:
    array = found.numpy()
    right = array["BROKEN"] == "0"
    assert array["n"].tolist() == [16] * 4 + [4096] * 4
    assert np.isnan(array["ticks"][~right]).all()
    assert array["code_bytes"][right].min() > 0
    rows = list(csv.DictReader(io.StringIO(found.csv())))
    assert [row["n"] for row in rows] == ["16"] * 4 + ["4096"] * 4
    assert [float(row["ticks"]) for row in rows if row["ticks"]] == array["ticks"][right].tolist()
    assert len(found.markdown().splitlines()) == 2 + len(found.rows)


@pytest.mark.extra("plot")
def test_the_picture_has_a_line_for_each_other_combination(found: Study, tmp_path: Path) -> None:
    found.plot(tmp_path / "study.svg")
    assert (tmp_path / "study.svg").stat().st_size > 1000
    lines = found._lines("n", "ticks")
    assert {label: [x for x, _ in points] for label, points in lines.items()} == {
        f"platform=posix BROKEN=0 flags={flags}": [16, 4096] for flags in ("-O1", "-O2")
    }
    one = Study(("platform",), ({"platform": "posix", "ticks": 3.0},))
    one.plot(tmp_path / "one.svg")  # Without a legend: matplotlib would warn.
    with pytest.raises(ConfigurationError, match="no column cycels"):
        found.plot(tmp_path / "study.svg", y="cycels")


def test_a_size_without_values_is_refused() -> None:
    def of_size(n: int) -> Kernel:
        raise AssertionError(n)

    with pytest.raises(ConfigurationError, match="no values for n"):
        study(of_size, {"m": [1]}, ["posix"])


@pytest.mark.usefixtures("compiler_here")
def test_a_platform_that_fails_has_rows_with_the_reason(directory: Path) -> None:
    over: dict[str, list[Any]] = {"BROKEN": [0, 1], "flags": ["-O1"]}
    kernel = Kernel(directory / "sum.c", "sum", (np.ones(4, np.int32), 4))
    bad = Target.named("posix").changed(sources=["nowhere.c"])
    made = study(kernel, over, [bad, "posix"])
    told = [(row["BROKEN"], row["flags"], row["outcome"].partition(":")[0]) for row in made.rows]
    assert told == [
        ("0", "-O1", "failed"),
        ("1", "-O1", "failed"),
        ("0", "-O1", "correct"),
        ("1", "-O1", "compile"),
    ]
    assert made.rows[0]["outcome"] == "failed: the firmware of posix did not build"
    assert np.isnan(made.numpy()["ticks"]).tolist() == [True, True, False, True]
    with pytest.raises(HarnessError, match="did not build"):
        study(kernel, over, [bad])


def test_a_parameter_with_the_name_of_a_column_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="a study has a column outcome of its own"):
        study(Kernel(Path("dot.c"), "dot", ()), over={"outcome": [1, 2]}, platforms=["posix"])


def test_the_command_puts_values_into_arguments(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(directory)
    command = ["study", "sum.c", "sum", "--arg", "int32[n]", "--arg", "n", "--over", "n=4,8", "--flags=-O1"]
    assert main([*command, "--over", "BROKEN=0", "--platform", "posix", "--csv", "out.csv"]) == 0
    rows = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
    assert [(row["platform"], row["n"], row["flags"]) for row in rows] == [
        ("posix", "4", "-O1"),
        ("posix", "8", "-O1"),
    ]
    assert "| posix" in capsys.readouterr().out
    assert main([*command, "--over", "n=1"]) == 2


def test_the_table_tells_whose_cycles_it_has() -> None:
    rows = (
        {"platform": "m4", "outcome": "correct", "cycles": 5.0},
        {"platform": "posix", "outcome": "correct"},
    )
    made = Study(("platform",), rows, {"m4": "estimate: a core's table"})
    assert made.markdown().endswith("\n\nm4: cycles are an estimate: a core's table.")


def test_a_row_has_the_clocks_ticks_beside_the_cycles() -> None:
    result = CandidateResult(Candidate(0), "correct", "", 300.0, counters={"cycles": 300.0}, ticks=25.0)
    row = _row(result, {})
    assert (row["ticks"], row["cycles"]) == (25.0, 300.0)
