# SPDX-License-Identifier: Apache-2.0
"""Times and their accuracy: measurements, clocks, statistics, comparisons. Pure, except `plot`."""

from minrpc.timing.clock import DeviceClock, Timebase
from minrpc.timing.measurement import MeasuredCode, Measurement, MemoryUse, Overhead, Sample
from minrpc.timing.reading import ClockReading
from minrpc.timing.record import FirmwareRecord, TimingRecord
from minrpc.timing.summary import Interval, samples_needed, summarize

__all__ = [
    "ClockReading",
    "DeviceClock",
    "FirmwareRecord",
    "Interval",
    "MeasuredCode",
    "Measurement",
    "MemoryUse",
    "Overhead",
    "Sample",
    "Timebase",
    "TimingRecord",
    "samples_needed",
    "summarize",
]
