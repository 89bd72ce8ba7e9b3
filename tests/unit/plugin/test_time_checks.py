# SPDX-License-Identifier: Apache-2.0
"""Meaning of a wrong time, by clock and by option."""

import dataclasses

import pytest
from minrpc import PLATFORMS
from minrpc.plugin.time_checks import TimingCheck, TimingWarning
from minrpc.targets.table import TimeBound

from tests.unit.timing.samples import WALL, measured

BOARD = dataclasses.replace(PLATFORMS["posix"], time_bounds=(TimeBound("add", 1e-6, 2e-6),))


def test_an_exact_time_that_is_wrong_fails() -> None:
    with pytest.raises(pytest.fail.Exception, match="too long"):
        TimingCheck(exact=True, strict=False).expect(False, "too long")


def test_any_other_only_warns() -> None:
    with pytest.warns(TimingWarning, match="too long .--minrpc-strict-timing"):
        TimingCheck(exact=False, strict=False).expect(False, "too long")


def test_unless_it_was_asked_for() -> None:
    with pytest.raises(pytest.fail.Exception, match="too long"):
        TimingCheck(exact=False, strict=True).expect(False, "too long")


def test_what_is_right_says_nothing(recwarn: pytest.WarningsRecorder) -> None:
    TimingCheck(exact=True, strict=True).expect(True, "right")
    TimingCheck(exact=False, strict=True, platform=BOARD).bounds(measured([15_000] * 3, clock=WALL))
    TimingCheck(exact=False, strict=True).bounds(measured([15_000] * 3, clock=WALL))
    assert not recwarn.list


def test_a_board_bounds() -> None:
    with pytest.warns(TimingWarning, match="add took 3 µs, not 1e-06 to 2e-06 s"):
        TimingCheck(exact=False, strict=False, platform=BOARD).bounds(measured([30_000] * 3, clock=WALL))
