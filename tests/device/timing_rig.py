# SPDX-License-Identifier: Apache-2.0
"""What the laws of timing are tested with: devices at an icount shift, and a model of what `spin` takes.

Under icount a function takes a whole number of instructions, and each takes 2**shift ns. So the model's
numbers are whole ones, found in short measurements, and long measurements must agree with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from harness.client import Device, SystemLibrary
from harness.opening import device_on
from harness.platforms import Firmware, launch
from harness.timing import Measurement
from tests.device.qemu_clock import QemuClock

# A measurement of minutes of virtual time may take long on a busy host.
TIMEOUT_S = 900.0
# Both ends of an interval are cut to whole ticks, and so is the timer's own share that is compared with it.
TICKS = 2
CALLS = 8


@dataclass(frozen=True)
class Model:
    """What timing `spin` takes: ticks of the timer itself, instructions of a call and of a round in it."""

    timer_ticks: float
    call: int
    round: int

    def instructions(self, number: int, rounds: int) -> int:
        """Of `number` calls of `rounds` rounds each."""
        return number * (self.call + rounds * self.round)


@dataclass(frozen=True)
class Interrupts:
    """What interrupts add to a measured time, in instructions.

    per_s: in a second, on average.
    most: in one measurement of `SECONDS`.
    one: a single one.
    """

    per_s: float
    most: float
    one: float

    SECONDS = 12.0


@dataclass
class Rig:
    """One device at one icount shift."""

    device: Device
    qemu: QemuClock
    shift: int

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
        """The same; what was counted in each repeat."""
        return [sample.cycles for sample in self.measure(rounds, number, repeat).samples]

    @cached_property
    def model(self) -> Model:
        """Found from short measurements, each the shortest of five so that no interrupt is in it."""
        once, twice = (min(self.ticks(0, number, 5)) for number in (1000, 2000))
        short, long = (min(self.ticks(rounds, 1, 5)) for rounds in (10000, 20000))
        timer = self.measure(0).overhead.timer
        return Model(timer, self._whole((twice - once) / 1000), self._whole((long - short) / 10000))

    def _whole(self, ticks: float) -> int:
        instructions = ticks / self.ticks_per_instruction
        assert abs(instructions - round(instructions)) < 0.02, "no whole number of instructions"
        return round(instructions)

    def predicted(self, number: int, rounds: int) -> float:
        """Ticks, without what interrupts add."""
        return self.model.timer_ticks + self.model.instructions(number, rounds) * self.ticks_per_instruction

    def excess(self, ticks: int, number: int, rounds: int) -> float:
        """By how many ticks a measurement is longer than the model has it: interrupts, if all is right."""
        return ticks - self.predicted(number, rounds)

    def rounds_for(self, seconds: float, number: int = CALLS) -> int:
        """How many rounds make `number` calls last so long, about."""
        instructions = seconds * 1e9 / (1 << self.shift) / number - self.model.call
        return max(0, round(instructions / self.model.round))

    def near(self, ticks: float) -> tuple[int, int]:
        """Number and rounds whose prediction comes nearest to `ticks`: to an instruction or two."""
        tries = range(CALLS, 2 * CALLS + 1)
        choices = [(number, self.rounds_for(ticks / self.hz, number)) for number in tries]
        around = [(number, max(0, rounds + step)) for number, rounds in choices for step in (-1, 0, 1)]
        return min(around, key=lambda choice: abs(self.predicted(*choice) - ticks))

    def interrupts(self) -> Interrupts:
        """From a few measurements of some seconds, and many short ones that hold one interrupt at most."""
        rounds, short = self.rounds_for(Interrupts.SECONDS), self.rounds_for(0.3, 1)
        long_runs = [self.excess(ticks, CALLS, rounds) for ticks in self.ticks(rounds, CALLS, 5)]
        short_runs = [self.excess(ticks, 1, short) for ticks in self.ticks(short, 1, 12)]
        added, most = fmean(long_runs), max(long_runs)
        one = max(short_runs) if max(short_runs) > TICKS else most
        each = self.ticks_per_instruction
        return Interrupts(added / each / Interrupts.SECONDS, most / each, one / each)


@contextmanager
def rig_at(firmware: Firmware, shift: int) -> Iterator[Rig]:
    """A device of its own, started for this."""
    with launch(firmware, icount_shift=shift) as running, device_on(running) as device:
        yield Rig(device, QemuClock(running), shift)


def spread(values: Sequence[int]) -> int:
    """From the smallest to the largest."""
    return max(values) - min(values)
