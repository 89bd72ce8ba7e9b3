# SPDX-License-Identifier: Apache-2.0
"""Results in a file: what is there survives any end of the program."""

from __future__ import annotations

from pathlib import Path

import pytest
from minrpc.errors import ConfigurationError
from minrpc.tuning.candidates import Result, Space
from minrpc.tuning.results_file import ResultsFile

SPACE = Space({"A": ["1", "2", "3"]})


def written(path: Path, *numbers: int, platform: str = "posix") -> None:
    with ResultsFile(path, platform, SPACE) as file:
        for number in numbers:
            file.add(Result(SPACE[number], "correct", cycles=float(number)))


def numbers_in(path: Path, platform: str = "posix") -> list[int]:
    with ResultsFile(path, platform, SPACE) as file:
        return [one.candidate.number for one in file.earlier]


def test_what_was_added_is_there(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    written(path, 0)
    written(path, 2)
    assert numbers_in(path) == [0, 2]


def test_results_of_several_platforms_are_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    written(path, 0)
    written(path, 1, 2, platform="bare_rv32")
    assert numbers_in(path) == [0]
    assert numbers_in(path, "bare_rv32") == [1, 2]


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_line_that_was_cut_is_dropped(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "r.jsonl"
    written(path, 0, 1)
    path.write_bytes(path.read_bytes()[:-cut])
    written(path, 2)
    assert numbers_in(path) == [0, 2]


def test_the_last_word_on_a_candidate_counts(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    written(path, 0)
    with ResultsFile(path, "posix", SPACE) as file:
        file.add(Result(SPACE[0], "wrong", "returned 1, not 2"))
    with ResultsFile(path, "posix", SPACE) as file:
        assert [one.outcome for one in file.earlier] == ["wrong"]


@pytest.mark.parametrize("text", ["what\n", "[1]\n", '{"platform": "posix"}\n', "\xff\n"])
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigurationError, match="holds no results"):
        ResultsFile(path, "posix", SPACE)
    assert path.read_bytes() == text.encode("latin-1")


def test_results_of_another_space_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    written(path, 2)
    for other in (Space({"A": ["1", "2"]}), Space({"B": ["1", "2", "3"]}), Space({"A": ["3", "2", "1"]})):
        with pytest.raises(ConfigurationError, match="another space"):
            ResultsFile(path, "posix", other)


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        ResultsFile(tmp_path, "posix", SPACE)


def test_two_runs_do_not_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with ResultsFile(path, "posix", SPACE) as file:
        with pytest.raises(ConfigurationError, match="another run is adding to it"):
            ResultsFile(path, "posix", SPACE)
        file.add(Result(SPACE[1], "correct"))
    assert numbers_in(path) == [1]
