# SPDX-License-Identifier: Apache-2.0
"""A run with data of all kinds, for tests of pages and exports."""

from __future__ import annotations

from dataclasses import replace

from minrpc import Sample
from minrpc.counters import CallTree
from minrpc.publish import RunRecord
from minrpc.publish.run_record import CallProfile, PlatformPart, Tested
from minrpc.timing import TimingRecord

from tests.unit.timing.samples import WALL, recorded


def counted(cycles: list[int], *, name: str = "add", loads: int = 100) -> TimingRecord:
    """An exact measurement with counters."""
    item = recorded(cycles)
    samples = tuple(
        Sample(each, 10, columns={"instructions": each * 2, "loads": loads, "stack_bytes": 64})
        for each in cycles
    )
    return replace(item, measurement=replace(item.measurement, name=name, samples=samples))


def whole() -> RunRecord:
    """Two platforms, a profile, sizes, a test for each outcome."""
    noisy = replace(recorded([100, 900, 250, 300, 400, 350, 320], clock=WALL), platform="posix")
    names = ["?", "evaluate", "add", "<lambda>", "expf"]
    tree = CallTree(names, [0, 0, 1, 2, 2], [0, 10, 30, 25, 35], [0, 1, 1, 3, 2])
    lines = [("f.c:3", "if (a < b && c | d)", 60), ("f.c:4", "", 40)]
    part = PlatformPart(
        "bare_mps2_an385",
        {"emulator": "QEMU 7.2"},
        [CallProfile("sum(int8[2])", tree, lines, function="add")],
        {"runtime": {"evaluate": 700, "functions": 300}, "libm": {"expf": 500}},
        {"runtime": {"state": 100}},
        {"fir.c": {"fir": 68, "dot": 30, "taps": 32, "(from libraries)": 278}},
    )
    tests = [
        Tested("tests/test_a.py::test_one", "posix", "passed", 0.25),
        Tested("tests/test_a.py::test_two", "bare_mps2_an385", "failed", 1.5, "wrong | <value>\nhere"),
        Tested("tests/test_a.py::test_three", "posix", "skipped", 0.0, "no board"),
        Tested("tests/test_a.py::test_four", "posix", "xfailed", 0.1, "known"),
        Tested("tests/test_a.py::test_five", "posix", "xpassed", 0.1),
    ]
    records = [counted([1000, 1010, 1005]), counted([90, 90, 90], name="mul", loads=9), noisy]
    return RunRecord("A <run> & more", {"minrpc": "0.1.0"}, records, [part], tests)


def failing(number: int) -> RunRecord:
    """Tests with long names that failed for long reasons."""
    name = (
        "tests/deeply/nested/directory/test_of_a_long_name.py::TestOfAll::test_that_fails[bare_mps2_an385-{}]"
    )
    reason = "AssertionError: \nArrays are not equal\n\n" + "x" * 300 + "\n ACTUAL: array([0, 1, 2])" * 30
    tests = [
        Tested(name.format(each), "bare_mps2_an385", "failed", each / 100, reason) for each in range(number)
    ]
    return RunRecord("Tests", tests=tests)


def one_test() -> RunRecord:
    """A run of one test, which passed."""
    return RunRecord("Tests", tests=[Tested("tests/test_a.py::test_one[posix]", "posix", "passed", 0.25)])
