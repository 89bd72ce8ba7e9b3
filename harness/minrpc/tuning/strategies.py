# SPDX-License-Identifier: Apache-2.0
"""Strategies choose the candidates and their order: all, random candidates, or optuna's proposals."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final, Protocol

from minrpc.errors import ConfigurationError
from minrpc.tuning.candidates import CandidateResult, Space

# Cycles of an invalid candidate for a search: more than of any valid candidate.
_WORST: Final = float("inf")


class Strategy(Protocol):
    """Protocol: proposes numbers of candidates, and learns from their results."""

    def ask(self) -> int | None:
        """The next candidate's number, never the same twice; None if there is no more."""

    def tell(self, result: CandidateResult) -> None:
        """Learn from a result."""


class _Listed:
    """A fixed list of numbers."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers

    def ask(self) -> int | None:
        return next(self._numbers, None)

    def tell(self, result: CandidateResult) -> None:
        pass


def every(space: Space, seed: int) -> Strategy:
    """All candidates, in the order of the space."""
    del seed
    return _Listed(iter(space.numbers))


def random_order(space: Space, seed: int) -> Strategy:
    """All candidates, in a random order from the seed."""
    numbers = list(space.numbers)
    random.Random(seed).shuffle(numbers)
    return _Listed(iter(numbers))


class _Tpe:
    """Optuna's tree-structured Parzen estimator over the parameters and the flags."""

    def __init__(self, space: Space, seed: int) -> None:
        try:
            self._optuna: Any = import_module("optuna")
        except ImportError as error:
            raise ConfigurationError(
                "--strategy tpe needs optuna", next_step="pip install 'minrpc-harness[tune]'"
            ) from error
        self._optuna.logging.set_verbosity(self._optuna.logging.ERROR)
        self._study = self._optuna.create_study(sampler=self._optuna.samplers.TPESampler(seed=seed))
        self._space = space
        self._trials: dict[int, Any] = {}
        self._left = list(space.numbers)
        allowed = set(self._left)
        self._seen = {number: _WORST for number in range(len(space)) if number not in allowed}
        random.Random(seed).shuffle(self._left)

    def ask(self) -> int | None:
        """A new proposal. Repeated proposals are answered from memory; after 20 of them a random candidate is
        taken."""
        for _ in range(20):
            trial = self._study.ask()
            number = self._number(trial)
            if number not in self._seen and number not in self._trials:
                self._trials[number] = trial
                return number
            self._study.tell(trial, self._seen.get(number, _WORST))
        while self._left:
            number = self._left.pop()
            if number not in self._seen and number not in self._trials:
                self._trials[number] = None
                return number
        return None

    def _learn(self, result: CandidateResult, cost: float) -> None:
        """Learn from another run's result, as if it had been proposed here."""
        choices = {name: len(values) for name, values in self._space.params.items()}
        choices["flags"] = len(self._space.flags)
        rest, places = result.candidate.number, {}
        for name, count in reversed(choices.items()):
            rest, places[name] = divmod(rest, count)
        several = [name for name, count in choices.items() if count > 1]
        categorical = self._optuna.distributions.CategoricalDistribution
        self._study.add_trial(
            self._optuna.trial.create_trial(
                params={name: places[name] for name in several},
                distributions={name: categorical(list(range(choices[name]))) for name in several},
                value=cost,
            )
        )

    def _number(self, trial: Any) -> int:  # noqa: ANN401
        number = 0
        for name, values in self._space.params.items():
            place = trial.suggest_categorical(name, list(range(len(values)))) if len(values) > 1 else 0
            number = number * len(values) + place
        flags = len(self._space.flags)
        return number * flags + (trial.suggest_categorical("flags", list(range(flags))) if flags > 1 else 0)

    def tell(self, result: CandidateResult) -> None:
        number = result.candidate.number
        cost = result.cost if result.valid else _WORST
        own = number in self._trials
        trial = self._trials.pop(number, None)
        if number not in self._seen and not own:
            self._learn(result, cost)
        self._seen[number] = cost
        if trial is not None:
            self._study.tell(trial, cost)


STRATEGIES: Final[dict[str, Callable[[Space, int], Strategy]]] = {
    "all": every,
    "random": random_order,
    "tpe": _Tpe,
}
"""Strategies by their name for `--strategy`; each takes the space and a seed."""
