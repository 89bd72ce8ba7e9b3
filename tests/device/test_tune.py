# SPDX-License-Identifier: Apache-2.0
"""Tuning on every device that can load code: each kind of invalid candidate is an outcome and does not end
the run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc import Device, Firmware, library_of, open_device
from minrpc.tuning import Candidate, CandidateResult, Kernel, Space, judging, tune
from minrpc.tuning.candidates import best

SOURCE = Path(__file__).with_name("c") / "tuned.c"
FAULTS = {"0": "correct", "1": "compile", "2": "link", "3": "crash", "4": "hang", "5": "wrong", "7": "wrong"}


def right(a: np.ndarray, b: np.ndarray, n: int) -> int:
    return int(np.dot(a[:n].astype(np.int32), b[:n].astype(np.int32)))


@pytest.fixture
def kernel(compiler_here: None, device: Device, firmware: Firmware | None) -> Kernel:
    if firmware is None or not device.rpc.global_function("minrpc.code_load"):
        pytest.skip("its firmware is not known, or can't load code")
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-128, 128, 64, np.int8) for _ in range(2))
    return Kernel(SOURCE, "dot", (a, b, 64), right)


def told(results: list[CandidateResult]) -> dict[int, tuple[object, ...]]:
    return {result.candidate.number: (result.outcome, result.cost, result.code_bytes) for result in results}


@pytest.mark.once
def test_every_outcome(kernel: Kernel, firmware: Firmware) -> None:
    space = Space({"FAULT": list(FAULTS)})
    results = list(tune(kernel, space, firmware, call_timeout_s=0.5))
    for result in results:
        assert result.outcome == FAULTS[dict(result.candidate.defines)["FAULT"]], result
        assert result.valid == (result.cost > 0)
        assert result.valid != bool(result.reason)
    assert sorted(result.candidate.number for result in results) == list(range(len(space)))
    assert best(results) is not None


@pytest.mark.slow
def test_core_cycles_are_an_objective(kernel: Kernel, firmware: Firmware, image: Firmware) -> None:
    """Each candidate's value equals a separate measurement; wait states of flash make it larger."""
    if image.target.platform.core not in ("cortex-m3", "cortex-m4", "cv32e40p"):
        pytest.skip("no core with a table stands for this platform")
    space = Space({"UNROLL": ["1", "4"]})
    at_once, waiting = (
        {
            item.candidate.number: item.counters["cycles"]
            for item in tune(
                replace(kernel, objective="cycles"), space, firmware.changed(flash_wait_states=n)
            )
        }
        for n in (0, 5)
    )
    with open_device(image.changed(counters=True)) as device:
        lib = library_of(device.load(SOURCE, defines={"UNROLL": "4"}))
        measured = lib.measure("dot", number=1, repeat=2, counters=["cycles"])(*kernel.arguments)
    assert at_once[1] == pytest.approx(measured.counter_per_call("cycles"), abs=40)
    assert all(at_once[number] < waiting[number] for number in at_once)


@pytest.mark.slow
def test_a_candidate_that_stops_the_timer_spoils_no_other(
    device: Device, kernel: Kernel, firmware: Firmware
) -> None:
    clock = device.clock()
    if clock is None or clock.source != "SysTick" or not clock.exact:
        pytest.skip("its timer is not SysTick")
    results = list(tune(kernel, Space({"FAULT": ["0", "8"], "UNROLL": ["1", "4"]}), firmware))
    found = {(dict(result.candidate.defines)["FAULT"], result.outcome) for result in results}
    assert found == {("0", "correct"), ("8", "clock")}
    reason = "dot changed SysTick's CTRL, the device's clock: its time is not known"
    assert {result.reason for result in results if not result.valid} == {reason}
    again = list(tune(kernel, Space({"FAULT": ["0"], "UNROLL": ["1", "4"]}), firmware))
    assert [item.cost for item in again] == [result.cost for result in results if result.valid]


@pytest.mark.slow
def test_more_devices_say_the_same(
    device: Device, kernel: Kernel, firmware: Firmware, image: Firmware
) -> None:
    """The law for exact times: results do not depend on the number of devices."""
    clock = device.clock()
    if clock is None or clock.ticks_per_instruction is None or clock.ticks_per_instruction < 2:
        pytest.skip(f"{image.target.name}: a tick of its clock is longer than half an instruction")
    space = Space({"UNROLL": ["1", "2", "4", "8"], "FAULT": ["0", "3"]}, [("-O2",), ("-Os",)])
    item = told(list(tune(kernel, space, firmware, jobs=1)))
    two = told(list(tune(kernel, space, firmware, jobs=2, strategy="random", seed=3)))
    assert item == two


