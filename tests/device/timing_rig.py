# SPDX-License-Identifier: Apache-2.0
"""Tools of the tests of timing laws: devices at an icount shift, and a model of the time of `spin`.

Under icount a function takes a whole number of instructions, and each takes 2**shift ns. So the model's
numbers are whole ones, found in short measurements, and long measurements must agree with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import NamedTuple

from minrpc import Device, Firmware, Measurement, SystemLibrary, connect, start

from tests.device.qemu_clock import QemuClock

# A measurement of minutes of virtual time may take long on a busy host.
TIMEOUT_S = 900.0
# Both ends of an interval are cut to whole ticks, and so is the timer's own share that is compared with it.
TICKS = 2
CALLS = 8


@dataclass(frozen=True)
class Model:
    """The time of `spin`: ticks of timer and batch, instructions of a call and of a round in it."""

    timer_ticks: float
    call: int
    round: int

    def instructions(self, number: int, rounds: int) -> int:
        """Of `number` calls of `rounds` rounds each."""
        return number * (self.call + rounds * self.round)


class Work(NamedTuple):
    """`number` calls of `rounds` rounds each."""

    number: int
    rounds: int


@dataclass(frozen=True)
class Interrupts:
    """Cost of interrupts in a measured time, in instructions.

    per_s: in a second, on average.
    most: in one measurement of `SECONDS`.
    one: a single one, where all are alike; whole, as instructions are.
    """

    per_s: float
    most: float
    one: int

    SECONDS = 12.0


@dataclass
class Rig:
    """One device at one icount shift.

    reloads: Zephyr's driver for SysTick loads the counter anew at each of its interrupts, 1.5 a second at
        25 MHz, and loses part of a tick: 0.7 on average as measured, which is 0.04 ppm.
    """

    device: Device
    qemu: QemuClock
    shift: int
    reloads: bool = False

    @cached_property
    def lib(self) -> SystemLibrary:
        """Its functions."""
        return self.device.system_lib()

    @cached_property
    def hz(self) -> int:
        """Ticks of its clock in a second."""
        return self.device.info().timer_hz

    @property
    def ticks_per_instruction(self) -> float:
        """As the shift and the clock's rate make them."""
        return (1 << self.shift) * self.hz / 1e9

    def measure(self, rounds: int, number: int = 1, repeat: int = 1) -> Measurement:
        """`spin`, `number` times `rounds` rounds."""
        return self.lib.measure("spin", number=number, repeat=repeat, timeout_s=TIMEOUT_S)(rounds)

    def ticks(self, rounds: int, number: int = 1, repeat: int = 1) -> list[int]:
        """The same; the counts of each repeat."""
        return [sample.cycles for sample in self.measure(rounds, number, repeat).samples]

    @cached_property
    def model(self) -> Model:
        """Found from short measurements, each the shortest of five so that no interrupt is in it."""
        once, twice = (min(self.ticks(0, number, 5)) for number in (1000, 2000))
        short, long = (min(self.ticks(rounds, 1, 5)) for rounds in (10000, 20000))
        call = self._whole((twice - once) / 1000)
        # Not that of no calls at all: a loop that is not entered takes an instruction or two less, or more.
        timer = once - 1000 * call * self.ticks_per_instruction
        return Model(timer, call, self._whole((long - short) / 10000))

    def _whole(self, ticks: float) -> int:
        instructions = ticks / self.ticks_per_instruction
        assert abs(instructions - round(instructions)) < 0.02, "no whole number of instructions"
        return round(instructions)

    def predicted(self, number: int, rounds: int) -> float:
        """Ticks, without those of interrupts."""
        return self.model.timer_ticks + self.model.instructions(number, rounds) * self.ticks_per_instruction

    def excess(self, ticks: int, number: int, rounds: int) -> float:
        """By how many ticks a measurement is longer than the model has it: interrupts, if all is right."""
        return ticks - self.predicted(number, rounds)

    def off_interrupts(self, ticks: int, number: int, rounds: int, item: int) -> float:
        """How many ticks a time is off the model and a number of interrupts, all alike."""
        excess, each = self.excess(ticks, number, rounds), item * self.ticks_per_instruction
        return excess - round(excess / each) * each if item else excess

    def off_whole(self, ticks: int) -> float:
        """How many ticks a time is off the nearest whole number of instructions, the timer's own included.

        All instructions executed meanwhile, interrupts' too: a busy processor makes nothing else.
        """
        each = self.ticks_per_instruction
        return ticks - round(ticks / each) * each

    def rounds_for(self, seconds: float, number: int = CALLS) -> int:
        """How many rounds make `number` calls last so long, about."""
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
        """From measurements of some seconds, and from shorter ones, some of which hold a single one."""
        runs = [self._added(seconds, 12 if seconds < 0.5 else 3) for seconds in (0.3, 0.7, 1.5, 3, 6)]
        long_runs = self._added(Interrupts.SECONDS, 5)
        added = [
            excess
            for run in [*runs, long_runs]
            for excess in run
            if excess * self.ticks_per_instruction > TICKS
        ]
        return Interrupts(
            fmean(long_runs) / Interrupts.SECONDS, max(long_runs), round(min(added, default=0.0))
        )

    def _added(self, seconds: float, repeat: int) -> list[float]:
        """Instructions beyond the model, in each repeat of a measurement that lasts so long.

        The clock's own steps are no interrupts: it would grow with the time when extrapolated.
        """
        rounds = self.rounds_for(seconds)
        excess = [self.excess(ticks, CALLS, rounds) for ticks in self.ticks(rounds, CALLS, repeat)]
        return [item / self.ticks_per_instruction if abs(item) > TICKS else 0.0 for item in excess]


@contextmanager
def rig_at(firmware: Firmware, shift: int) -> Iterator[Rig]:
    """A device of its own, started for this."""
    with start(firmware.changed(icount_shift=shift)) as running, connect(running) as device:
        reloads = (firmware.platform.port, firmware.platform.clock) == ("zephyr", "SysTick")
        yield Rig(device, QemuClock(running), shift, reloads)


def spread(values: Sequence[int]) -> int:
    """From the smallest to the largest."""
    return max(values) - min(values)
