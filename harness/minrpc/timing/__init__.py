# SPDX-License-Identifier: Apache-2.0
"""Times and their accuracy: measurements, clocks, statistics, comparisons. Pure, except `plot`."""

from minrpc.timing.clock import DeviceClock, Mode, Timebase
from minrpc.timing.measurement import Measurement, MemoryUse, Overhead, Sample
from minrpc.timing.reading import ClockReading
from minrpc.timing.record import FirmwareRecord, TimingRecord
from minrpc.timing.summary import Interval, Summary, samples_needed, summarize
from minrpc.timing.trend import Drift

__all__ = [
    "ClockReading",
    "DeviceClock",
    "Drift",
    "FirmwareRecord",
    "Interval",
    "Measurement",
    "MemoryUse",
    "Mode",
    "Overhead",
    "Sample",
    "Summary",
    "Timebase",
    "TimingRecord",
    "samples_needed",
    "summarize",
]
