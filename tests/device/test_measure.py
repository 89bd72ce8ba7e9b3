# SPDX-License-Identifier: Apache-2.0
"""Times in whole cycles, with the cost of measuring. Numbers fail a run only where they are exact."""

import numpy as np
import pytest
from minrpc import Device, RemoteError, SystemLibrary
from minrpc.plugin.time_checks import TimingCheck


def test_every_repeat_is_told(lib: SystemLibrary) -> None:
    measurement = lib.measure("spin", number=5, repeat=7)(1000)
    assert [sample.number for sample in measurement.samples] == [5] * 7
    assert [sample.batches for sample in measurement.samples] == [1] * 7
    assert all(sample.ticks > 0 and not sample.coarse for sample in measurement.samples)
    assert measurement.clock.ticks_hz == lib.measure("inc")(1).clock.ticks_hz


def test_batches_grow_until_they_are_long_enough(lib: SystemLibrary) -> None:
    measurement = lib.measure("inc", number=1, repeat=3, min_repeat_ms=5)(1)
    for sample in measurement.samples:
        assert sample.number > 1
        assert sample.batches > 1
        assert sample.ticks >= 0.005 * measurement.clock.ticks_hz


def test_it_is_what_the_time_evaluator_gives(lib: SystemLibrary, timing_check: TimingCheck) -> None:
    seconds = lib.time_evaluator("spin", number=100, repeat=5)(1000).median
    cycles = lib.measure("spin", number=100, repeat=5)(1000)
    ours = cycles.clock.seconds(cycles.summary.median)
    timing_check.expect(abs(ours / seconds - 1) < 0.01, f"{ours} s by cycles, {seconds} s by TVM's evaluator")


def test_the_overhead_is_that_of_an_empty_call(lib: SystemLibrary, timing_check: TimingCheck) -> None:
    measurement = lib.measure("inc", number=1000, repeat=5)(1)
    overhead = measurement.overhead
    assert overhead.timer >= 0
    assert overhead.call >= 0
    less = measurement.net().summary.median
    timing_check.expect(0 < less < measurement.summary.median, f"{less} ticks without overhead")


def test_a_short_function_comes_out_as_it_is(lib: SystemLibrary, timing_check: TimingCheck) -> None:
    """Options that made TVM's evaluator give 0.0 or never end, against very many calls of the same.

    They are measured in turns, so that a change of the processor's speed affects both, and long, because an
    idle processor starts slowly.
    """
    asked, true = [], []
    for _ in range(3):
        asked.append(lib.measure("inc", number=20, repeat=3, min_repeat_ms=40)(1))
        true.append(lib.measure("inc", number=1_000_000, repeat=3, min_repeat_ms=100)(1))
    for measurement in asked:
        shortest = 0.040 * measurement.clock.ticks_hz
        assert all(sample.ticks >= shortest for sample in measurement.samples)
    ratio = min(item.summary.min for item in asked) / min(item.summary.min for item in true)
    timing_check.expect(0.95 <= ratio <= 1.05, f"{ratio:.3f} times the true cost of inc")


def test_the_board_bounds_hold(device: Device, lib: SystemLibrary, timing_check: TimingCheck) -> None:
    arrays = [device.array(np.ones(64, np.float32)) for _ in range(3)]
    timing_check.bounds(lib.measure("add", repeat=6)(*arrays))


def test_the_clock_goes_on(device: Device, lib: SystemLibrary) -> None:
    """The distance of two readings of the clock is at least the time measured between them."""
    before = device.info().clock
    measurement = lib.measure("spin", number=10, repeat=3)(20_000)
    after = device.info().clock
    assert before is not None
    assert after is not None
    measured = sum(sample.ticks for sample in measurement.samples)
    assert after.ticks_since(before) > measured > 0


def test_a_function_that_fails_or_is_not_there(lib: SystemLibrary) -> None:
    with pytest.raises(RemoteError, match="inc: expected 1 argument"):
        lib.measure("inc")(1, 2)
    with pytest.raises(RemoteError, match="subtract"):
        lib.measure("subtract")
    assert lib.measure("inc", repeat=2)(1).samples
