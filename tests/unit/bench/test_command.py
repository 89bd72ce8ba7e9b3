# SPDX-License-Identifier: Apache-2.0
"""`minrpc bench` as it is typed: what it measures, and what it refuses before it measures."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from minrpc import BuildError, ConfigurationError, Platform
from minrpc_bench import command as bench
from minrpc_bench import run as bench_run
from minrpc_bench import sizes
from minrpc_bench.peers import Peers
from minrpc_bench.rows import Report, Row, SourceSize
from minrpc_bench.run import DEFAULT_GROUPS, Plan


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """What would have been measured."""
    seen: list[Plan] = []

    def measure(plan: Plan, say: object) -> Report:
        seen.append(plan)
        return Report({"machine": "none"}, [Row("size", "text", "Cortex-M3", "bytes", 8000.0 + len(seen))])

    monkeypatch.setattr(bench, "run", measure)
    return seen


def typed(*words: str) -> int:
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    parser.set_defaults(command="bench")
    return bench.main(parser.parse_args(words))


def test_by_default_all_but_the_suite_on_what_needs_no_workspace(plans: list[Plan]) -> None:
    assert typed() == 0
    assert [target.name for target in plans[0].targets] == ["posix", "bare_mps2_an385"]
    assert plans[0].groups == DEFAULT_GROUPS
    assert "suite" not in DEFAULT_GROUPS


def test_what_is_asked_for(plans: list[Plan]) -> None:
    typed("--platform", "qemu_x86,posix", "--only", "boot, round trip", "--rounds", "3")
    assert [target.name for target in plans[0].targets] == ["qemu_x86", "posix"]
    assert plans[0].groups == ["round trip", "boot"]
    assert plans[0].rounds == 3


def test_sizes_alone(plans: list[Plan]) -> None:
    typed("--sizes")
    assert plans[0].groups == ("size",)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "lunch"], "lunch"),
        (["--rounds", "0"], "at least one"),
        (["--platform", "nowhere"], "nowhere"),
        (["--compare", "missing.json"], "can't be read"),
        (["--plot", "plot.txt"], "a plot is one of"),
    ],
)
def test_nonsense_is_refused_before_anything_is_measured(
    plans: list[Plan], words: list[str], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        typed(*words)
    assert plans == []


def test_a_result_is_kept_and_compared_with(
    plans: list[Plan], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "base.json"
    typed("--sizes", "--json", str(kept))
    typed("--sizes", "--compare", str(kept))
    assert "8001" in kept.read_text()
    assert "8001" in capsys.readouterr().out


def test_a_part_that_fails_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(platform: Platform) -> Peers:
        raise BuildError(f"{platform.name} did not build")

    monkeypatch.setattr(bench_run, "build_peers", fail)
    source = SourceSize("arena.c", 500, 0, 0, 8, "grow", {})
    monkeypatch.setattr(sizes, "measure", lambda: sizes.Sizes([source], 400, 500, {}))
    assert typed("--platform", "posix", "--only", "boot,size") == 1
    shown = capsys.readouterr()
    assert "arena.c" in shown.out
    assert "posix: building: posix did not build" in shown.err


def test_sizes_need_no_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "measure", lambda: sizes.Sizes([], 400, 0, {}))
    monkeypatch.setattr(bench_run, "build_peers", pytest.fail)
    report = bench_run.run(Plan([], ("size",)), print)
    assert {row.group for row in report.rows} == {"size"}
