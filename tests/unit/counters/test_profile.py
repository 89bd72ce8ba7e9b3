# SPDX-License-Identifier: Apache-2.0
"""A profile's tables and files: sums are equal, and viewers can read them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from minrpc import HarnessError, Profile
from minrpc.counters import CallTree, Counts, Image
from minrpc.counters.profile import INTERRUPTS, unit_title
from minrpc.counters.profile_files import callgrind, flame_graph, speedscope
from minrpc.publish.recording import place_text

from tests.unit.counters.test_image import image, named

__all__ = ["image"]


@pytest.fixture
def profile(image: Image) -> Profile:
    """main, which calls work twice; an interrupt came in work."""
    main, work, stop = (named(image, name) for name in ("main", "work", "minrpc_timer_stop"))
    tree = CallTree(["?", "main", "work", "minrpc_timer_stop"], [0, 0, 1, 2], [0, 10, 6, 3], [0, 1, 2, 1])
    return Profile("main", "main", image, tree, Counts({main: 10, work: 6, stop: 3}))


def test_sums_are_equal(profile: Profile) -> None:
    profile.check()
    assert sum(row.own for row in profile.functions) == sum(profile.lines.values()) == profile.total == 19


def test_one_that_does_not_add_up_is_told(profile: Profile, image: Image) -> None:
    wrong = Profile("main", "main", image, profile.tree, Counts({named(image, "main"): 18}))
    with pytest.raises(HarnessError, match="18 by address, 19 by caller"):
        wrong.check()


def test_lines_are_those_of_the_source(profile: Profile, image: Image) -> None:
    lines = {line.number: count for line, count in profile.lines.items() if line}
    assert lines[5] == 6
    assert image.path.parent.name in next(line.file for line in profile.lines if line)


def test_a_function_that_an_interrupt_calls_too_has_its_count_without_a_line(image: Image) -> None:
    main, work = named(image, "main"), named(image, "work")
    names, parents = ["?", "main", "work", "systick_isr", "work"], [0, 0, 1, 1, 3]
    tree = CallTree(names, parents, [0, 10, 20, 0, 300], [0, 1, 1, 1, 1], [False, False, False, True, False])
    profile = Profile("main", "main", image, tree, Counts({main: 10, work: 320}))
    profile.check()
    assert sorted(profile.called_lines.values()) == [10, 20]
    assert profile.called_lines[None] == 20
    assert profile.called_elsewhere == {"work"}
    assert "called from elsewhere, too: work" in place_text(None, profile)
    alone = Profile("main", "main", image, replace(tree, own=[0, 10, 320, 0, 0]), profile.counts)
    assert {line.number: count for line, count in alone.called_lines.items() if line}[5] == 320
    assert place_text(None, alone) == "no source line known"


def test_what_an_interrupt_executed_is_a_row_of_its_own(image: Image) -> None:
    main = named(image, "main")
    names, parents = ["?", "main", "systick_isr", "count"], [0, 0, 1, 2]
    tree = CallTree(names, parents, [0, 5, 2, 1], [0, 1, 1, 4], [False, False, True, False])
    rows = Profile("main", "main", image, tree, Counts({main: 8})).functions
    assert rows == [("main", 5, 8, 1), (INTERRUPTS, 3, 3, 1)]


def test_a_function_named_like_an_interrupt_is_none(image: Image) -> None:
    main = named(image, "main")
    tree = CallTree(["?", "misread_count", "trapezoid"], [0, 0, 1], [0, 5, 2], [0, 1, 1], [False] * 3)
    rows = Profile("main", "main", image, tree, Counts({main: 7})).functions
    assert rows == [("misread_count", 5, 7, 1), ("trapezoid", 2, 2, 1)]


def test_callgrind(profile: Profile) -> None:
    text = callgrind(profile)
    assert re.search(r"^summary: 19$", text, re.MULTILINE)
    own = [int(count) for count in re.findall(r"(?<!=)^\d+ (\d+)$", text, re.MULTILINE)]
    calls = [int(count) for count in re.findall(r"^calls=.*\n\d+ (\d+)$", text, re.MULTILINE)]
    assert sum(own) - sum(calls) == 19
    assert calls == [9, 3]


def test_speedscope(profile: Profile) -> None:
    document = json.loads(speedscope(profile))
    (item,) = document["profiles"]
    assert sum(item["weights"]) == item["endValue"] == 19
    frames = [frame["name"] for frame in document["shared"]["frames"]]
    assert [[frames[index] for index in sample] for sample in item["samples"]][1] == ["main", "work"]


def test_flame_graph(profile: Profile) -> None:
    root = ElementTree.fromstring(flame_graph(profile.name, profile.settled, unit_title(profile.unit)))
    boxes = {group[0].text: float(group[1].get("width", "")) for group in root.findall("{*}g")}
    assert boxes == pytest.approx(
        {
            "main: 19 instructions (100.0%)": 1200,
            "work: 9 instructions (47.4%)": 1200 * 9 / 19,
            "minrpc_timer_stop: 3 instructions (15.8%)": 1200 * 3 / 19,
        },
        abs=0.01,
    )


def test_a_profile_by_cycles_is_drawn_in_core_cycles(profile: Profile) -> None:
    profile = replace(profile, unit="cycles")
    assert json.loads(speedscope(profile))["profiles"][0]["name"] == "main: core cycles"
    drawn = flame_graph(profile.name, profile.settled, unit_title(profile.unit))
    assert "main: 19 core cycles (100.0%)" in drawn
    assert "instructions" not in drawn
