# SPDX-License-Identifier: Apache-2.0
"""Laws that right times obey if QEMU counts instructions: nothing here depends on the host's speed.

The cost of interrupts is measured, not assumed. A time is right when it agrees, to the tick and to the cost
of those interrupts, with a whole number of QEMU's instructions. The device's clocks agree with QEMU's own
over any length.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from minrpc import Firmware
from minrpc.timing import ClockReading

from tests.device.qemu_clock import QemuReading
from tests.device.timing_rig import CALLS, TICKS, Interrupts, Rig, rig_at, spread

Record = Callable[[str, object], None]

# 1,024 ns an instruction: minutes of virtual time in a second.
FAST = 10
# Largest difference in instructions between serving two requests.
SERVING = 150_000
_interrupts: dict[str, Interrupts] = {}


@pytest.fixture
def interrupts(image: Firmware) -> Interrupts:
    """The cost of interrupts, found once for each firmware."""
    if image.content_hash not in _interrupts:
        with rig_at(image, FAST) as rig:
            _interrupts[image.content_hash] = rig.interrupts()
    return _interrupts[image.content_hash]


def assert_right(rig: Rig, interrupts: Interrupts, ticks: int, number: int, rounds: int) -> float:
    """Asserts that `ticks` is the time of these instructions and of the interrupts that fall into it.

    The number of interrupts is known to about one in `interrupts.seconds`. But their instructions are whole
    numbers, to the tick if the clock itself loses nothing. Returns the error in ticks.
    """
    expected = interrupts.per_s * ticks / rig.hz * rig.ticks_per_instruction
    off = rig.excess(ticks, number, rounds) - expected
    unknown = interrupts.most + interrupts.one * ticks / rig.hz / interrupts.seconds
    assert abs(off) <= TICKS + unknown * rig.ticks_per_instruction
    if rig.reloads:
        return off
    if rig.ticks_per_instruction > 4 * TICKS:
        off = rig.off_whole(ticks)
    else:
        off = rig.off_interrupts(ticks, number, rounds, interrupts.one)
    assert abs(off) <= TICKS
    return off


def test_repeats_are_equal(
    image: Firmware, own_shift: int, interrupts: Interrupts, record_property: Record
) -> None:
    with rig_at(image, own_shift) as rig:
        repeats = rig.ticks(10_000, repeat=50)
        quiet = [ticks for ticks in repeats if ticks - min(repeats) <= TICKS]
        record_property("law: repeats, ticks", f"{sorted(set(repeats))}")
        assert spread(quiet) <= 1
        assert len(quiet) > len(repeats) / 2
        assert spread(repeats) <= TICKS + interrupts.one * rig.ticks_per_instruction


def test_the_total_is_linear_in_number(
    image: Firmware, own_shift: int, interrupts: Interrupts, record_property: Record
) -> None:
    with rig_at(image, own_shift) as rig:
        totals = [min(rig.ticks(100, number, 5)) for number in (100, 200, 400)]
        first, second = totals[1] - totals[0], totals[2] - totals[1]
        record_property("law: linear, ticks", f"{totals}, {second} = 2 x {first}")
        assert abs(second - 2 * first) <= 2 * TICKS


def test_the_same_work_at_three_shifts_reads_1_to_4_to_16(image: Firmware, record_property: Record) -> None:
    readings = []
    for shift in (3, 5, 7):
        with rig_at(image, shift) as rig:
            readings.append(min(rig.ticks(100_000, repeat=20)))
    once, four, sixteen = readings
    record_property("law: shifts 3, 5, 7, ticks", f"{readings}, 1 : {four / once:.5f} : {sixteen / once:.5f}")
    assert once > 1000
    assert abs(four - 4 * once) <= 4 + 1
    assert abs(sixteen - 16 * once) <= 16 + 1


def test_a_round_takes_what_qemu_executes(image: Firmware, record_property: Record) -> None:
    """A busy wait of known length: the model's whole numbers equal QEMU's counts."""
    rounds = 20_000_000
    with rig_at(image, FAST) as rig:
        _, short = executed(rig, 0)
        ticks, long = executed(rig, rounds)
        counted = (long - short) / ((CALLS + 1) * rounds)
        measured = ticks / rig.ticks_per_instruction / (CALLS * rounds)
        record_property("law: instructions a round", f"{measured:.6f} by time, {counted:.6f} by QEMU")
        assert counted == pytest.approx(rig.model.round, rel=2e-3)
        assert measured == pytest.approx(rig.model.round, rel=2e-3)


def executed(rig: Rig, rounds: int) -> tuple[int, int]:
    """Ticks of a measurement, and instructions that QEMU executed from its request to its answer."""
    measurer = rig.lib.measure("spin", number=CALLS, repeat=1, timeout_s=900)
    _ = rig.model, measurer(0)
    before = rig.qemu.read()
    (sample,) = measurer(rounds).samples
    return sample.ticks, rig.qemu.read().instructions - before.instructions


def test_workspace_costs_the_same_whatever_is_alive(image: Firmware, own_shift: int) -> None:
    """The function takes and frees 256 bytes, while no array is alive and while a hundred are."""
    with rig_at(image, own_shift) as rig:
        measurer = rig.lib.measure("testing.workspace", number=10, repeat=9)
        none = min(sample.ticks for sample in measurer(256).samples)
        arrays = [rig.device.empty((1,), "int8") for _ in range(100)]
        many = min(sample.ticks for sample in measurer(256).samples)
        assert abs(many - none) <= TICKS
        assert len(arrays) == 100


@pytest.mark.parametrize("seconds", [1e-3, 1.0, 100.0, None], ids=["1 ms", "1 s", "100 s", "3.5 wraps"])
def test_the_clocks_agree(
    image: Firmware, interrupts: Interrupts, seconds: float | None, record_property: Record
) -> None:
    with rig_at(image, FAST) as rig:
        rounds = rig.rounds_for(seconds if seconds is not None else 3.5 * 2**32 / rig.hz)
        start = Bracket(rig)
        (ticks,) = rig.ticks(rounds, CALLS)
        end = Bracket(rig)
        off = assert_right(rig, interrupts, ticks, CALLS, rounds)
        record_property("law: measured", f"{ticks} ticks, {ticks / rig.hz:.6f} s, off by {off:.1f} ticks")
        end.agrees_with(start, rig, record_property)


class Bracket:
    """The device's clocks, read between two readings of QEMU's."""

    def __init__(self, rig: Rig) -> None:
        self.before: QemuReading = rig.qemu.read()
        reading = rig.device.info().clock
        self.after: QemuReading = rig.qemu.read()
        assert reading is not None
        self.device: ClockReading = reading

    def agrees_with(self, start: Bracket, rig: Rig, record_property: Record) -> None:
        """Assert that since `start` the device's clocks have advanced as far as QEMU's, and by the same
        time."""
        cycles = self.device.seconds_since(start.device)
        hz = self.device.coarse_hz
        uptime = (self.device.uptime - start.device.uptime) / hz if hz else None
        record_property("law: cycle counter, uptime", f"{cycles:.6f} s, {uptime} s")
        if uptime is not None:
            # FPGAIO's clock shows that Zephyr's driver loses cycles when it sets SysTick for an idle wait.
            loss = 2e-4 if rig.reloads else 1e-6
            assert abs(cycles - uptime) <= 2 / self.device.coarse_hz + loss * cycles
        self._within_virtual(start, cycles, TICKS / rig.hz, record_property)
        if uptime is not None:
            self._within_virtual(start, uptime, 2 / self.device.coarse_hz, record_property)

    def _within_virtual(self, start: Bracket, seconds: float, slack: float, record_property: Record) -> None:
        if self.after.virtual_s is None:
            record_property("law: QEMU's virtual clock", "no counter of this machine shows it")
            return
        readings = (self.before, self.after, start.before, start.after)
        before, after, started, began = (reading.virtual_s or 0.0 for reading in readings)
        slack += 2 * self.after.resolution_s
        record_property("law: QEMU's virtual clock", f"{before - began:.6f} to {after - started:.6f} s")
        assert before - began - slack <= seconds <= after - started + slack


SPOTS = {"2^32 ns": 2**32 / 1e9, "2^31 cycles": 2**31, "2^32 cycles": 2**32}


@pytest.mark.parametrize(
    "spot",
    [pytest.param(spot, marks=[] if spot == "2^32 cycles" else pytest.mark.slow) for spot in SPOTS],
)
def test_times_are_right_on_either_side_of(
    image: Firmware, interrupts: Interrupts, spot: str, record_property: Record
) -> None:
    """The places are the end of 32 bits of nanoseconds or of cycles, and half of it."""
    with rig_at(image, shift_for(spot, image, interrupts)) as rig:
        target = SPOTS[spot] * (rig.hz if spot.endswith("ns") else 1)
        aimed = rig.near(target)
        adds = rig.excess(rig.ticks(aimed.rounds, aimed.number)[0], aimed.number, aimed.rounds)
        for side in (-1, 0, 1):
            number, rounds = rig.near(target - adds + side * max(1.0, rig.ticks_per_instruction))
            (ticks,) = rig.ticks(rounds, number)
            off = assert_right(rig, interrupts, ticks, number, rounds)
            record_property(f"law: {spot} = {target:.0f} ticks", f"read {ticks}, off by {off:.1f}")


def shift_for(spot: str, image: Firmware, interrupts: Interrupts) -> int:
    """An instruction takes about a tick for the first place, which takes seconds, and more for the others,
    which take minutes."""
    with rig_at(image, FAST) as rig:
        finest = max(shift for shift in range(11) if 2**shift * rig.hz <= 1e9)
    return finest + 1 if spot.endswith("ns") else FAST


def test_instructions_come_with_the_time(image: Firmware, own_shift: int) -> None:
    with rig_at(image, own_shift) as rig:
        measurement = rig.measure(1000, number=1000, repeat=5).net()
        assert measurement.instructions is not None
        loop_and_call = measurement.overhead.call / rig.ticks_per_instruction
        whole = measurement.instructions + loop_and_call
        assert whole == pytest.approx(rig.model.call + 1000 * rig.model.round, abs=0.02)


def test_a_short_function_costs_what_it_costs(
    image: Firmware, own_shift: int, interrupts: Interrupts, record_property: Record
) -> None:
    """With the options for which TVM's evaluator gives 0.0, or never ends: some tens of instructions a
    call."""
    with rig_at(image, own_shift) as rig:
        asked = rig.lib.measure("inc", number=20, repeat=3, min_repeat_ms=40)(1)
        true = (
            min(sample.ticks for sample in rig.lib.measure("inc", number=100_000, repeat=3)(1).samples) / 1e5
        )
        record_property("law: inc, ticks a call", f"{asked.ticks_per_call}, true {true}")
        for sample in asked.samples:
            assert sample.ticks >= 0.040 * rig.hz
            timer = rig.model.timer_ticks
            allowed = TICKS + timer + interrupts.one * rig.ticks_per_instruction
            assert abs(sample.ticks - sample.number * true) <= allowed
