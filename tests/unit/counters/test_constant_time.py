# SPDX-License-Identifier: Apache-2.0
"""A failure during a check names the input that led to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from minrpc import HarnessError
from minrpc.counters.constant_time import ConstantTime, _Tracer


class _NoCounters:
    def keep_trace_from(self, _step: int) -> None:
        """See `QemuCounters`."""


def test_a_failure_names_its_input() -> None:
    def crash(given: Sequence[Any]) -> None:
        raise HarnessError(f"crashed with {given[1]}", details=["called by f"])

    inputs = [[np.zeros(2, np.uint8), 5], [np.array([1, 255], np.uint8), 6], [np.zeros(40, np.uint8), 7]]
    tracer = _Tracer(crash, _NoCounters(), "f", inputs)  # type: ignore[arg-type]
    with pytest.raises(HarnessError, match="crashed with 6") as caught:
        tracer.trace(inputs[1])
    assert caught.value.details == ("input 1 of 3: uint8[2] 0x01ff, 6", "called by f")
    with pytest.raises(HarnessError) as caught:
        tracer.trace(inputs[2])
    assert caught.value.details[0] == f"input 2 of 3: uint8[40] 0x{'00' * 32}... (40 bytes), 7"


def test_equal_runs_with_an_it_are_a_perhaps() -> None:
    """An IT skips instructions without a step of the trace."""
    result = ConstantTime("f", 64, 10, (), variable_time=("it in f at f.c:3",))
    assert result.perhaps
    assert not result
    assert str(result).startswith("perhaps: f took the same path")
    assert "warning: it in f at f.c:3: its condition may skip instructions" in str(result)
    divides = ConstantTime("f", 64, 10, (), variable_time=("udiv in f at f.c:3",))
    assert divides
    assert not divides.perhaps
    assert not str(divides).startswith("perhaps")
