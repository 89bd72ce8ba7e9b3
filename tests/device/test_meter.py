# SPDX-License-Identifier: Apache-2.0
"""A meter's windows: one for each repeat, with one batch in each; its readings join the measurement."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from minrpc import ConfigurationError, CpuTimeMeter, Device, RunningDevice, SystemLibrary
from minrpc.timing import TimingRecord
from minrpc.timing.record import dump, parse

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Notebook:
    """A meter that notes its calls, and gives prepared readings."""

    def __init__(self, *readings: Mapping[str, Any]) -> None:
        self.calls: list[str] = []
        self._readings = iter(readings)

    def before(self) -> None:
        self.calls.append("before")

    def after(self) -> None:
        self.calls.append("after")

    def results(self) -> Mapping[str, Any]:
        self.calls.append("results")
        return next(self._readings)


def test_its_readings_join_each_repeat(lib: SystemLibrary) -> None:
    meter = Notebook({"energy_nj": 30}, {"energy_nj": 50}, {"energy_nj": 40})
    measurement = lib.measure("spin", number=2, repeat=3, meter=meter)(100)
    assert meter.calls == ["before", "after", "results"] * 3
    assert measurement.counters == {"energy_nj": (30, 50, 40)}
    assert [sample.number for sample in measurement.samples] == [2, 2, 2]
    with pytest.raises(ConfigurationError, match="the overhead of energy_nj is not known"):
        measurement.net()
    record = TimingRecord(platform="any", measurement=measurement)
    (read,) = parse(dump([record]))
    assert read.measurement == measurement
    per_call = sorted((15.0, 25.0, 20.0))[0 if measurement.clock.exact else 1]
    assert measurement.counter_per_call("energy_nj") == per_call


def test_a_window_has_one_batch(lib: SystemLibrary) -> None:
    meter = Notebook({"energy_nj": 1}, {"energy_nj": 2})
    measurement = lib.measure("inc", number=1, repeat=2, min_repeat_ms=5, meter=meter)(1)
    first, second = measurement.samples
    assert first.batches == second.batches == 1
    assert first.number == second.number > 1


def test_a_call_that_fails_ends_its_window(lib: SystemLibrary) -> None:
    meter = Notebook({"energy_nj": 1})
    with pytest.raises(Exception, match="inc: expected 1 argument"):
        lib.measure("inc", meter=meter)(1, 2)
    assert meter.calls == ["before", "after"]
    assert lib.measure("inc", repeat=1, meter=meter)(1).counters == {"energy_nj": (1,)}


def test_what_is_no_meter_and_what_goes_with_none(lib: SystemLibrary) -> None:
    with pytest.raises(TypeError, match="has no results"):
        lib.measure("inc", meter=type("Half", (), {"before": print, "after": print})())
    for options in ({"memory": True}, {"interrupts_masked": True}, {"cooldown_interval_ms": 1}):
        with pytest.raises(ConfigurationError, match=f"{next(iter(options))}.* can't go with a meter"):
            lib.measure("inc", meter=Notebook(), **options)
    with pytest.raises(TypeError, match="energy_j is a whole number in a smaller unit"):
        lib.measure("inc", meter=Notebook({"energy_j": 0.5}))(1)


def ticks(pid: int) -> int:
    """The process's time in the kernel's ticks, of user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_the_time_of_a_process(device: Device, running_device: RunningDevice, lib: SystemLibrary) -> None:
    """The meter's time is at most the kernel's other count, which counts ticks."""
    if running_device.process is None:
        with pytest.raises(ConfigurationError, match="is no process of this machine"):
            CpuTimeMeter(device)
        return
    before = ticks(running_device.process.pid)
    measurement = lib.measure("spin", number=10, repeat=3, meter=CpuTimeMeter(device))(100_000)
    after = ticks(running_device.process.pid)
    taken = measurement.counters["cpu_ns"]
    assert all(reading > 0 for reading in taken)
    assert sum(taken) <= (after - before + 2) * TICK_NS
