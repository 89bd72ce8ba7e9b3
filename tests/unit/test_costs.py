# SPDX-License-Identifier: Apache-2.0
"""The costs of tests (tests/costs.py): measured, added up by room, and held against the budgets."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests import costs
from tests.costs import SHARED, Costs, by_room, over_budget, slowest

BUDGETS = {"calibration": 0.02, "tests/unit": 10.0, "tests/unit/cli": 2.0, SHARED: 1.0}
RUN = Costs(
    tests={
        "tests/unit/test_a.py::test_one": (9.0, 4.0),
        "tests/unit/cli/test_b.py::test_two[posix]": (20.0, 1.5),
        "tests/unit/cli/deep/test_c.py::test_three": (1.0, 1.0),
    },
    shared_s=0.5,
)


def test_a_room_is_the_innermost_directory_of_the_table() -> None:
    assert [line.split()[-1] for line in slowest(RUN)] == ["test", *RUN.tests]
    assert by_room(RUN, BUDGETS) == {"tests/unit": 4.0, "tests/unit/cli": 2.5, SHARED: 0.5}


def test_a_slow_machine_is_no_excuse_and_no_alarm() -> None:
    RUN.loops_s = [0.02]
    (line,) = over_budget(RUN, BUDGETS)
    assert line.startswith("tests/unit/cli took 2.5 s of processor time, 2.5 s there, and its budget is 2 s")
    RUN.loops_s = [0.03, 0.05]
    assert not [*over_budget(RUN, BUDGETS)]
    RUN.loops_s = [0.01]
    assert [line.split()[0] for line in over_budget(RUN, BUDGETS)] == ["tests/unit/cli"]
    RUN.loops_s = [0.002, 0.008]
    assert [line.split()[0] for line in over_budget(RUN, BUDGETS)] == [
        "tests/unit",
        "tests/unit/cli",
        "devices",
    ]


def test_each_room_of_tests_has_a_budget() -> None:
    table = tomllib.loads(costs._TABLE.read_text())
    lines = tomllib.loads(costs._TABLE.with_name("lines.toml").read_text())
    rooms = {room for room in lines if room.startswith("tests")} - {"tests", "tests/vectors"}
    assert table.keys() == rooms | {"calibration", SHARED}


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_the_end_of_a_run_shows_the_slowest_tests(
    workers: int, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeconftest(
        """
        pytest_plugins = ["tests.costs"]
        def pytest_addoption(parser):
            parser.addoption("--all", action="store_true")
        def pytest_unconfigure(config):
            from tests import costs
            print("loops:", len(config.stash[costs._COSTS].loops_s))
        """
    )
    pytester.makepyfile(
        """
        import subprocess, sys
        import pytest

        LOOP = "from time import process_time as now; end = now() + 0.2\\nwhile now() < end: pass"

        @pytest.fixture(scope="session")
        def shared():
            yield
            exec(LOOP)

        def test_cheap(shared):
            pass

        def test_dear(shared):
            subprocess.run([sys.executable, "-c", LOOP], check=True)
        """
    )
    monkeypatch.setenv("CI", "true")
    result = pytester.runpytest("-p", "no:cacheprovider", "-n", str(workers))
    result.assert_outcomes(passed=2)
    text = result.stdout.str().partition(" costs ")[2]
    assert text.index("test_dear") < text.index("test_cheap")
    (shared_s,) = re.findall(rf"([0-9.]+) s  {SHARED}", text)
    assert float(shared_s) > 0
    assert "tests took " in text, "a room without a budget"
    assert f"loops: {1 + workers}" in text
    monkeypatch.delenv("CI")
    result = pytester.runpytest("-p", "no:cacheprovider", "-k", "cheap")
    result.stdout.no_fnmatch_line("*processors*")
