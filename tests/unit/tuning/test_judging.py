# SPDX-License-Identifier: Apache-2.0
"""Verdicts on the candidate that ran on a failed device."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from minrpc import (
    DeadlineError,
    DialectError,
    EmulatorExitedError,
    HarnessError,
    LinkError,
    NothingHeardError,
    SessionError,
    SessionTerminatedError,
    TimerError,
)
from minrpc.library import Compiled
from minrpc.timing import Overhead
from minrpc.tuning import Candidate, CandidateResult, Kernel
from minrpc.tuning.compilers import Built
from minrpc.tuning.judging import Bench, _fewest

from tests.unit.timing.samples import EXACT, WALL, measured

UNUSED: Any = None
CLOCK = EXACT
BUILT = Built(0.0, Compiled("k", (), (), {}, UNUSED, start=False, key=""))


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (EmulatorExitedError("it ended", status=1), "crash"),
        (SessionTerminatedError("it restarted"), "crash"),
        # Damage in the runtime's memory or on the link, done before it hung or died.
        (LinkError("no answer came, but damaged frames did"), "crash"),
        (DialectError("the answer can't be read"), "crash"),
        (SessionError("bytes came, but no answer"), "crash"),
        (NothingHeardError("not one byte came"), "crash"),
        (DeadlineError("no answer", waited_for="it", wall_s=1.0), "hang"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_candidate_does_to_its_device_ends_no_run(
    error: HarnessError, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Device] = []

    def fail(*_: object) -> None:
        raise error

    def open_device(*_: object, **__: object) -> Device:
        opened.append(Device())
        return opened[-1]

    monkeypatch.setattr("minrpc.tuning.judging.open_device", open_device)
    monkeypatch.setattr("minrpc.tuning.judging._time_of_empty_calls", lambda device: (100.0, CLOCK))
    monkeypatch.setattr(Bench, "_measured", fail)
    bench = Bench(Kernel(Path("k.c"), "k", ()), UNUSED, UNUSED)
    result = bench.judge(Candidate(0), BUILT)
    assert (result.outcome, result.reason) == (outcome, error.message)
    # The candidate was tried once more, alone on a fresh device.
    assert len(opened) == 2
    # A candidate that another device has tried before is not tried again.
    assert bench.judge(Candidate(0), BUILT, again=True).outcome == outcome
    assert len(opened) == 3


@pytest.mark.parametrize(
    ("calibrations", "outcomes", "opened"),
    [
        ([100, 100, 101], ["correct", "correct"], 1),
        # The first device is spoiled by any fault: the candidate is tried again, and is right.
        ([100, 0, 100, 100, 100], ["correct", "correct"], 2),
        ([100, 120, 100, 100, 100], ["correct", "correct"], 2),
        # The candidate is the cause; the next candidate gets a fresh device.
        ([100, 0, 100, 0, 100, 100], ["clock", "correct"], 3),
    ],
)
def test_a_time_counts_when_the_clock_is_right_after_it(
    calibrations: list[float], outcomes: list[str], opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices: list[Device] = []
    left = iter(calibrations)

    def open_device(*_: object, **__: object) -> Device:
        devices.append(Device())
        return devices[-1]

    monkeypatch.setattr("minrpc.tuning.judging.open_device", open_device)
    monkeypatch.setattr("minrpc.tuning.judging._time_of_empty_calls", lambda device: (next(left), CLOCK))
    monkeypatch.setattr(
        Bench,
        "_measured",
        lambda self, device, candidate, *_: CandidateResult(candidate, "correct", cost=5.0),
    )
    bench = Bench(Kernel(Path("k.c"), "k", ()), UNUSED, UNUSED)
    results = [bench.judge(Candidate(number), BUILT) for number in range(2)]
    assert [result.outcome for result in results] == outcomes
    assert [result.cost > 0 for result in results] == [outcome == "correct" for outcome in outcomes]
    assert len(devices) == opened
    assert list(left) == []


def test_a_clock_of_the_hosts_may_differ_but_not_stand_still(monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter([100, 100_000, 0, 100, 0])
    monkeypatch.setattr("minrpc.tuning.judging.open_device", lambda *_, **__: Device())
    monkeypatch.setattr("minrpc.tuning.judging._time_of_empty_calls", lambda device: (next(left), WALL))
    monkeypatch.setattr(
        Bench,
        "_measured",
        lambda self, device, candidate, *_: CandidateResult(candidate, "correct", cost=5.0),
    )
    bench = Bench(Kernel(Path("k.c"), "k", ()), UNUSED, UNUSED)
    assert [bench.judge(Candidate(0), BUILT).outcome for _ in range(2)] == ["correct", "clock"]


def test_a_clock_that_stands_still_from_the_start_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minrpc.tuning.judging.open_device", lambda *_, **__: Device())
    monkeypatch.setattr("minrpc.tuning.judging._time_of_empty_calls", lambda device: (0.0, CLOCK))
    with pytest.raises(TimerError, match="its clock stands still"):
        Bench(Kernel(Path("k.c"), "k", ()), UNUSED, UNUSED).judge(Candidate(0), BUILT)


class Library:
    """A library with the times of the given batches; `rights` has for each call whether it is right."""

    def __init__(self, batches: list[int], rights: list[bool]) -> None:
        self.batches, self.rights = batches, rights
        self.numbers: list[int] = []
        self.device_bytes = 1

    def measure(self, _name: str, *, number: int, **_: object) -> Any:  # noqa: ANN401 - a measurer
        self.numbers.append(number)
        return lambda *_: measured([self.batches.pop(0)], number, clock=CLOCK, overhead=Overhead(0.0, 0.0))

    def __getitem__(self, _name: str) -> object:
        return self.rights.pop(0)

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    ("batches", "rights", "outcome", "numbers"),
    [
        ([50], [True, True], "correct", [1]),
        ([50], [True, False], "wrong", [1]),  # Right only on its first call.
        ([], [False], "wrong", []),
        ([0, 0, 300], [True, True], "correct", [1, 10, 100]),
        ([0, 0, 0, 0], [True], "clock", [1, 10, 100, 1000]),
    ],
)
def test_outputs_are_looked_at_before_and_after_and_no_time_is_zero(
    batches: list[int],
    rights: list[bool],
    outcome: str,
    numbers: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = Library(batches, rights)
    monkeypatch.setattr("minrpc.tuning.judging.load_compiled", lambda *_: library)
    monkeypatch.setattr("minrpc.tuning.judging._require_callable", lambda *_: None)
    monkeypatch.setattr(Kernel, "wrong", lambda self, function: "" if function else "returned 1, not 2")
    bench = Bench(Kernel(Path("k.c"), "k", ()), UNUSED, UNUSED)
    result = bench._measured(UNUSED, Candidate(0), BUILT, True, {})
    assert (result.outcome, library.numbers) == (outcome, numbers)
    assert result.valid == (result.cost > 0)
    assert not library.rights
    assert not library.batches


@pytest.mark.parametrize(("objective", "cost"), [("time", 50.0), ("cycles", 300.0)])
def test_a_result_has_the_clocks_ticks_whatever_the_objective(
    objective: Any,  # noqa: ANN401 - a literal
    cost: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = SimpleNamespace(counters={"cycles": ()}, clock=CLOCK, counter_per_call=lambda _: 300.0)
    monkeypatch.setattr("minrpc.tuning.judging.load_compiled", lambda *_: Library([], []))
    monkeypatch.setattr("minrpc.tuning.judging._require_callable", lambda *_: None)
    monkeypatch.setattr("minrpc.tuning.judging._timed_call", lambda *_: (found, 50.0))
    bench = Bench(Kernel(Path("k.c"), "k", (), objective=objective), UNUSED, UNUSED)
    result = bench._measured(UNUSED, Candidate(0), BUILT, False, {})
    assert (result.cost, result.ticks, result.seconds) == (cost, 50.0, CLOCK.seconds(50.0))


def test_cycles_are_those_of_whole_instructions_without_what_measuring_takes() -> None:
    """An instruction takes 3.2 ticks: 3,125 in the batch, 76 of the timer, 11 of each call."""
    found = measured([10_001, 10_000, 10_002], 10, overhead=Overhead(timer=243.0, call=35.2))
    assert _fewest(found, 10) == pytest.approx((3125 - 76 - 10 * 11) * 3.2 / 10)


class Device:
    """A device that can be closed."""

    name = "board"

    def close(self) -> None:
        """Close the device."""
