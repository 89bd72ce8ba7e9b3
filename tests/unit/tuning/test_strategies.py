# SPDX-License-Identifier: Apache-2.0
"""Strategies: proposals, learning, continued runs."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest
from minrpc import ConfigurationError
from minrpc.tuning import CandidateResult, Space, strategies
from minrpc.tuning.strategies import STRATEGIES

SPACE = Space({"A": [str(n) for n in range(16)], "B": [str(n) for n in range(16)]}, [("-O2",), ("-O3",)])


def cost(number: int) -> float:
    """An objective with its minimum at A=3, B=11, -O3."""
    named = dict(SPACE[number].defines)
    slow = 50.0 * (SPACE[number].flags == ("-O2",))
    return 100.0 + 3.0 * abs(int(named["A"]) - 3) + 2.0 * abs(int(named["B"]) - 11) + slow


def result(number: int) -> CandidateResult:
    if number % 10 == 7:
        return CandidateResult(SPACE[number], "crash", "it crashed")
    return CandidateResult(SPACE[number], "correct", cost=cost(number))


def tried(name: str, count: int, seed: int = 1, known: list[CandidateResult] | None = None) -> list[int]:
    strategy = STRATEGIES[name](SPACE, seed)
    for item in known or []:
        strategy.tell(item)
    asked = []
    for _ in range(count):
        number = strategy.ask()
        assert number is not None
        asked.append(number)
        strategy.tell(result(number))
    return asked


def best_of(numbers: list[int]) -> float:
    return min(number.cost for number in map(result, numbers) if number.valid)


@pytest.mark.extra("tune")
@pytest.mark.parametrize("flags", [[("-O2",), ("-O3",)], [("-O2",)]])
def test_tpe_proposes_nothing_twice_and_all_in_the_end(flags: list[tuple[str, ...]]) -> None:
    small = Space({"ONE": ["0"], "A": ["1", "2", "3"]}, flags)
    strategy = STRATEGIES["tpe"](small, 3)
    asked = []
    while (number := strategy.ask()) is not None:
        asked.append(number)
        strategy.tell(CandidateResult(small[number], "correct", cost=1.0))
    assert sorted(asked) == list(range(len(small)))


def test_tpe_that_proposes_only_the_first_tries_the_others_in_a_random_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    optuna = MagicMock()
    optuna.create_study.return_value.ask.return_value.suggest_categorical.return_value = 0
    monkeypatch.setattr(strategies, "import_module", lambda name: optuna)
    orders = [tried("tpe", len(SPACE), seed) for seed in (1, 2)]
    numbers = list(range(len(SPACE)))
    assert [sorted(order) for order in orders] == [numbers, numbers]
    assert orders[0] != orders[1]
    assert {order[0] for order in orders} == {0}
    optuna.create_study.return_value.add_trial.assert_not_called()  # None is another run's.


@pytest.mark.extra("tune")
def test_tpe_is_the_same_for_a_seed() -> None:
    assert tried("tpe", 40, seed=5) == tried("tpe", 40, seed=5)


@pytest.mark.extra("tune")
def test_tpe_finds_better_than_chance() -> None:
    """Over ten seeds, with 60 of 512 candidates; invalid candidates do not hinder the search."""
    by_chance = [best_of(tried("random", 60, seed)) for seed in range(10)]
    by_tpe = [best_of(tried("tpe", 60, seed)) for seed in range(10)]
    assert sum(by_tpe) < sum(by_chance)


@pytest.mark.extra("tune")
def test_tpe_learns_from_what_is_known_and_does_not_try_it_again() -> None:
    known = [result(number) for number in tried("random", 60, seed=2)]
    asked = tried("tpe", 30, seed=4, known=known)
    assert not set(asked) & {item.candidate.number for item in known}
    assert asked != tried("tpe", 30, seed=4)
    assert best_of([*asked, *(item.candidate.number for item in known)]) < best_of(
        [item.candidate.number for item in known]
    )


def test_without_optuna_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(ConfigurationError, match="needs optuna") as caught:
        STRATEGIES["tpe"](SPACE, 0)
    assert "minrpc-harness[tune]" in str(caught.value)
