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
from minrpc.tuning.candidates import Candidate
from minrpc.tuning.compilers import Built
from minrpc.tuning.judging import Bench
from minrpc.tuning.kernel import Kernel

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

    def measured(*_: object) -> None:
        raise error

    def open_device(*_: object, **__: object) -> Device:
        opened.append(Device())
        return opened[-1]

    monkeypatch.setattr("minrpc.tuning.judging.open_device", open_device)
    monkeypatch.setattr(Bench, "_measured", measured)
    result = Bench(Kernel(Path("k.c"), "k", ()), UNUSED, UNUSED).judge(Candidate(0), BUILT)
    assert (result.outcome, result.reason) == (outcome, error.message)
    # It was tried once more, alone on a fresh one.
    assert len(opened) == 2


class Device:
    """One that can be closed."""

    def close(self) -> None:
        """As a device does."""
