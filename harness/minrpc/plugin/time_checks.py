# SPDX-License-Identifier: Apache-2.0
"""Checks of times in tests: by the device's clock, a wrong time fails the test or only warns."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import pytest

from minrpc.targets import Platform
from minrpc.timing import Measurement
from minrpc.timing.units import quantity


class TimingWarning(UserWarning):
    """A time is out of bounds, on a clock that a host or a board may disturb."""


@dataclass(frozen=True, slots=True)
class TimingCheck:
    """Turns a wrong time into a failure if times are exact, else into a warning.

    exact: QEMU counts instructions.
    strict: --minrpc-strict-timing was given, so that any wrong time fails.
    platform: the platform whose bounds apply; None for no bounds.
    """

    exact: bool
    strict: bool
    platform: Platform | None = None

    def expect(self, holds: bool, text: str) -> None:
        """Fail or warn with `text` unless `holds`."""
        if holds:
            return
        if self.exact or self.strict:
            pytest.fail(text)
        warnings.warn(TimingWarning(f"{text} (--minrpc-strict-timing makes this a failure)"), stacklevel=2)

    def bounds(self, measurement: Measurement) -> None:
        """Expect the median inside the platform's own bounds for this function, if it has any."""
        seconds = measurement.clock.seconds(measurement.summary.median)
        for bound in self.platform.time_bounds if self.platform else ():
            if bound.function == measurement.name:
                taken = f"{measurement.name} took {quantity(seconds, 's')}"
                self.expect(bound.holds(seconds), f"{taken}, not {bound}")
