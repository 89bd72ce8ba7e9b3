# SPDX-License-Identifier: Apache-2.0
"""Coverage by counts: which lines, how files look, and that several processes add up."""

from __future__ import annotations

from pathlib import Path

from minrpc.counters import Counts, Image
from minrpc.counters.coverage import add_coverage, covered_lines, lcov, parse

from tests.unit.counters.test_image import image, named

__all__ = ["image"]


def test_executed_lines_and_others(image: Image) -> None:
    (lines,) = covered_lines(image, Counts({named(image, "work"): 7}), Path).values()
    assert lines[5] == 7
    assert lines[3] == lines[4] == 0
    assert 1 not in lines


def test_sources_that_are_not_here_are_left_out(image: Image) -> None:
    assert covered_lines(image, Counts({}), lambda name: Path(f"/nowhere/{name}")) == {}


def test_a_file_is_as_lcov_has_it() -> None:
    text = lcov({"/a.c": {3: 0, 1: 5}})
    assert text == "TN:\nSF:/a.c\nDA:1,5\nDA:3,0\nLF:2\nLH:1\nend_of_record\n"
    assert parse(text) == {"/a.c": {1: 5, 3: 0}}


def test_what_several_devices_executed_adds_up(tmp_path: Path) -> None:
    file = tmp_path / "coverage.info"
    add_coverage(file, {"/a.c": {1: 5, 3: 0}})
    add_coverage(file, {"/a.c": {1: 1, 2: 2}, "/b.c": {9: 9}})
    assert parse(file.read_text()) == {"/a.c": {1: 6, 2: 2, 3: 0}, "/b.c": {9: 9}}
