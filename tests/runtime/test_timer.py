# SPDX-License-Identifier: Apache-2.0
"""The platform timer's arithmetic, with counters that the test injects."""

from __future__ import annotations

from itertools import product
from struct import unpack
from typing import NamedTuple

import pytest

from tests.runtime.door import Door, Place

TWO_32, U32_MAX, U64_MAX = 1 << 32, (1 << 32) - 1, (1 << 64) - 1
BAD_STATE = 0x504


# ---------------------------------------------------------- narrow counters


@pytest.mark.parametrize("start", [0, 1, 0x7FFFFFFF, 0x80000000, U32_MAX])
def test_a_wide_counter_survives_its_wraps(door: Door, start: int) -> None:
    counter = door.new("minrpc_wide_counter")

    def total(now: int) -> int:
        return int(door.call("door_wide_counter", counter, now & U32_MAX, result="Q"))

    for step in (0, 1, 2, 1000, 0x7FFFFFFF, 0x80000000, U32_MAX):
        counter.last = start
        first = total(start)
        assert [total(start + n * step) - first for n in range(1, 11)] == [n * step for n in range(1, 11)]


def down(door: Door, rounds: int, pending: bool, value: int, period: int) -> int:
    return int(door.call("door_down_counter", rounds, pending, value, period, result="Q"))


def test_a_down_counter_tells_every_cycle(door: Door) -> None:
    """The counter counts like SysTick: from the period down; 0 is the first cycle of the next round."""
    period = 7
    for time in range(5 * period):
        rounds, within = divmod(time, period)
        value = period - within if within else 0
        assert down(door, rounds, False, value, period) == time
        if rounds:
            # The interrupt that counts the last round is still to be taken.
            assert down(door, rounds - 1, True, value, period) == time


def test_a_down_counter_past_32_bits(door: Door) -> None:
    period = 0x01000000
    for rounds, pending, value, time in [
        (256, False, 0, TWO_32),
        (255, True, 0, TWO_32),
        (255, False, 1, TWO_32 - 1),
        (256, False, period - 1, TWO_32 + 1),
    ]:
        assert down(door, rounds, pending, value, period) == time
    assert down(door, U32_MAX, True, 1, U32_MAX) == TWO_32 * U32_MAX + U32_MAX - 1


# -------------------------------------------------------------- conversion

