# SPDX-License-Identifier: Apache-2.0
"""`pytest --minrpc-report FILE`: a page of a run of tests, also of a run in several processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from minrpc.plugin.run_page import note_measurement, note_phase, write_page
from minrpc.plugin.tally import Tally
from minrpc.publish import RunRecord, run_of

from tests.unit.timing.samples import measured

TESTS = """
import pytest

def test_right(device, record_timing):
    record_timing("increment", device.system_lib().measure("inc", repeat=5)(1))

def test_wrong(device):
    assert device.system_lib()["inc"](1) == 3

def test_left_out(device):
    pytest.skip("no <reason>")

def test_of_something_else():
    pass

@pytest.mark.xfail(reason="nothing doubles", raises=AssertionError)
def test_expected(load):
    lib = load("twice.c")
    assert lib.twice(2) == 1000 + lib.twice.size

@pytest.mark.xfail(reason="thought to fail")
def test_unexpected(device):
    pass

@pytest.fixture
def broken(device):
    raise ValueError("no file:\\nlooked here")

def test_set_up(broken):
    pass
"""
SOURCE = """
static int added(int a, int b) { return a + b; }
int t0(int a) { return added(a, a); }
int twice(int a) { return a < 0 ? t0(a) : added(a, a); }
"""


def run_of_tests(pytester: pytest.Pytester, *options: str) -> RunRecord:
    pytester.makepyfile(TESTS)
    pytester.makefile(".c", twice=SOURCE)
    ran = pytester.runpytest("--platform", "posix", "--minrpc-report", "page.json", *options)
    ran.assert_outcomes(passed=2, failed=1, errors=1, skipped=1, xfailed=1, xpassed=1)
    return run_of((pytester.path / "page.json").read_text())


@pytest.mark.parametrize("options", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)])
def test_a_page_has_each_test_of_a_device(pytester: pytest.Pytester, options: tuple[str, ...]) -> None:
    run = run_of_tests(pytester, *options)
    outcomes = {test.test.split("::")[1].split("[")[0]: test for test in run.tests}
    assert {name: outcome.outcome for name, outcome in outcomes.items()} == {
        "test_expected": "xfailed",
        "test_left_out": "skipped",
        "test_right": "passed",
        "test_set_up": "failed",
        "test_unexpected": "xpassed",
        "test_wrong": "failed",
    }
    reasons = {name: outcome.text for name, outcome in outcomes.items()}
    assert reasons["test_expected"] == "nothing doubles"
    assert reasons["test_unexpected"] == "thought to fail"
    assert reasons["test_set_up"] == "at setup: ValueError: no file:\nlooked here"
    assert "assert 2 == 3" in outcomes["test_wrong"].text
    assert reasons["test_left_out"] == "no <reason>"
    assert {test.platform for test in run.tests} == {"posix"}
    (record,) = run.records
    assert (record.measurement.name, record.platform) == ("increment", "posix")
    assert len(record.measurement.samples) == 5
    (part,) = run.platforms
    assert sum(part.flash["runtime"].values()) > 1000
    assert part.loaded["twice.c"].keys() == {"t0", "twice"}
    assert all(0 < size < 200 for size in part.loaded["twice.c"].values())
    assert json.loads((pytester.path / "page.json").read_text())["passed"] is False


def test_other_kinds_of_files(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_right(device):\n    device.info()\n")
    for name, begins in (("page.html", "<!doctype html>"), ("page.md", "### Tests: 1 passed")):
        ran = pytester.runpytest("--platform", "posix", "--minrpc-report", name)
        ran.assert_outcomes(passed=1)
        assert (pytester.path / name).read_text().startswith(begins)


@pytest.mark.parametrize("name", ["page.pdf", "there/is/none/page.md"])
def test_a_page_that_can_not_be_written_is_told_before_the_tests(
    pytester: pytest.Pytester, name: str
) -> None:
    pytester.makepyfile("def test_right(device):\n    device.info()\n")
    ran = pytester.runpytest("--platform", "posix", "--minrpc-report", name)
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines([f"*{name}*"])


@pytest.mark.parametrize("options", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)])
def test_a_call_that_several_tests_measured_has_the_tests_names(
    pytester: pytest.Pytester, options: tuple[str, ...]
) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.parametrize("flags", ["-O2", "-O3"])
        def test_x(device, record_timing, flags):
            measured = device.system_lib().measure("inc", repeat=5)(1)
            record_timing("scale", measured.net())
            record_timing(f"scale {flags}", measured)
    """)
    ran = pytester.runpytest("--platform", "posix", "--minrpc-report", "page.json", *options)
    ran.assert_outcomes(passed=2)
    records = run_of((pytester.path / "page.json").read_text()).records
    assert {(record.measurement.name, record.measurement.subtracted) for record in records} == {
        ("scale [test_x[posix--O2]]", True),
        ("scale -O2", False),
        ("scale [test_x[posix--O3]]", True),
        ("scale -O3", False),
    }


def test_tests_of_one_name_are_told_apart_by_their_files(tmp_path: Path) -> None:
    tally = Tally()
    for test, name in (("a.py::test_x", "add"), ("b.py::test_x", "add"), ("b.py::test_x", "mul")):
        note_measurement(tally, test, name, "posix", None, measured([1]))
    write_page(tmp_path / "page.json", tally)
    names = [record.measurement.name for record in run_of((tmp_path / "page.json").read_text()).records]
    assert names == ["add [a.py::test_x]", "add [b.py::test_x]", "mul"]


def test_a_test_that_passes_at_its_second_try_has_passed() -> None:
    tally = Tally()
    for outcomes in (("passed", "failed", "passed"), ("passed", "passed", "passed")):
        for when, outcome in zip(("setup", "call", "teardown"), outcomes, strict=True):
            report: Any = pytest.TestReport("t", ("t.py", 1, "t"), {}, outcome, "why", when, duration=1.0)  # type: ignore[arg-type]
            note_phase(tally, report, pytest.CallInfo.from_call(lambda: None, when), "posix")  # type: ignore[arg-type]
    assert tally.tests == {"t": {"outcome": "passed", "took_s": 3.0, "text": "", "platform": "posix"}}


def test_a_collection_leaves_the_page_and_the_coverage(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_right(device):\n    device.info()\n")
    files = [pytester.path / name for name in ("page.md", "lines.info")]
    for file in files:
        file.write_text("of an earlier run")
    options = ("--collect-only", "--minrpc-report=page.md", "--minrpc-coverage=lines.info")
    assert pytester.runpytest("--platform", "posix", *options).ret == 0
    assert [file.read_text() for file in files] == ["of an earlier run"] * 2
