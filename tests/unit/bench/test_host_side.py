# SPDX-License-Identifier: Apache-2.0
"""What the host's side costs: opening a device, a call, the start of pytest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from minrpc import PLATFORMS, Target, lacking
from minrpc_bench import opening, start_up
from minrpc_bench.cpu import replayed_calls
from minrpc_bench.peers import Peers, build_peers, busy_processors


@pytest.fixture(scope="module")
def posix() -> Peers:
    missing = lacking(PLATFORMS["posix"])
    if missing:
        pytest.skip(f"posix lacks {', '.join(item.name for item in missing)}")
    return build_peers(Target(PLATFORMS["posix"]))


@pytest.mark.slow
def test_opening_has_a_goal_in_microseconds(posix: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_CALLS", {"process": 1})
    wall, cpu = opening.measure(posix, 1)
    assert (wall.unit, wall.goal and wall.goal.limit, cpu.goal) == ("us", 3000.0, None)
    assert wall.value > 0 < cpu.value
    assert os.sched_getaffinity(0) == os.sched_getaffinity(os.getppid())


def test_what_the_plugin_adds_is_the_difference_of_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([1.0, 0.5, 0.4, 0.6, 0.4, 0.9, 0.4])
    asked: list[tuple[str, ...]] = []

    def spent(directory: Path, *options: str) -> float:
        assert (directory / "test_nothing.py").is_file()
        asked.append(options)
        return next(times)

    monkeypatch.setattr(start_up, "_cpu_s", spent)
    row = start_up.measure(3)
    assert row.value == pytest.approx(0.2e6)
    assert row.verdict == "missed"
    assert asked[1:3] == [(), ("-p", "no:minrpc")]
    assert "600 ms of CPU time with it, 400 without" in row.note


@pytest.mark.slow
def test_pytest_is_run_and_its_time_is_that_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text("def test_nothing(): pass\n")
    assert start_up._cpu_s(tmp_path, "-p", "no:minrpc") > 0


@pytest.mark.slow
def test_replayed_calls_are_made_without_the_device(posix: Peers) -> None:
    with replayed_calls(posix.server) as calls:
        assert set(calls) == {"inc", "add, 3 tensors"}
        assert calls["inc"]() == 2
        calls["add, 3 tensors"]()
        assert calls["inc"]() == 2


def test_processors_are_busy_only_meanwhile_and_never_at_a_real_time_priority() -> None:
    before = children()
    with busy_processors():
        programs = children() - before
        assert len(programs) == os.cpu_count()
        assert {os.sched_getscheduler(int(program)) for program in programs} == {os.SCHED_OTHER}
    assert children() == before


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())
