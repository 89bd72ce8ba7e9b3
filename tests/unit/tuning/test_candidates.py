# SPDX-License-Identifier: Apache-2.0
"""Spaces, their candidates, results as JSON lines, and the Pareto front."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st
from minrpc import ConfigurationError
from minrpc.tuning import Candidate, CandidateResult, Space
from minrpc.tuning.candidates import best, pareto, parse_flags, parse_param, t4
from minrpc.tuning.strategies import STRATEGIES

SPACES = st.builds(
    Space,
    st.dictionaries(
        st.sampled_from("ABC"), st.lists(st.sampled_from("1234"), min_size=1, max_size=4, unique=True)
    ),
    st.lists(st.sampled_from([("-O2",), ("-O3", "-g"), ()]), min_size=1, max_size=3, unique=True),
)


@given(SPACES)
def test_a_space_has_each_combination_once(space: Space) -> None:
    found = list(space)
    assert len(found) == len(space)
    assert len({(item.defines, item.flags) for item in found}) == len(space)
    assert [item.number for item in found] == list(range(len(space)))
    with pytest.raises(IndexError):
        space[len(space)]


@given(SPACES, st.integers(0, 5), st.sampled_from(["all", "random"]))
def test_a_strategy_proposes_each_once(space: Space, seed: int, name: str) -> None:
    strategy = STRATEGIES[name](space, seed)
    asked = [strategy.ask() for _ in range(len(space))]
    assert sorted(number for number in asked if number is not None) == list(range(len(space)))
    assert strategy.ask() is None


def test_a_seed_says_the_order() -> None:
    space = Space({"A": [str(number) for number in range(50)]})

    def order(seed: int) -> list[int | None]:
        strategy = STRATEGIES["random"](space, seed)
        return [strategy.ask() for _ in range(50)]

    assert order(1) == order(1)
    assert order(1) != order(2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("UNROLL=1,2,4", ("UNROLL", ["1", "2", "4"])),
        ("B=16:64:16", ("B", ["16", "32", "48", "64"])),
        ("B=1:3", ("B", ["1", "2", "3"])),
        ("B=3:3", ("B", ["3"])),
        ("T=float, double", ("T", ["float", "double"])),
        ("A=1,1", ("A", ["1"])),
    ],
)
def test_parameters(text: str, expected: tuple[str, list[str]]) -> None:
    assert parse_param(text) == expected


@pytest.mark.parametrize("text", ["UNROLL", "=1", "1A=2", "B=5:1", "B=1:5:0", "B=0:1000000"])
def test_parameters_that_are_none(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_param(text)


def test_flags() -> None:
    assert parse_flags("-O2,-O3 -funroll-loops,-O2") == [("-O2",), ("-O3", "-funroll-loops")]


def result(
    number: int, cycles: float, code: int, stack: int = 0, outcome: str = "correct"
) -> CandidateResult:
    return CandidateResult(Candidate(number), outcome, "", cycles, cycles / 1e6, code, stack)  # type: ignore[arg-type]


def test_the_best() -> None:
    assert best([]) is None
    found = best([result(0, 5, 10), result(1, 4, 20), result(2, 4, 15), result(3, 1, 1, outcome="wrong")])
    assert found is not None
    assert found.candidate.number == 2


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5)), max_size=12))
def test_the_front(figures: list[tuple[int, int, int]]) -> None:
    """A candidate outside the front is beaten by a member; members do not beat each other."""
    results = [result(number, *figure) for number, figure in enumerate(figures)]
    front = [(item.cost, item.code_bytes, item.frame_bytes) for item in pareto(results)]
    for figure in figures:
        assert any(all(mine <= other for mine, other in zip(kept, figure, strict=True)) for kept in front)
    assert len(set(front)) == len(front)
    for kept in front:
        assert not any(
            other != kept and all(mine <= its for mine, its in zip(other, kept, strict=True))
            for other in front
        )


def test_a_failed_candidate_has_no_numbers_in_its_line() -> None:
    line = CandidateResult(Candidate(1), "crash", "a null pointer").to_json()
    assert [line[key] for key in ("cost", "call_s", "code_bytes", "frame_bytes")] == [None] * 4
    assert CandidateResult.from_json(line) == CandidateResult(Candidate(1), "crash", "a null pointer")
    wrong = CandidateResult(Candidate(1), "wrong", "", code_bytes=40).to_json()
    assert [wrong[key] for key in ("cost", "code_bytes", "frame_bytes")] == [None, 40, 0]


def test_a_result_survives_as_a_line() -> None:
    item = CandidateResult(
        Candidate(3, (("A", "1"),), ("-O2",)), "correct", "", 1.5, 2e-6, 10, 8, {"loads": 3}, {"load": 1}
    )
    assert CandidateResult.from_json(json.loads(json.dumps(item.to_json()))) == item


def test_t4() -> None:
    found = t4([result(0, 5, 10), result(1, 0, 0, outcome="hang")])["results"]
    assert [item["invalidity"] for item in found] == ["correct", "timeout"]
    assert found[0]["measurements"][0] == {"name": "time", "value": 5e-6, "unit": "seconds"}
    assert found[1]["measurements"] == []


def test_a_condition_leaves_candidates_out_and_keeps_their_numbers() -> None:
    params = {"TI": ["1", "2", "4"], "TJ": ["1", "4"]}
    space = Space(params, [("-O2",), ("-O3",)], "TI*TJ <= 8 and (TI > 1 or TJ != 4)")
    due = [
        item
        for item in Space(params, space.flags)
        if _product(item) in (1, 2, 4, 8) and item.number not in (2, 3)
    ]
    assert [space[number] for number in space.numbers] == due
    assert len(space) == 12
    for name in ("all", "random"):
        check_proposals(space, name)


@pytest.mark.extra("tune")
def test_optuna_proposes_no_candidate_that_the_condition_leaves_out() -> None:
    check_proposals(Space({"A": ["1", "2", "3"], "B": ["1", "2", "3"]}, where="A < B"), "tpe")


def check_proposals(space: Space, name: str) -> None:
    strategy = STRATEGIES[name](space, 1)
    asked = []
    while (number := strategy.ask()) is not None:
        asked.append(number)
        strategy.tell(CandidateResult(space[number], "correct", cost=float(number)))
    assert sorted(asked) == list(space.numbers)


def _product(candidate: Candidate) -> int:
    first, other = (int(value) for _, value in candidate.defines)
    return first * other


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("TI <", "not an expression"),
        ("TI < TK", "no parameter TK"),
        ("__import__('os').getpid()", "not allowed in it"),
        ("TI.real", "not allowed in it"),
        ("TI ** 999999", "not allowed in it"),
        ("TI > 'a'", "for {'TI': '1'}"),
        ("TI / 0", "division by zero"),
        ("TI > 9", "no candidate is left"),
    ],
)
def test_a_condition_that_is_none_is_refused(where: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        assert Space({"TI": ["1", "2"]}, where=where).numbers


def test_a_condition_has_texts_and_fractions_too() -> None:
    space = Space({"T": ["int8_t", "int"], "X": ["0.5", "2"]}, where="T == 'int' and X < 1")
    assert [str(space[number]) for number in space.numbers] == ["T=int X=0.5"]


def test_a_line_without_ticks_is_read() -> None:
    line = CandidateResult(Candidate(0), "correct", "", 3.0, ticks=9.0).to_json()
    assert CandidateResult.from_json(line).ticks == 9.0
    del line["ticks"]
    assert CandidateResult.from_json(line).ticks == 0.0
