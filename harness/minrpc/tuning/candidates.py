# SPDX-License-Identifier: Apache-2.0
"""The search space of parameters and flags, its candidates, and their results. Values, no I/O."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

from minrpc.errors import ConfigurationError
from minrpc.tuning.conditions import condition

Outcome = Literal["correct", "compile", "link", "no room", "crash", "hang", "wrong", "clock"]
"""Outcome of a candidate: "correct", or the kind of failure; "clock": the time can't be measured."""

_VALUES_MOST: Final = 1_000_000

COMPILE_TIMEOUT_S: Final = 60.0
"""Time limit for compiling and linking a candidate, in seconds of this machine."""

# Outcomes as named by the autotuning tools' T4 results format.
_T4: Final[dict[str, str]] = {
    "correct": "correct",
    "compile": "compile",
    "link": "compile",
    "no room": "constraints",
    "crash": "runtime",
    "hang": "timeout",
    "wrong": "correctness",
    "clock": "runtime",
}


@dataclass(frozen=True)
class Candidate:
    """One point of a space. number: its index there. defines: of C's preprocessor. flags: of the compiler."""

    number: int
    defines: tuple[tuple[str, str], ...] = ()
    flags: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join([*(f"{name}={value}" for name, value in self.defines), *self.flags])


@dataclass(frozen=True)
class Space:
    """All combinations of values.

    params: macros and their possible values. flags: sets of compiler flags; a candidate uses one set.
    where: a condition that the parameters of a tried candidate fulfil, "TI*TJ <= 8"; "" for none.

    Raises ConfigurationError for an invalid condition.
    """

    params: Mapping[str, Sequence[str]] = field(default_factory=dict)
    flags: Sequence[tuple[str, ...]] = ((),)
    where: str = ""

    def __post_init__(self) -> None:
        if self.where:
            condition(self.where, self.params)

    @cached_property
    def numbers(self) -> Sequence[int]:
        """Numbers of the candidates that fulfil the condition. Raises ConfigurationError if there is none."""
        if not self.where:
            return range(len(self))
        holds = condition(self.where, self.params)
        numbers = [candidate.number for candidate in self if holds(dict(candidate.defines))]
        if not numbers:
            raise ConfigurationError(f"--where {self.where}: no candidate is left", next_step="widen it")
        return numbers

    def __len__(self) -> int:
        return math.prod(map(len, self.params.values())) * len(self.flags)

    def __getitem__(self, number: int) -> Candidate:
        """The candidate of this number: the flags change first, then the last parameter."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        rest, flag = divmod(number, len(self.flags))
        chosen = []
        for name, values in reversed(list(self.params.items())):
            rest, place = divmod(rest, len(values))
            chosen.append((name, values[place]))
        return Candidate(number, tuple(reversed(chosen)), tuple(self.flags[flag]))

    def __iter__(self) -> Iterator[Candidate]:
        return (self[number] for number in range(len(self)))


@dataclass(frozen=True)
class CandidateResult:
    """The result of a candidate.

    reason: why it is invalid, one line.
    cost: of a call, the smallest of its repeats, without the cost of measuring: ticks of the clock, or cycles
        of the core if these are the objective. ticks, seconds: its time, by the clock.
    code_bytes: size on the device. frame_bytes: by gcc's count, 0 if unknown.
    counters: per call, if requested. stage_s: seconds of this machine by stage.
    """

    candidate: Candidate
    outcome: Outcome
    reason: str = ""
    cost: float = 0.0
    seconds: float = 0.0
    code_bytes: int = 0
    frame_bytes: int = 0
    counters: Mapping[str, float] = field(default_factory=dict)
    stage_s: Mapping[str, float] = field(default_factory=dict)
    ticks: float = 0.0

    @property
    def valid(self) -> bool:
        """True if the candidate is correct."""
        return self.outcome == "correct"

    def to_json(self) -> dict[str, Any]:
        """A line of a results file; only `stage_s` differs from run to run."""
        return {
            "number": self.candidate.number,
            "params": dict(self.candidate.defines),
            "flags": list(self.candidate.flags),
            "outcome": self.outcome,
            "reason": self.reason,
            "cost": self.cost if self.valid else None,
            "ticks": self.ticks if self.valid else None,
            "call_s": self.seconds if self.valid else None,
            "code_bytes": self.code_bytes or None,
            "frame_bytes": self.frame_bytes if self.code_bytes else None,
            "counters": dict(self.counters),
            "stage_s": dict(self.stage_s),
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> CandidateResult:
        """The result from a line of a results file. Raises KeyError and TypeError for another object."""
        candidate = Candidate(int(line["number"]), tuple(line["params"].items()), tuple(line["flags"]))
        return cls(
            candidate,
            line["outcome"],
            line["reason"],
            line["cost"] or 0.0,
            line["call_s"] or 0.0,
            line["code_bytes"] or 0,
            line["frame_bytes"] or 0,
            line["counters"],
            line["stage_s"],
            line.get("ticks") or 0.0,
        )


def parse_param(text: str, option: str = "--param") -> tuple[str, list[str]]:
    """ "UNROLL=1,2,4" or "BLOCK=16:128:16" (from, to and with, step). Raises ConfigurationError."""
    match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*=\s*(.+?)\s*", text)
    if match is None:
        raise ConfigurationError(f"{option} {text}: NAME=VALUES was expected", next_step="e.g. UNROLL=1,2,4")
    name, values = match[1], match[2]
    numbers = re.fullmatch(r"(-?\d+):(-?\d+)(?::(\d+))?", values)
    if numbers:
        first, last, step = int(numbers[1]), int(numbers[2]), int(numbers[3] or 1)
        if step < 1 or last < first:
            raise ConfigurationError(f"{option} {text}: an empty range", next_step="e.g. BLOCK=16:128:16")
        span = range(first, last + 1, step)
        if len(span) > _VALUES_MOST:
            raise ConfigurationError(
                f"{option} {text}: {len(span):,} values, of {_VALUES_MOST:,} at the most",
                next_step="take a larger step",
            )
        return name, [str(number) for number in span]
    return name, list(dict.fromkeys(value.strip() for value in values.split(",")))


def parse_flags(text: str) -> list[tuple[str, ...]]:
    """ "-O2,-O3 -funroll-loops": sets with commas between them."""
    return list(dict.fromkeys(tuple(word.split()) for word in text.split(",")))


def best(results: Iterable[CandidateResult]) -> CandidateResult | None:
    """The fastest valid result; among equals the smallest code, then the first."""
    valid = [result for result in results if result.valid]
    return min(valid, key=lambda item: (item.cost, item.code_bytes, item.candidate.number), default=None)


def pareto(results: Iterable[CandidateResult]) -> list[CandidateResult]:
    """The valid results that no other result beats in time, code size and stack at once; the fastest
    first."""
    valid = sorted(
        (result for result in results if result.valid),
        key=lambda result: (result.cost, result.code_bytes, result.frame_bytes, result.candidate.number),
    )
    front: list[CandidateResult] = []
    for result in valid:
        if not any(_beats(other, result) for other in front):
            front.append(result)
    return front


def _beats(first: CandidateResult, other: CandidateResult) -> bool:
    """True if `first` is at least as good in all; between equal results the earlier wins."""
    return (
        first.cost <= other.cost
        and first.code_bytes <= other.code_bytes
        and first.frame_bytes <= other.frame_bytes
    )


def t4(results: Iterable[CandidateResult]) -> dict[str, Any]:
    """The results in the autotuning tools' T4 format 1.0.0."""
    return {"schema_version": "1.0.0", "results": [_t4_result(result) for result in results]}


def _t4_result(result: CandidateResult) -> dict[str, Any]:
    configuration = dict(result.candidate.defines)
    if result.candidate.flags:
        configuration["flags"] = " ".join(result.candidate.flags)
    seconds = result.stage_s
    measured = [("time", result.seconds, "seconds"), ("cost", result.cost, "")]
    measured += [("code", result.code_bytes, "bytes"), ("frame", result.frame_bytes, "bytes")]
    return {
        "configuration": configuration,
        "objectives": ["time"],
        "times": {
            "compilation_time": seconds.get("compile", 0.0),
            "runtimes": [result.seconds] if result.valid else [],
            "framework": seconds.get("load", 0.0),
            "validation": seconds.get("check", 0.0),
        },
        "invalidity": _T4[result.outcome],
        "correctness": 1.0 if result.valid else 0.0,
        "measurements": [{"name": name, "value": value, "unit": unit} for name, value, unit in measured]
        if result.valid
        else [],
    }
