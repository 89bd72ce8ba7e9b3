# SPDX-License-Identifier: Apache-2.0
"""The device's counts, and their clock."""

import struct
from dataclasses import replace

import pytest
from minrpc import DeviceClock, Sample
from minrpc.timing import ClockReading, MemoryUse, Overhead, Timebase
from minrpc.timing.comparison_text import inclusive_text
from minrpc.timing.drift import Enclosed, clock_drift
from minrpc.timing.measurement import parse_samples
from minrpc.timing.units import count, parse_percent, percent, quantity

from tests.unit.timing.samples import EXACT, WALL, measured

TIMEBASE = Timebase(mode="exact", icount_shift=7)
ROWS = ((1000, 10, 3), (1 << 40, 7, (1 << 31) | 2))


def answer(
    names: bytes = b"",
    columns: tuple[tuple[int, ...], ...] = ((), ()),
    *,
    spare: bytes = b"",
    hz: int = 25_000_000,
    count: int | None = None,
) -> bytes:
    """The answer in the layout of zephyr-app/runtime/evaluator.c; `spare` bytes follow each row."""
    rows = [
        struct.pack("<QII", *row) + struct.pack(f"<{len(more)}Q", *more) + spare
        for row, more in zip(ROWS, columns, strict=True)
    ]
    size, many = 16 + len(names), len(columns[0]) if count is None else count
    return struct.pack("<4HQ", 1, size, len(rows[0]), many, hz) + names + b"".join(rows)


ANSWER = answer()


def test_the_device_answer_is_read() -> None:
    clock, samples, _ = parse_samples(ANSWER, TIMEBASE)
    assert clock == TIMEBASE.clock(25_000_000)
    assert samples == (Sample(1000, 10, 3), Sample(1 << 40, 7, 2, coarse=True))


def test_further_columns_have_names() -> None:
    names = b"instructions\0misses\0".ljust(24, b"\0")
    _, samples, _ = parse_samples(answer(names, ((7, 8), (1 << 63, 0)), spare=bytes(8)), TIMEBASE)
    assert [sample.columns for sample in samples] == [
        {"instructions": 7, "misses": 8},
        {"instructions": 1 << 63, "misses": 0},
    ]
    assert [sample.ticks for sample in samples] == [1000, 1 << 40]


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        ANSWER[:8],
        ANSWER[:16],
        ANSWER[:-1],
        answer(hz=0),
        answer(count=1),
        answer(b"x", ((1, 2), (3, 4))),
    ],
    ids=len,
)
def test_what_is_no_answer_is_refused(bad: bytes) -> None:
    with pytest.raises(ValueError, match=r"no list of samples|no rate|columns, and the names"):
        parse_samples(bad, TIMEBASE)


def test_nothing_is_subtracted_unless_asked() -> None:
    item = measured([10_000, 10_001])
    assert item.ticks_per_call == (1000.0, 1000.1)
    assert item.net().ticks_per_call == pytest.approx((1000 - 24.3 - 35.2, 1000.1 - 24.3 - 35.2))
    assert item.net().subtracted
    assert item.net().samples == item.samples


def test_instructions_follow_from_the_shift() -> None:
    item = measured([32_000])
    assert item.clock.ticks_per_instruction == pytest.approx(3.2)
    assert item.instructions == pytest.approx(1000)
    assert measured([32_000], clock=WALL).instructions is None


def test_a_counter_of_instructions_says_so() -> None:
    clock = Timebase(mode="board", counts="instructions").clock(100)
    assert measured([70], number=7, clock=clock).instructions == 10


def test_overhead_is_what_is_left_of_an_empty_function() -> None:
    overhead = Overhead.measured([Sample(243, 0), Sample(244, 0), Sample(243, 0)], [Sample(35_443, 1000)])
    assert overhead == Overhead(243, 35.2)
    assert overhead.of(Sample(0, 10)) == pytest.approx(24.3 + 35.2)


def test_overhead_is_never_less_than_nothing() -> None:
    """By noise the timer alone may take longer than the timer with calls."""
    overhead = Overhead.measured([Sample(500, 0)] * 3, [Sample(400, 1000)] * 3)
    assert overhead == Overhead(500, 0.0)


def test_the_step_of_a_clock_is_seen() -> None:
    """CLOCK_MONOTONIC counts nanoseconds, in steps of 10 on some machines."""
    timer = [Sample(10 * ticks, 0) for ticks in range(2, 14)]
    assert Overhead.measured(timer, [Sample(1570, 1000)]).step == 10
    assert Overhead.measured(timer, [Sample(1571, 1000)]).step == 1
    assert Overhead.measured([Sample(240, 0)] * 15, [Sample(36_000, 1000)] * 15).step == 1
    item = measured([300] * 10, number=1, clock=WALL, overhead=Overhead(20, 1.5, step=10))
    assert item.summary.precision == pytest.approx(10 / 300)


def test_a_clock_describes_itself() -> None:
    text = "exact: SysTick, 25 MHz, resolution 40 ns, 128 ns an instruction (icount shift 7)"
    assert str(EXACT) == text
    assert str(WALL) == "wall: CLOCK_MONOTONIC, 1 GHz, resolution 1 ns"


