# SPDX-License-Identifier: Apache-2.0
"""Measurements for the tests of statistics and pages."""

from collections.abc import Sequence
from dataclasses import replace

from minrpc import DeviceClock, Measurement, Sample
from minrpc.timing import FirmwareRecord, MeasuredCode, Overhead, Timebase, TimingRecord

EXACT = Timebase(mode="exact", source="SysTick", icount_shift=7).clock(25_000_000)
WALL = Timebase(mode="wall", source="CLOCK_MONOTONIC").clock(1_000_000_000)
FIRMWARE = FirmwareRecord(
    content_hash="c0ffee" * 10, compiler="GNU C11 12.2", flags="-Os", flash=20000, ram=3000
)


def measured(
    ticks: Sequence[int], number: int = 10, clock: DeviceClock = EXACT, overhead: Overhead | None = None
) -> Measurement:
    """A measurement of `add`: one repeat of `number` calls for each of `ticks`."""
    # The host's clock is judged by several processes: here each has one repeat.
    apart = clock.mode == "wall"
    samples = tuple(Sample(each, number, process=place * apart) for place, each in enumerate(ticks))
    overhead = overhead or Overhead(timer=243.0, call=35.2)
    arguments = ("float32[1024]",) * 3
    return Measurement(name="add", arguments=arguments, clock=clock, samples=samples, overhead=overhead)


def with_measured(record: TimingRecord, **changes: object) -> TimingRecord:
    """The record with these fields of its measurement."""
    changed = replace(record.measurement, **changes)  # type: ignore[arg-type]
    return replace(record, measurement=changed)


def recorded(
    ticks: Sequence[int], *, number: int = 10, clock: DeviceClock = EXACT, flash: int = 20000, code: int = 0
) -> TimingRecord:
    """The measurement as a record."""
    return TimingRecord(
        platform="bare_mps2_an385",
        measurement=replace(measured(ticks, number, clock), code=MeasuredCode(code)),
        firmware=replace(FIRMWARE, flash=flash),
        when="2026-01-01T00:00:00+00:00",
    )