# One in ten of a thousand candidates is invalid, by its number.
BAD = {3: "crash", 4: "hang", 5: "wrong"}


def bad_space(count: int) -> tuple[Space, dict[int, str]]:
    """Candidates of which one in ten crashes, hangs or is wrong, and the expected outcome of each."""
    faults = [str(3 + number // 10 % 3) if number % 10 == 6 else "0" for number in range(count)]
    # A macro gives the kernel its number, so that all are different to the compiler and to the device.
    space = Space({"CANDIDATE": [f"{number}" for number in range(count)]})
    return space, {number: BAD.get(int(fault), "correct") for number, fault in enumerate(faults)}


@pytest.mark.slow
def test_each_verdict_is_right_and_twice_the_same(
    device: Device,
    kernel: Kernel,
    firmware: Firmware,
    amount: Callable[[int, int], int],
    record_property: Callable[[str, object], None],
) -> None:
    """30 candidates, with --load 1,000; hangs are given up after half a second of the device's time."""
    space, due = bad_space(amount(30, 1000))
    clock = device.clock()
    exact = clock is not None and clock.exact
    begin = time.monotonic()
    runs = [list(tune(kernel, space, firmware, jobs=jobs, call_timeout_s=0.5)) for jobs in (1, 2)]
    record_property("candidates a minute", round(2 * len(space) / (time.monotonic() - begin) * 60))
    for results in runs:
        assert {result.candidate.number: result.outcome for result in results} == due
    if exact:
        dump, other = (
            sorted(
                json.dumps({**result.to_json(), "stage_s": {}, "reason": ""}, sort_keys=True)
                for result in results
            )
            for results in runs
        )
        assert dump == other


@pytest.mark.once
def test_a_device_that_dies_by_itself_costs_no_candidate(
    kernel: Kernel, firmware: Firmware, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device's process is killed during a candidate, which is tried again on another device."""
    opened: list[Device] = []

    def opening(*args: object, **given: object) -> Device:
        opened.append(open_device(*args, **given))  # type: ignore[arg-type]
        return opened[-1]

    tries: list[str] = []
    tried = judging.Bench._tried

    def recorded(bench: judging.Bench, *given: Any) -> CandidateResult:  # noqa: ANN401
        result = tried(bench, *given)
        tries.append(f"{result.candidate.number} {result.outcome} {result.reason}")
        return result

    monkeypatch.setattr(judging.Bench, "_tried", recorded)
    monkeypatch.setattr(judging, "open_device", opening)
    space = Space({"UNROLL": ["1", "2", "4", "8"]}, [("-O2",), ("-Os",)])
    outcomes = []
    for result in tune(kernel, space, firmware):
        outcomes.append(result.outcome)
        if len(outcomes) == 3:
            process = getattr(opened[-1].owner, "process", None)
            assert process is not None
            process.kill()
            process.wait()
    assert outcomes == ["correct"] * len(space)
    assert len(opened) == 2, tries


@pytest.mark.once
def test_what_is_not_checked_is_believed_and_the_best_is_checked_at_the_end(
    kernel: Kernel, firmware: Firmware
) -> None:
    # Candidate 5 returns a wrong result; 6 computes nothing and is the fastest, also where others need the
    # processor: the right result takes thousands of steps.
    ones = np.ones(8192, np.int8)
    kernel = replace(kernel, arguments=(ones, ones, ones.size))
    space = Space({"FAULT": ["5", "0", "6"]})
    told = {
        item.candidate.number: item.outcome for item in tune(replace(kernel, check_every=2), space, firmware)
    }
    assert told == {0: "wrong", 1: "correct", 2: "wrong"}
    results = list(tune(replace(kernel, check_every=0), space, firmware))
    assert [result.outcome for result in results[:3]] == ["correct"] * 3
    assert [result.outcome for result in results if result.candidate.number == 2] == ["correct", "wrong"]
    assert results[-1].valid
    assert results[-1].candidate.number == 1 or len(results) == 6


@pytest.mark.once
def test_a_budget_and_what_is_done(kernel: Kernel, firmware: Firmware) -> None:
    space = Space({"UNROLL": ["1", "2", "4", "8"]})
    results = list(tune(kernel, space, firmware, budget=2, known=[CandidateResult(Candidate(0), "correct")]))
    assert [result.candidate.number for result in results] == [1, 2]


@pytest.mark.once
def test_stopping_leaves_nothing(kernel: Kernel, firmware: Firmware) -> None:
    trying = tune(kernel, Space({"UNROLL": ["1", "2", "4", "8"]}), firmware)
    next(trying)
    trying.close()
    unchecked = replace(kernel, check=None)
    assert next(tune(unchecked, Space({"FAULT": ["5"]}), firmware)).valid
