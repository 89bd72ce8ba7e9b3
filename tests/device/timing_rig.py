# SPDX-License-Identifier: Apache-2.0
"""Tools of the tests of timing laws: devices at an icount shift, and a model of the time of `spin`.

Under icount a function takes a whole number of instructions, and each takes 2**shift ns. So the model's
numbers are whole numbers, found in short measurements, and long measurements must agree with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import NamedTuple

from minrpc import Device, Firmware, Measurement, SystemLibrary, connect, start

from tests.device.qemu_clock import QemuClock, served_by_qmp

# A measurement of minutes of virtual time may take long on a busy host.
TIMEOUT_S = 900.0
# Both ends of an interval are cut to whole ticks, and so is the timer's own share in the comparison.
TICKS = 2
CALLS = 8


@dataclass(frozen=True)
class Model:
    """The time of `spin`: ticks of the timer and a batch, instructions of a call and of a round in a call."""

    timer_ticks: float
    call: int
    round: int

    def instructions(self, number: int, rounds: int) -> int:
        """Instructions of `number` calls of `rounds` rounds each."""
        return number * (self.call + rounds * self.round)


class Work(NamedTuple):
    """`number` calls of `rounds` rounds each."""

    number: int
    rounds: int


@dataclass(frozen=True)
class Interrupts:
    """Cost of interrupts in a measured time, in instructions.

    per_s: in a second, on average.
    most: in one measurement of `seconds`.
    one: instructions of a single interrupt, a whole number, if all interrupts are alike.
    """

    per_s: float
    most: float
    one: int
    seconds: float


@dataclass
class Rig:
    """One device at one icount shift.

    reloads: Zephyr's driver for SysTick reloads the counter at each of its interrupts, 1.5 a second at
        25 MHz, and loses part of a tick: 0.7 on average as measured, which is 0.04 ppm.
    """

    device: Device
    qemu: QemuClock
    shift: int
    reloads: bool = False

    @cached_property
    def lib(self) -> SystemLibrary:
        """The system library of the device."""
        return self.device.system_lib()

    @cached_property
    def hz(self) -> int:
        """Ticks of the device's clock in a second."""
        return self.device.info().timer_hz

    @property
    def ticks_per_instruction(self) -> float:
        """Ticks per instruction, from the shift and the clock's rate."""
        return (1 << self.shift) * self.hz / 1e9

    def measure(self, rounds: int, number: int = 1, repeat: int = 1) -> Measurement:
        """Ticks of `number` calls of `spin` with `rounds` rounds."""
        return self.lib.measure("spin", number=number, repeat=repeat, timeout_s=TIMEOUT_S)(rounds)

    def ticks(self, rounds: int, number: int = 1, repeat: int = 1) -> list[int]:
        """Ticks of the same calls, for each repeat."""
        return [sample.ticks for sample in self.measure(rounds, number, repeat).samples]

    @cached_property
    def model(self) -> Model:
        """The model from short measurements, each the shortest of five, so that it has no interrupt."""
        once, twice = (min(self.ticks(0, number, 5)) for number in (1000, 2000))
        short, long = (min(self.ticks(rounds, 1, 5)) for rounds in (10000, 20000))
        call = self._whole((twice - once) / 1000)
        # A batch without calls is no model: a loop that is not entered takes an instruction or two less, or
        # more.
        timer = once - 1000 * call * self.ticks_per_instruction
        return Model(timer, call, self._whole((long - short) / 10000))

    def _whole(self, ticks: float) -> int:
        instructions = ticks / self.ticks_per_instruction
        assert abs(instructions - round(instructions)) < 0.02, "no whole number of instructions"
        return round(instructions)

    def predicted(self, number: int, rounds: int) -> float:
        """Predicted ticks, without interrupts."""
        return self.model.timer_ticks + self.model.instructions(number, rounds) * self.ticks_per_instruction

    def excess(self, ticks: int, number: int, rounds: int) -> float:
        """The ticks by which a measurement exceeds the model: the ticks of interrupts, if all is right."""
        return ticks - self.predicted(number, rounds)

    def off_interrupts(self, ticks: int, number: int, rounds: int, item: int) -> float:
        """The difference in ticks of a time from the model with a number of equal interrupts."""
        excess, each = self.excess(ticks, number, rounds), item * self.ticks_per_instruction
        return excess - round(excess / each) * each if item else excess

    def off_whole(self, ticks: int) -> float:
        """The difference in ticks of a time from the nearest whole number of instructions, with the timer's
        own.

        These are all instructions executed meanwhile, also instructions of interrupts: a busy processor does
        nothing else.
        """
        each = self.ticks_per_instruction
        return ticks - round(ticks / each) * each

    def rounds_for(self, seconds: float, number: int = CALLS) -> int:
        """The approximate number of rounds with which `number` calls last this long."""
        instructions = seconds * 1e9 / (1 << self.shift) / number - self.model.call
        return max(0, round(instructions / self.model.round))

    def near(self, ticks: float) -> Work:
        """Number and rounds whose prediction comes nearest to `ticks`: to an instruction or two."""
        tries = range(1, 2 * CALLS + 1)
        seconds = (ticks - self.model.timer_ticks) / self.hz
        choices = [(number, self.rounds_for(seconds, number)) for number in tries]
        around = [Work(number, max(0, rounds + step)) for number, rounds in choices for step in (-1, 0, 1)]
        return min(around, key=lambda choice: abs(self.predicted(*choice) - ticks))

    def interrupts(self) -> Interrupts:
        """The cost of interrupts, from measurements of some seconds, and from shorter measurements, some of
        which have one interrupt. A clock may have an interrupt only each time that 31 bits of it pass."""
        runs = [self._added(seconds, 12 if seconds < 0.5 else 3) for seconds in (0.3, 0.7, 1.5, 3, 6)]
        seconds, long_runs = 12.0, self._added(12.0, 5)
        if not any(long_runs):
            seconds = 2**32 / self.hz
            long_runs = self._added(seconds, 2)
        added = [
            excess
            for run in [*runs, long_runs]
            for excess in run
            if excess * self.ticks_per_instruction > TICKS
        ]
        one = round(min(added, default=0.0))
        return Interrupts(fmean(long_runs) / seconds, max(long_runs), one, seconds)

    def _added(self, seconds: float, repeat: int) -> list[float]:
        """Instructions beyond the model, in each repeat of a measurement of this length. The clock's own
        steps are not interrupts: their effect would grow with the time when extrapolated.
        """
        rounds = self.rounds_for(seconds)
        excess = [self.excess(ticks, CALLS, rounds) for ticks in self.ticks(rounds, CALLS, repeat)]
        return [item / self.ticks_per_instruction if abs(item) > TICKS else 0.0 for item in excess]


@contextmanager
def rig_at(firmware: Firmware, shift: int) -> Iterator[Rig]:
    """A device that is started for this rig."""
    changed = firmware.changed(icount_shift=shift)
    with served_by_qmp() as qmp, start(changed) as running, connect(running) as device:
        reloads = (firmware.platform.port, firmware.platform.clock) == ("zephyr", "SysTick")
        yield Rig(device, QemuClock(qmp()), shift, reloads)


def spread(values: Sequence[int]) -> int:
    """The difference between the largest and the smallest."""
    return max(values) - min(values)
