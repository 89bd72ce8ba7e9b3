# SPDX-License-Identifier: Apache-2.0
"""The cost of tests: processor time and wall time, the slowest tests, and each room's budget.

Processor time is that of the test's process and of the processes below it that ended during the test. Devices
that tests share end with the last test: their time is a room of its own, `SHARED`.

tests/seconds.toml has the budgets, in seconds of the machine where its calibration loop was measured; another
machine's seconds are scaled by the same loop, which each process of the tests runs in a job of CI.
"""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import Container, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from statistics import mean
from typing import Final

import pytest

SHARED: Final = "devices that tests share"
_SLOWEST: Final = 20
_TABLE: Final = Path(__file__).with_name("seconds.toml")
_ROUNDS: Final = 500_000


@dataclass
class Costs:
    """Costs of one run: its tests' (wall, processor) seconds by test, and the calibration loops' seconds."""

    tests: dict[str, tuple[float, float]] = field(default_factory=dict)
    shared_s: float = 0.0
    loops_s: list[float] = field(default_factory=list)


_COSTS: Final = pytest.StashKey[Costs]()
_BEGIN: Final = pytest.StashKey[tuple[float, float]]()
_END: Final = pytest.StashKey[tuple[float, float]]()


def loop_s() -> float:
    """Processor time of a fixed loop in Python, in seconds: the least of three."""
    return min(_one_loop_s() for _ in range(3))


def _one_loop_s() -> float:
    begin, bits = time.process_time(), 0
    for number in range(_ROUNDS):
        bits ^= number * number
    return time.process_time() - begin


def _shown() -> bool:
    """True in a job of CI, which alone shows the costs; elsewhere no loop runs."""
    return bool(os.environ.get("CI"))


def now() -> tuple[float, float]:
    """Wall time, and processor time of this process and its ended children, in seconds."""
    times = os.times()
    return time.monotonic(), times.user + times.system + times.children_user + times.children_system


def room_of(path: str, rooms: Container[str]) -> str | None:
    """The innermost directory of `rooms` that contains the file."""
    return next((str(above) for above in PurePosixPath(path).parents if str(above) in rooms), None)


def by_room(costs: Costs, rooms: Container[str]) -> dict[str, float]:
    """Processor seconds of each room, the dearest first."""
    found = {SHARED: costs.shared_s}
    for test, (_, cpu_s) in costs.tests.items():
        room = room_of(test.partition("::")[0], rooms) or "tests"
        found[room] = found.get(room, 0.0) + cpu_s
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def over_budget(costs: Costs, table: Mapping[str, float]) -> Iterator[str]:
    """A line for each room above its budget. table: the budgets, and "calibration" in seconds."""
    slowness = mean(costs.loops_s) / table["calibration"]
    for room, cpu_s in by_room(costs, table).items():
        scaled = cpu_s / slowness
        if scaled > table.get(room, 0.0):
            budget = f"its budget is {table.get(room, 0.0):g} s on the machine of tests/seconds.toml"
            yield f"{room} took {cpu_s:.1f} s of processor time, {scaled:.1f} s there, and {budget}"


def slowest(costs: Costs) -> Iterator[str]:
    """The tests that took most processor time."""
    yield "   wall  processors  test"
    for test, (wall_s, cpu_s) in sorted(costs.tests.items(), key=lambda item: -item[1][1])[:_SLOWEST]:
        yield f"{wall_s:5.1f} s  {cpu_s:8.1f} s  {test}"


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_COSTS] = Costs()
    if _shown() and not hasattr(config, "workerinput"):
        config.stash[_COSTS].loops_s.append(loop_s())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_BEGIN] = now()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if nextitem is None:  # The session's fixtures end now, too.
        item.stash[_END] = now()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "teardown" and _BEGIN in item.stash:
        end = now()
        begin, test_end = item.stash[_BEGIN], item.stash.get(_END, end)
        # Attributes of a report reach the process that reports.
        report.cost = (test_end[0] - begin[0], test_end[1] - begin[1], end[1] - test_end[1])  # type: ignore[attr-defined]
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if _shown() and output is not None:
        output["loop_s"] = loop_s()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """A worker of pytest-xdist has ended: its loop was slowed as its tests were."""
    sent = getattr(node, "workeroutput", {})
    if "loop_s" in sent:
        node.config.stash[_COSTS].loops_s.append(sent["loop_s"])  # type: ignore[attr-defined]


class _Collector:
    def __init__(self, costs: Costs) -> None:
        self._costs = costs

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if (cost := getattr(report, "cost", None)) is not None:
            wall_s, cpu_s, shared_s = cost
            self._costs.tests[report.nodeid] = (wall_s, cpu_s)
            self._costs.shared_s += shared_s


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.pluginmanager.register(_Collector(session.config.stash[_COSTS]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Keeps the costs; in a job of CI shows the slowest tests, and for a whole run the rooms above their
    budgets."""
    costs = config.stash[_COSTS]
    if not costs.tests:
        return
    if (cache := getattr(config, "cache", None)) is not None:
        cache.set("tests/costs", costs.tests)
    if not _shown():
        return
    terminalreporter.section("costs")
    for line in slowest(costs):
        terminalreporter.write_line(line)
    table = tomllib.loads(_TABLE.read_text())
    for room, cpu_s in by_room(costs, table).items():
        terminalreporter.write_line(f"         {cpu_s:8.1f} s  {room}")
    if not config.getoption("--all") and config.args_source != pytest.Config.ArgsSource.ARGS:
        for line in over_budget(costs, table):
            terminalreporter.write_line(line, yellow=True)
