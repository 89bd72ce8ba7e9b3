# SPDX-License-Identifier: Apache-2.0
"""What a device's failure says of the candidate that ran there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from minrpc.errors import (
    DeadlineError,
    DialectError,
    EmulatorExitedError,
    HarnessError,
    LinkError,
    NothingHeardError,
    SessionError,
    SessionTerminatedError,
)
from minrpc.library.compiling import Compiled
from minrpc.timing import Overhead
from minrpc.tuning.candidates import Candidate
from minrpc.tuning.compilers import Built
from minrpc.tuning.judging import Bench, _fewest
from minrpc.tuning.kernel import Kernel

from tests.unit.timing.samples import measured

UNUSED: Any = None
BUILT = Built(0.0, Compiled("k", (), (), {}, UNUSED, start=False, key=""))


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (EmulatorExitedError("it ended", status=1), "crash"),
        (SessionTerminatedError("it restarted"), "crash"),
        # What it wrote over the runtime's memory, or sent over the link, before it hung or died.
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
    monkeypatch.setattr(Bench, "_measured", fail)
    bench = Bench(Kernel(Path("k.c"), "k", ()), UNUSED, UNUSED)
    result = bench.judge(Candidate(0), BUILT)
    assert (result.outcome, result.reason) == (outcome, error.message)
    # It was tried once more, alone on a fresh one.
    assert len(opened) == 2
    # What another device has tried before is not.
    assert bench.judge(Candidate(0), BUILT, again=True).outcome == outcome
    assert len(opened) == 3


def test_cycles_are_those_of_whole_instructions_without_what_measuring_takes() -> None:
    """An instruction takes 3.2 cycles: 3,125 in the batch, 76 of the timer, 11 of each call."""
    found = measured([10_001, 10_000, 10_002], 10, overhead=Overhead(timer=243.0, call=35.2))
    assert _fewest(found, 10) == pytest.approx((3125 - 76 - 10 * 11) * 3.2 / 10)


class Device:
    """One that can be closed."""

    def close(self) -> None:
        """As a device does."""
