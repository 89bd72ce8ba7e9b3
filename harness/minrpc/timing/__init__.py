# SPDX-License-Identifier: Apache-2.0
"""Times and their accuracy: measurements, clocks, statistics, comparisons. Pure, except `plot`."""

from minrpc.timing.clock import DeviceClock, Mode, Timebase
from minrpc.timing.measurement import Measurement, Overhead, Sample
from minrpc.timing.summary import Interval, Summary, samples_needed, summarize
from minrpc.timing.trend import Drift

__all__ = [
    "DeviceClock",
    "Drift",
    "Interval",
    "Measurement",
    "Mode",
    "Overhead",
    "Sample",
    "Summary",
    "Timebase",
    "samples_needed",
    "summarize",
]
