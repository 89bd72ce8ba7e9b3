# SPDX-License-Identifier: Apache-2.0
"""The command line of `minrpc bench`: platforms, groups, refusals before anything is measured; sizes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from minrpc import BuildError, ConfigurationError, Platform
from minrpc.firmware import firmware_root
from minrpc_bench import command as bench, sizes
from minrpc_bench.command import GROUPS, Plan
from minrpc_bench.peers import Peers
from minrpc_bench.rows import Report, Row, SourceSize


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans, which are not measured."""
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


def test_by_default_all_groups_on_platforms_without_a_workspace(plans: list[Plan]) -> None:
    assert typed() == 0
    assert [target.name for target in plans[0].targets] == ["posix", "bare_mps2_an385"]
    assert plans[0].groups == GROUPS


def test_platforms_groups_and_rounds_are_chosen(plans: list[Plan]) -> None:
    typed("--platform", "qemu_x86,posix", "--only", "start, round trip", "--rounds", "3")
    assert [target.name for target in plans[0].targets] == ["qemu_x86", "posix"]
    assert plans[0].groups == ["round trip", "start"]
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
    ],
)
def test_nonsense_is_refused_before_anything_is_measured(
    plans: list[Plan], words: list[str], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        typed(*words)
    assert plans == []


def test_a_result_is_kept(plans: list[Plan], tmp_path: Path) -> None:
    kept = tmp_path / "base.json"
    typed("--sizes", "--json", str(kept))
    (row,) = json.loads(kept.read_text())["rows"]
    assert (row["name"], row["value"], row["unit"]) == ("text", 8001.0, "bytes")


def test_a_part_that_fails_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(platform: Platform) -> Peers:
        raise BuildError(f"{platform.name} did not build")

    monkeypatch.setattr(bench, "build_peers", fail)
    source = SourceSize("arena.c", 500, 0, 0, 8, "grow")
    monkeypatch.setattr(sizes, "measure", lambda: sizes.Sizes([source], 400, 500, {}))
    assert typed("--platform", "posix", "--only", "start,size") == 1
    shown = capsys.readouterr()
    assert "arena.c" in shown.out
    assert "posix: building: posix did not build" in shown.err


def test_sizes_need_no_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "measure", lambda: sizes.Sizes([], 400, 0, {}))
    monkeypatch.setattr(bench, "build_peers", pytest.fail)
    report = bench.run(Plan([], ("size",)), print)
    assert {row.group for row in report.rows} == {"size"}


def test_the_goal_is_for_the_text_without_options() -> None:
    sources = [
        SourceSize("crc32.c", 100, 0, 0, 0, ""),
        SourceSize("server.c", 9000, 0, 0, 0, ""),
        SourceSize("timer.c", 500, 4, 8, 0, ""),
    ]
    rows = sizes.rows(sizes.Sizes(sources, 400, 8000, {"GUARDS": 500, "CODE_LOADING": 569}))
    assert {row.name: row.value for row in rows} == {
        "text without options": 8000,
        "text with the defaults": 9100,
        "text of guards": 500,
        "text of code_loading": 569,
        "text of the timer": 500,
        "RAM beside receive buffer and arena": 412,
    }
    assert [row.verdict for row in rows] == ["met", "", "", "", "met", "met"]


def test_options_are_those_of_the_header() -> None:
    header = (firmware_root() / "zephyr-app/runtime/include/minrpc/minrpc_config.h").read_text()
    options = sizes.default_options(header)
    assert {"GUARDS": 1, "CODE_LOADING": 0}.items() <= options.items()
    assert "VERSION" not in options
