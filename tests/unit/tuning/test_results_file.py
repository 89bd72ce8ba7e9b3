# SPDX-License-Identifier: Apache-2.0
"""Results in a file: written results survive any end of the program."""

from __future__ import annotations

from pathlib import Path

import pytest
from minrpc import ConfigurationError
from minrpc.tuning import CandidateResult, Space
from minrpc.tuning.results_file import ResultsFile

SPACE = Space({"A": ["1", "2", "3"]})
IDENTITY = {"source": "1", "arguments": "2", "check": "3", "compiler": "4", "firmware": "5"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "r.jsonl"


def written(path: Path, *numbers: int, platform: str = "posix") -> None:
    with ResultsFile(path, platform, SPACE, IDENTITY) as file:
        for number in numbers:
            file.add(CandidateResult(SPACE[number], "correct", cost=float(number)))


def numbers_in(path: Path, platform: str = "posix") -> list[int]:
    with ResultsFile(path, platform, SPACE, IDENTITY) as file:
        return [item.candidate.number for item in file.earlier]


def test_what_was_added_is_there(path: Path) -> None:
    written(path, 0)
    written(path, 2)
    assert numbers_in(path) == [0, 2]


def test_results_of_several_platforms_are_kept_apart(path: Path) -> None:
    written(path, 0)
    written(path, 1, 2, platform="bare_rv32")
    assert numbers_in(path) == [0]
    assert numbers_in(path, "bare_rv32") == [1, 2]


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_line_that_was_cut_is_dropped(path: Path, cut: int) -> None:
    written(path, 0, 1)
    path.write_bytes(path.read_bytes()[:-cut])
    written(path, 2)
    assert numbers_in(path) == [0, 2]


def test_the_last_word_on_a_candidate_counts(path: Path) -> None:
    written(path, 0)
    with ResultsFile(path, "posix", SPACE, IDENTITY) as file:
        file.add(CandidateResult(SPACE[0], "wrong", "returned 1, not 2"))
    with ResultsFile(path, "posix", SPACE, IDENTITY) as file:
        assert [item.outcome for item in file.earlier] == ["wrong"]


@pytest.mark.parametrize("text", ["what\n", "[1]\n", '{"platform": "posix"}\n', "\xff\n"])
def test_a_file_of_something_else_is_left_alone(path: Path, text: str) -> None:
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigurationError, match=r"r\.jsonl, line 1 holds no result"):
        ResultsFile(path, "posix", SPACE, IDENTITY)
    assert path.read_bytes() == text.encode("latin-1")


def test_results_of_another_space_are_refused(path: Path) -> None:
    written(path, 2)
    for other in (Space({"A": ["1", "2"]}), Space({"B": ["1", "2", "3"]}), Space({"A": ["3", "2", "1"]})):
        with pytest.raises(ConfigurationError, match="another space"):
            ResultsFile(path, "posix", other, IDENTITY)


@pytest.mark.parametrize("changed", [*IDENTITY, "compiler firmware"])
def test_results_of_another_version_are_refused(path: Path, changed: str) -> None:
    written(path, 0, 1)
    names = changed.split()
    shown = f"line 1 is a result of other inputs: the {', '.join(names)} (is|are) different"
    with pytest.raises(ConfigurationError, match=shown):
        ResultsFile(path, "posix", SPACE, IDENTITY | dict.fromkeys(names, "another"))


@pytest.mark.parametrize(
    ("was", "now", "reason"),
    [
        (b'"cost": 2.0', b'"cost": 1.0', "was damaged or edited"),
        (b'"correct"', b'"wrong"', "was damaged or edited"),
        (b'"platform": "posix"', b'"platform": "other"', "was damaged or edited"),
        (b'"number"', b'number"', "holds no result"),
        (b'"line_sha256"', b'"sha256"', "holds no result"),
        (b'"outcome"', b'"\xff"', "holds no result"),
    ],
)
def test_a_line_that_was_changed_is_named(path: Path, was: bytes, now: bytes, reason: str) -> None:
    written(path, 0, 1, 2)
    first, second, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second + third.replace(was, now))
    assert path.read_bytes() != first + second + third
    with pytest.raises(ConfigurationError, match=f"r.jsonl, line 3 {reason}"):
        ResultsFile(path, "posix", SPACE, IDENTITY)


def test_a_full_disk_is_told() -> None:
    with (
        ResultsFile(Path("/dev/full"), "posix", SPACE, IDENTITY) as file,
        pytest.raises(ConfigurationError, match="/dev/full can't be written: No space left on device"),
    ):
        file.add(CandidateResult(SPACE[0], "correct"))


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        ResultsFile(tmp_path, "posix", SPACE, IDENTITY)


def test_two_runs_do_not_write_one_file(path: Path) -> None:
    with ResultsFile(path, "posix", SPACE, IDENTITY) as file:
        with pytest.raises(ConfigurationError, match="another run is adding to it"):
            ResultsFile(path, "posix", SPACE, IDENTITY)
        file.add(CandidateResult(SPACE[1], "correct"))
    assert numbers_in(path) == [1]