def reading(ticks: int, uptime: int = 0, *, coarse_hz: int = 0, bits: int = 64) -> ClockReading:
    return ClockReading(ticks, uptime, 1_000_000, coarse_hz, bits)


def test_readings_across_wraps() -> None:
    assert reading(5, bits=32).ticks_since(reading(2**32 - 5, bits=32)) == 10
    start = reading(2**32 - 5, 1000, coarse_hz=100, bits=32)
    end = reading(5, 1000 + round((3 * 2**32 + 10) / 1e4), coarse_hz=100, bits=32)
    assert end.ticks_since(start) == 3 * 2**32 + 10


def test_drift_is_bounded_by_what_encloses_it() -> None:
    """A clock that is 50 ppm fast, read in windows of 1 and 3 ms."""
    at = [0.0, 0.1, 100.0, 100.2]
    width = [0.003, 0.001, 0.001, 0.003]
    readings = [
        Enclosed(now - w / 2, now + w / 2, reading(round(now * 1.00005 * 1e6)))
        for now, w in zip(at, width, strict=True)
    ]
    drift = clock_drift(readings)
    assert drift.ppm == pytest.approx(50, abs=0.1)
    assert drift.error_ppm == pytest.approx(10, abs=0.1)
    assert drift.seconds == pytest.approx(99.9)
    with pytest.raises(ValueError, match="too close"):
        clock_drift([readings[0], Enclosed(0.0, 0.003, reading(1))])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (25e6, "25 MHz"),
        (40e-9, "40 nHz"),
        (0, "0 Hz"),
        (999.96e-6, "1 mHz"),
        (999.4, "999.4 Hz"),
        (1.0, "1 Hz"),
        (-2e3, "-2 kHz"),
        (5e-12, "5 pHz"),
        (5e-15, "0.005 pHz"),
        (5e12, "5000 GHz"),
    ],
)
def test_quantities(value: float, text: str) -> None:
    assert quantity(value, "Hz") == text


def test_counts_and_percentages() -> None:
    assert (count(112424.99), count(3.0), count(1e6, 0)) == ("112,424.99", "3", "1,000,000")
    assert (percent(0.0123), percent(-0.5), percent(0)) == ("+1.23 %", "-50 %", "0 %")
    assert (percent(9.994), percent(9.996), percent(-25)) == ("+999 %", "+1,000 %", "-2,500 %")
    assert [percent(share, 2, "") for share in (0.0123, 0.994, 0.996, 1.2)] == [
        "1.2 %",
        "99 %",
        "100 %",
        "120 %",
    ]
    assert (parse_percent("1%"), parse_percent(" 0.5 % ")) == (0.01, 0.005)
    for text in ("1", "0%", "-1%", "x%"):
        with pytest.raises(ValueError, match="not a percentage"):
            parse_percent(text)


def test_the_slower_clock_says_how_fine_it_is() -> None:
    """The counter's resolution would be 40 ns if it advanced."""
    clock = replace(EXACT, coarse_hz=100)
    assert clock.resolution_s == pytest.approx(0.01)
    assert "resolution 10 ms by the device's slower clock of 100 Hz" in str(clock)
    item = measured([2_500_000] * 8, number=10, clock=clock)
    assert item.resolution_ticks == pytest.approx(25_000)
    assert item.summary.precision == pytest.approx(0.1)


def test_a_clock_of_an_older_file_is_read() -> None:
    document = EXACT.to_json()
    del document["coarse_hz"]
    assert DeviceClock.from_json(document) == EXACT


@pytest.mark.parametrize(("most", "shown"), [(1911, "911 or more"), (911, "911")])
def test_inclusive_cycles_of_a_range_are_the_least(most: int, shown: str) -> None:
    item = measured([100])
    columns = {"cycles": 911, "cycles_most": most}
    item = replace(item, samples=(replace(item.samples[0], columns=columns),), inclusive={"cycles": 911.0})
    assert inclusive_text(item, "cycles") == shown


def test_a_counter_that_stands_still() -> None:
    assert reading(5, 20).stands_still_since(reading(5, 10))
    assert not reading(6, 20).stands_still_since(reading(5, 10))


def test_later_repeats_add_to_all_that_is_known() -> None:
    """`minrpc time --until` requests further repeats: the smaller stack counts, and the larger workspace and
    heap."""
    first = replace(measured([100]), memory=MemoryUse(300, 16, None, 250), doubtful=("one",))
    later = replace(
        measured([300, 200], clock=replace(EXACT, coarse_hz=100)),
        memory=MemoryUse(248, 32, 8),
        doubtful=("two", "one"),
        groups=(("one",), ("two",)),
    )
    found = first.joined(later)
    assert [sample.ticks for sample in found.samples] == [100, 300, 200]
    assert found.memory == MemoryUse(248, 32, 8, 250)
    assert found.doubtful == ("one", "two")
    assert found.groups == (("one",), ("two",))
    assert found.clock.coarse_hz == 100
    assert measured([1]).joined(measured([2])) == measured([1, 2])


def test_inclusive_figures_of_further_repeats_are_means_of_all_calls() -> None:
    first = replace(measured([100], 30), inclusive={"instructions": 10.0, "cycles": 20.0})
    later = replace(measured([100], 10), inclusive={"instructions": 50.0, "cycles": 60.0})
    assert first.joined(later).inclusive == {"instructions": 20.0, "cycles": 30.0}
