# SPDX-License-Identifier: Apache-2.0
"""Tuning on every device that can load code: each way to be invalid is an outcome, none is an end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from minrpc.client import Device
from minrpc.firmware import Firmware
from minrpc.tuning import Kernel, Result, Space, tune
from minrpc.tuning.candidates import Candidate, best

SOURCE = Path(__file__).with_name("c") / "tuned.c"
FAULTS = {"0": "correct", "1": "compile", "2": "link", "3": "crash", "4": "hang", "5": "wrong"}


def right(a: np.ndarray, b: np.ndarray, n: int) -> int:
    return int(np.dot(a[:n].astype(np.int32), b[:n].astype(np.int32)))


@pytest.fixture
def kernel(device: Device, firmware: Firmware | None) -> Kernel:
    if firmware is None or not device.rpc.global_function("minrpc.code_load"):
        pytest.skip("its firmware is not known, or can't load code")
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-128, 128, 64, np.int8) for _ in range(2))
    return Kernel(SOURCE, "dot", (a, b, 64), right)


def told(results: list[Result]) -> dict[int, tuple[object, ...]]:
    return {one.candidate.number: (one.outcome, one.cycles, one.code_bytes) for one in results}


def test_every_outcome(kernel: Kernel, firmware: Firmware) -> None:
    space = Space({"FAULT": list(FAULTS), "UNROLL": ["1", "4"]})
    results = list(tune(kernel, space, firmware, call_timeout_s=1.0))
    for one in results:
        assert one.outcome == FAULTS[dict(one.candidate.defines)["FAULT"]], one
        assert one.valid == (one.cycles > 0)
        assert one.valid != bool(one.reason)
    assert sorted(one.candidate.number for one in results) == list(range(len(space)))
    assert best(results) is not None


def test_more_devices_say_the_same(
    device: Device, kernel: Kernel, firmware: Firmware, image: Firmware
) -> None:
    """The law, where times are exact: results do not depend on how many devices there are."""
    clock = device.clock()
    if clock is None or clock.cycles_per_instruction is None or clock.cycles_per_instruction < 2:
        pytest.skip(f"{image.target.name}: a tick of its clock is longer than half an instruction")
    space = Space({"UNROLL": ["1", "2", "4", "8"], "FAULT": ["0", "3"]}, [("-O2",), ("-Os",)])
    one = told(list(tune(kernel, space, firmware, jobs=1)))
    two = told(list(tune(kernel, space, firmware, jobs=2, strategy="random", seed=3)))
    assert one == two


def test_a_budget_and_what_is_done(kernel: Kernel, firmware: Firmware) -> None:
    space = Space({"UNROLL": ["1", "2", "4", "8"]})
    results = list(tune(kernel, space, firmware, budget=2, known=[Result(Candidate(0), "correct")]))
    assert [one.candidate.number for one in results] == [1, 2]


def test_stopping_leaves_nothing(kernel: Kernel, firmware: Firmware) -> None:
    trying = tune(kernel, Space({"UNROLL": ["1", "2", "4", "8"]}), firmware)
    next(trying)
    trying.close()
    unchecked = replace(kernel, check=None)
    assert next(tune(unchecked, Space({"FAULT": ["5"]}), firmware)).valid