RATES = [1, 1000, 10000, 32768, 1000000, 25000000, 100000000, 1000000000, 4000000000, U32_MAX]
VALUES = [0, 999, U32_MAX, TWO_32, TWO_32 + 1, 1 << 40, (1 << 53) + 1, 1 << 60, U64_MAX // 3, U64_MAX]


def convert(door: Door, value: int, rate: int, wanted: int) -> int:
    words = [word for number in (value, rate, wanted) for word in door.wide(number)]
    return int(door.call("minrpc_clock_convert", *words, result="Q"))


def test_conversions_do_not_overflow_on_the_way(door: Door) -> None:
    for value, rate, wanted in product(VALUES, RATES, RATES):
        if (exact := value * wanted // rate) <= U64_MAX:
            assert convert(door, value, rate, wanted) == exact


def test_seconds_are_rounded_once(door: Door) -> None:
    result = door.memory(8)
    for cycles, hz in product([*VALUES, 1, 3, (1 << 53) - 1, (1 << 54) + 2], [*RATES, 3, 1 << 62, U64_MAX]):
        door.call("door_clock_seconds", result, *door.wide(cycles), *door.wide(hz))
        # Python rounds the quotient of two integers once.
        assert unpack("<d", door.read(result, 8)) == (cycles / hz,), (cycles, hz)


# ------------------------------------------------------------ two readings


class Elapsed(NamedTuple):
    """cycles: between two readings. fell_back: True if they are the coarse clock's."""

    cycles: int
    fell_back: bool


class Clock:
    """A clock with a counter of cycles, and a coarse clock if its rate is not 0."""

    def __init__(
        self, door: Door, cycles_hz: int, coarse_hz: int = 0, round_cycles: int = 0, tolerance: int = 0
    ) -> None:
        self.rates = cycles_hz, coarse_hz
        self._door = door
        self._clock = door.new("minrpc_clock")
        self._clock.cycles_hz, self._clock.coarse_hz = self.rates
        self._clock.round_cycles, self._clock.tolerance = round_cycles, tolerance
        self._samples = door.new("minrpc_clock_sample"), door.new("minrpc_clock_sample")
        self._flag = door.memory(1)

    def elapsed(self, start: tuple[int, int], stop: tuple[int, int]) -> Elapsed:
        """The time between two readings of both counters."""
        for sample, (cycles, coarse) in zip(self._samples, (start, stop), strict=True):
            sample.cycles, sample.coarse = cycles & U64_MAX, coarse
        arguments = self._clock, *self._samples, self._flag
        cycles = self._door.call("minrpc_clock_elapsed", *arguments, result="Q")
        return Elapsed(cycles, self._door.read(self._flag, 1) == b"\1")

    def read(self, time: int) -> tuple[int, int]:
        """Both counters after so many cycles, as a port reads them."""
        cycles_hz, coarse_hz = self.rates
        return time, time * coarse_hz // cycles_hz


@pytest.mark.parametrize(
    "rates",
    [
        (25000000, 10000),
        (100000000, 100),
        (1000000000, 1000),
        (64000000, 32768),
        (32768, 128),
        (1000000000, 0),
    ],
)
def test_elapsed_is_right_to_a_cycle_across_the_bad_spots(door: Door, rates: tuple[int, int]) -> None:
    """Zero, a tick, and the spots where 32 bits of cycles or of nanoseconds end, a tick either side."""
    clock = Clock(door, *rates)
    in_ns = [ns * rates[0] // 1000000000 for ns in (1 << 31, TWO_32)]
    spots = [0, 1, 2, 100, 1 << 24, 1 << 31, *[n * TWO_32 for n in (1, 2, 3, 17)], *in_ns]
    spots += [rates[0], 100 * rates[0]]
    origins = [0, 1, 12345, 0x7FFFFFFF, 0x80000000, U32_MAX, TWO_32, 5 * TWO_32 - 3]
    for origin, spot in product(origins, spots):
        for cycles in {spot, spot + 1, max(spot - 1, 0)}:
            assert clock.elapsed(clock.read(origin), clock.read(origin + cycles)) == (cycles, False)


def test_a_counter_that_lost_a_wrap_falls_back(door: Door) -> None:
    """The port widens its counter; a counter that was not widened loses whole wraps."""
    clock = Clock(door, 100000000, 1000)
    assert clock.elapsed((0, 0), (5000000000 - TWO_32, 50000)) == (5000000000, True)


@pytest.mark.parametrize("ticks", [0, 1, 2, 64, 1000])
def test_the_slack_ends_at_a_cycle(door: Door, ticks: int) -> None:
    """It reads to two coarse ticks, to a 64th, and to two cycles: one cycle more, either way, is a wrong
    counter. A value below zero comes of a counter that went back, by no more than the clocks' resolution."""
    clock, tick, start = Clock(door, 25000000, 10000), 2500, (1 << 40, 7)
    expected = ticks * tick
    slack = 2 * tick + expected // 64 + 2
    for cycles, good in [
        (expected + slack, True),
        (expected + slack + 1, False),
        (expected - slack, expected >= slack),
        (expected - slack - 1, False),
    ]:
        elapsed = clock.elapsed(start, (start[0] + cycles, 7 + ticks))
        assert elapsed == (cycles if good else expected, not good)


@pytest.mark.parametrize("count", [0, 1, 2500, 25000000])
def test_a_coarse_clock_that_goes_back_is_not_asked(door: Door, count: int) -> None:
    """Clocks of two processors, or of a driver: a clock that goes back by a tick is no reason to doubt the
    counter."""
    assert Clock(door, 25000000, 10000).elapsed((99, 500), (99 + count, 499)) == (count, False)


@pytest.mark.parametrize(("lost", "fell_back"), [(16898, False), (16899, True), (1 << 20, True)])
def test_clocks_of_one_oscillator_have_no_64th(door: Door, lost: int, fell_back: bool) -> None:
    """100 s: a 64th would hide two lost rounds of 24 bits."""
    time = 100 * 25000000
    clock = Clock(door, 25000000, 97656, tolerance=16384)
    assert clock.elapsed((0, 0), (time - lost, 9765600)) == (time if fell_back else time - lost, fell_back)


def test_a_counter_that_stands_still_falls_back(door: Door) -> None:
    assert Clock(door, 25000000, 10000).elapsed((99, 500), (99, 10500)) == (25000000, True)


@pytest.mark.parametrize(("start", "stop"), [(0, 25000000), (0, 200000000), (100, 50)])
def test_a_counter_at_another_rate_falls_back(door: Door, start: int, stop: int) -> None:
    """A quarter of the rate, twice the rate, and backwards."""
    assert Clock(door, 100000000, 1000).elapsed((start, 0), (stop, 1000)) == (100000000, True)


def test_oscillators_may_differ_a_little(door: Door) -> None:
    """Half a percent fast."""
    assert Clock(door, 100000000, 1000).elapsed((0, 0), (100500000, 1000)) == (100500000, False)


@pytest.mark.parametrize("lost", [-1, 0, 1, 2, 5, 300])
@pytest.mark.parametrize("cycles", [0, 1, (1 << 24) - 1, 1 << 24, 76_800_595, 10 << 32])
def test_rounds_of_a_counter_are_those_of_the_coarse_clock(door: Door, lost: int, cycles: int) -> None:
    """SysTick's overflows while interrupts are off, and one that a function made pending: times are exact."""
    clock, time = Clock(door, 25000000, 97656, 1 << 24, 16384), cycles + (max(lost, -(cycles >> 24)) << 24)
    assert clock.elapsed((7, 1000), (7 + cycles, 1000 + time * 97656 // 25000000)) == (time, False)


@pytest.mark.parametrize("off", [20000, 1 << 23, (1 << 24) - 20000, -20000])
def test_a_difference_that_is_no_round_is_told(door: Door, off: int) -> None:
    """A counter that a function has set."""
    clock = Clock(door, 25000000, 97656, 1 << 24, 16384)
    assert clock.elapsed((1 << 30, 0), ((1 << 30) + 25000 + off, 98)).fell_back


# ---------------------------------------------------------- start and stop


class Timer:
    """A timer on a port with a clock of the test's."""

    def __init__(self, door: Door) -> None:
        self.now = self.begin_result = self.begun = self.ended = 0
        self.platform = door.new("minrpc_platform")
        self._door = door
        self._timer, self._cycles = door.new("minrpc_timer"), door.memory(b"\1" * 8)
        for name in ("describe", "begin", "sample", "end"):
            setattr(self.platform, f"clock_{name}", door.callback(getattr(self, f"_{name}")))

    def _describe(self, _context: int, clock: int, *_: int) -> None:
        place: Place = self._door.at(clock, "minrpc_clock")
        place.cycles_hz, place.coarse_hz = 1000, 0

    def _begin(self, *_: int) -> int:
        self.begun += self.begin_result == 0
        return self.begin_result

    def _sample(self, _context: int, sample: int, *_: int) -> None:
        self._door.at(sample, "minrpc_clock_sample").cycles = self.now

    def _end(self, *_: int) -> None:
        self.ended += 1

    def start(self) -> int:
        return int(self._door.call("minrpc_timer_start", self._timer, self.platform, 0))

    def stop(self) -> tuple[int, int]:
        """The result, and the cycles."""
        result = self._door.call("minrpc_timer_stop", self._timer, self.platform, 0, self._cycles)
        return result, int.from_bytes(self._door.read(self._cycles, 8), "little")


@pytest.fixture
def timer(door: Door) -> Timer:
    return Timer(door)


def test_start_and_stop(timer: Timer) -> None:
    timer.now = U64_MAX - 0xF
    assert timer.start() == 0
    timer.now = 0x10
    assert timer.stop() == (0, 0x20)
    assert timer.begun == timer.ended == 1


def test_a_timer_is_started_once(timer: Timer) -> None:
    assert timer.start() == 0
    timer.now = 5
    assert timer.start() == BAD_STATE
    timer.now = 7
    # The first start still counts.
    assert timer.stop() == (0, 7)
    assert timer.begun == 1


def test_a_timer_that_does_not_run_is_not_stopped(timer: Timer) -> None:
    timer.now = 9
    assert timer.stop() == (BAD_STATE, 0)
    assert timer.ended == 0
    assert timer.start() == 0
    assert timer.stop() == (0, 0)
    assert timer.stop()[0] == BAD_STATE


def test_a_clock_that_does_not_begin_leaves_the_timer_stopped(timer: Timer) -> None:
    timer.begin_result = -5
    assert timer.start() != 0
    assert timer.stop()[0] == BAD_STATE
    timer.begin_result = 0
    assert timer.start() == 0
    assert timer.stop()[0] == 0
    assert timer.begun == timer.ended


def test_a_port_need_not_begin_or_end(timer: Timer) -> None:
    timer.platform.clock_begin = timer.platform.clock_end = 0
    assert timer.start() == 0
    timer.now = 1
    assert timer.stop() == (0, 1)
