# SPDX-License-Identifier: Apache-2.0
"""The tried candidates, their number, and the results that decide; without a device."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from minrpc import ConfigurationError
from minrpc.tuning import Candidate, CandidateResult, Kernel, Space, tune

SPACE = Space({"A": ["1", "2", "3", "4"]})
UNUSED: Any = None


class Judges:
    """Judges every candidate as right, and as faster than the candidate before."""

    ahead = 2

    def __init__(self, wrong: tuple[int, ...] = ()) -> None:
        self.tried: list[tuple[int, bool | None]] = []
        self._wrong = wrong
        self._waiting: list[CandidateResult] = []

    def __enter__(self) -> Judges:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def put(self, candidate: Candidate, *, check: bool | None = None) -> None:
        self.tried.append((candidate.number, check))
        wrong = check and candidate.number in self._wrong
        self._waiting.append(
            CandidateResult(candidate, "wrong" if wrong else "correct", cost=10.0 - candidate.number)
        )

    def get(self) -> CandidateResult:
        return self._waiting.pop(0)


def right(x: np.ndarray) -> None:
    x += 1


KERNEL = Kernel(Path("k.c"), "k", (np.arange(4),), right)


@pytest.mark.parametrize(("budget", "tried"), [(None, 4), (4, 4), (9, 4), (3, 3), (1, 1)])
def test_a_budget_is_not_passed(budget: int | None, tried: int) -> None:
    judges = Judges()
    assert len(list(tune(KERNEL, SPACE, UNUSED, budget=budget, workers=judges))) == tried
    assert judges.tried == [(number, None) for number in range(tried)]


def test_what_is_known_is_not_tried_again() -> None:
    judges = Judges()
    known = [CandidateResult(SPACE[number], "correct", cost=1.0) for number in (0, 2)]
    assert [item.candidate.number for item in tune(KERNEL, SPACE, UNUSED, known=known, workers=judges)] == [
        1,
        3,
    ]
    assert [number for number, _ in judges.tried] == [1, 3]


def test_the_best_is_checked_until_one_is_right() -> None:
    judges = Judges(wrong=(3, 2))
    results = list(tune(replace(KERNEL, check_every=0), SPACE, UNUSED, workers=judges))
    assert [(result.candidate.number, result.outcome) for result in results[4:]] == [
        (3, "wrong"),
        (2, "wrong"),
        (1, "correct"),
    ]
    assert judges.tried[4:] == [(3, True), (2, True), (1, True)]


@pytest.mark.parametrize(("every", "checked"), [(0, []), (1, [0, 1, 2, 3]), (2, [0, 2]), (3, [0, 3])])
def test_each_so_many_th_is_checked(every: int, checked: list[int]) -> None:
    kernel = replace(KERNEL, check_every=every)
    assert [number for number in range(4) if kernel.checks(SPACE[number])] == checked
    assert not replace(kernel, check=None).checks(SPACE[0])


def test_a_check_leaves_the_kernels_arguments() -> None:
    """Each candidate is called with the same arguments as the first."""

    def kernel(x: np.ndarray) -> None:
        x += 1

    def lazy(x: np.ndarray) -> None:
        x[1:] += 1

    for _ in range(2):
        assert KERNEL.wrong(kernel) == ""
        assert KERNEL.wrong(lazy) == "argument 0: element 0 is 0, not 1"
    assert KERNEL.arguments[0] is not None
    np.testing.assert_array_equal(np.asarray(KERNEL.arguments[0]), np.arange(4))


@pytest.mark.parametrize(("due", "wrong"), [(None, ""), (3, ""), (4, "returned 3, not 4"), (3.0000001, "")])
def test_a_result_is_compared_where_the_check_gives_one(due: float | None, wrong: str) -> None:
    kernel = replace(KERNEL, check=lambda x: due)
    assert kernel.wrong(lambda x: 3) == wrong


def test_a_wrong_integer_is_found_however_near_it_is() -> None:
    kernel = Kernel(Path("k.c"), "k", (np.full(2, 200000, np.int32),), right)
    assert kernel.wrong(lambda x: x.__setitem__(slice(2), [200001, 200002])) == (
        "argument 0: element 1 is 200002, not 200001"
    )


def test_a_wrong_struct_is_found() -> None:
    def check(x: np.ndarray) -> None:
        x["a"] = 1

    kernel = Kernel(Path("k.c"), "k", (np.zeros(2, [("a", "i4"), ("b", "i2")]),), check)
    assert kernel.wrong(lambda x: None) == "argument 0: element 0 is (0, 0), not (1, 0)"


@pytest.mark.parametrize("jobs", [0, -1])
def test_a_run_has_at_least_one_device(jobs: int) -> None:
    with pytest.raises(ConfigurationError, match=f"jobs is at least 1, not {jobs}"):
        next(tune(KERNEL, SPACE, UNUSED, jobs=jobs))


@pytest.mark.parametrize(
    ("jobs", "budget", "devices"), [(2, None, 2), (99, None, 4), (99, 3, 3), (99, 9, 4), (2, 0, 1)]
)
def test_more_devices_than_candidates_are_not_started(
    monkeypatch: pytest.MonkeyPatch, jobs: int, budget: int | None, devices: int
) -> None:
    asked = Mock(return_value=Judges())
    monkeypatch.setattr(sys.modules[tune.__module__], "Devices", asked)
    list(tune(KERNEL, SPACE, UNUSED, jobs=jobs, budget=budget))
    assert asked.call_args.args[2] == devices
