# SPDX-License-Identifier: Apache-2.0
"""Takes one target through all stages."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from minrpc.check.cases import Case
from minrpc.errors import FunctionNotFoundError, HarnessError, LinkError
from minrpc.firmware import Firmware, build
from minrpc.host.deadline import Deadline
from minrpc.pipeline import Device, connect
from minrpc.pipeline.post_mortem import state_lines
from minrpc.running import RunningDevice, start
from minrpc.targets import Platform, Target
from minrpc.timing import DeviceClock
from minrpc.timing.measurement import Measurement
from minrpc.timing.units import count, quantity

# The options with which microTVM's own tests time a function.
NUMBER: Final = 20
REPEAT: Final = 3
MIN_REPEAT_MS: Final = 40
# Rate of Zephyr's slowest cycle counter, at which a count is 30 us.
_COARSE_S: Final = 1e-5
# Bytes of the device's memory that a measurement takes beside the arrays.
_MEASURING: Final = 512
# Bytes of the array that is copied if the firmware has no function to call.
_COPIED: Final = 4096

SayStage = Callable[[str, str], None]
"""Shows a line of progress: the stage, and its result."""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """A case on a device.

    error: largest error, see `Case.error_of`.
    measurement: its times on the device's clock.
    """

    case: Case
    error: float
    measurement: Measurement

    @property
    def passed(self) -> bool:
        """True if the result is right and every repeat took time."""
        return self.case.passes(self.error) and all(time > 0 for time in self.measurement.seconds_per_call)

    @property
    def calls(self) -> int:
        """Timed calls in all repeats."""
        return sum(sample.number for sample in self.measurement.samples)


@dataclass
class Checked:
    """The result for a target. The fields of stages that were not reached are None or empty.

    missing: functions of the check that the firmware lacks: it may be a user's own application.
    copied: in place of missing functions, an array was copied to the device and back without change.
    """

    target: Target
    firmware: Firmware | None = None
    boot_s: float | None = None
    clock: DeviceClock | None = None
    outcomes: list[CheckOutcome] = field(default_factory=list)
    failure: HarnessError | None = None
    missing: list[str] = field(default_factory=list)
    copied: bool = False

    @property
    def passed(self) -> bool:
        """True if every stage was reached and every result is right."""
        tried = bool(self.outcomes) or self.copied
        return self.failure is None and tried and all(outcome.passed for outcome in self.outcomes)


def check(target: Target, total: Deadline, cases: Sequence[Case], say: SayStage) -> Checked:
    """Take `target` through all stages, up to the first that fails."""
    checked = Checked(target)
    try:
        with ExitStack() as stack:
            running = stack.enter_context(_start(checked, total, say))
            device = stack.enter_context(connect(running, total=total))
            with _with_state(running, device):
                _connect(checked, device, say)
                _call(checked, device, cases, say)
    except HarnessError as error:
        checked.failure = error
    return checked


@contextmanager
def _with_state(running: RunningDevice, device: Device) -> Iterator[None]:
    """Adds the device's own report to a failure, if it still answers."""
    try:
        yield
    except HarnessError as error:
        error.details += tuple(state_lines(running, device))
        raise


def _start(checked: Checked, total: Deadline, say: SayStage) -> RunningDevice:
    target = checked.target
    if target.attached:
        running = start(target, total=total)
        checked.firmware = running.firmware
        say("attach", f"{running.target.serial_port}, {running.platform.baud} baud")
        return running
    firmware = checked.firmware = build(target)
    say("build", build_text(firmware))
    begin = time.monotonic()
    running = start(firmware, total=total)
    checked.boot_s = time.monotonic() - begin
    say("start", f"{checked.boot_s:.2f} s, link {running.transport.name}")
    return running


def build_text(firmware: Firmware) -> str:
    """The origin of `firmware`, its flash and RAM in bytes, and the unit that computes floats."""
    how = f"{'from the cache' if firmware.cached else 'built'} in {firmware.seconds:.1f} s"
    if firmware.target.build_dir is not None:
        how = f"as it is in {firmware.target.build_dir}"
    sizes = firmware.sizes
    floats = f", floats by {firmware.floating_point}" if firmware.floating_point else ""
    memory = f"flash {count(sizes.flash)} bytes, RAM {count(sizes.ram)} bytes"
    return f"{how}: {memory}{floats}"


def _connect(checked: Checked, device: Device, say: SayStage) -> None:
    begin = time.monotonic()
    device.connect()
    answered_s = time.monotonic() - begin
    info = device.info()
    say("session", f"answered after {answered_s:.2f} s: {count(info.arena_largest_free)} bytes for arrays")
    if checked.boot_s is not None:
        checked.boot_s += answered_s


def _call(checked: Checked, device: Device, cases: Sequence[Case], say: SayStage) -> None:
    checked.missing = [
        name for name in dict.fromkeys(case.function for case in cases) if not _has(device, name)
    ]
    free = device.info().arena_largest_free
    for case in cases:
        needed = (
            sum(array.nbytes for array in case.inputs) + case.dtype.itemsize * case.exact.size + _MEASURING
        )
        if needed > free:
            text = (
                f"{case.function} {case.dtype} {case.size} needs {count(needed)} bytes for arrays and times"
            )
            say("call", f"{text}, {count(free)} are free: not called")
        elif case.function not in checked.missing:
            outcome = _run(case, device)
            checked.outcomes.append(outcome)
            say("call", _called(outcome))
    if checked.missing:
        say("call", f"the firmware has no function {', '.join(checked.missing)}: not called")
    if checked.missing or not checked.outcomes:
        say("copy", f"{count(_copy(device))} bytes there and back: right")
        checked.copied = True
    checked.clock = device.clock()
    say("clock", str(checked.clock))
    platform = checked.firmware.target.platform if checked.firmware else checked.target.platform
    hint = checked.clock and clock_hint(platform, checked.clock)
    if hint:
        say("hint", hint)


def _has(device: Device, function: str) -> bool:
    try:
        device.system_lib().get_function(function)
    except FunctionNotFoundError:
        return False
    return True


def _copy(device: Device) -> int:
    """Copy random bytes to the device and back; returns their number. Raises LinkError for other bytes."""
    size = min(_COPIED, device.info().arena_largest_free // 2)
    sent = np.random.default_rng(1).integers(0, 256, size, np.uint8)
    with device.array(sent) as array:
        wrong = int(np.count_nonzero(array.numpy() != sent))
    if wrong:
        raise LinkError(f"of {size} bytes that were copied to the device, {wrong} came back wrong")
    return size


def clock_hint(platform: Platform, clock: DeviceClock) -> str:
    """Advice for exact or finer times by Zephyr's configuration; "" if there is none."""
    if platform.port == "zephyr" and platform.starts == "qemu" and clock.mode == "wall":
        return (
            "times follow the host's clock: CONFIG_QEMU_ICOUNT=y in the firmware's configuration, on one "
            "processor and without --timing wall, counts instructions"
        )
    if platform.port != "zephyr" or clock.exact or clock.resolution_s < _COARSE_S:
        return ""
    return (
        f"a count is {quantity(clock.resolution_s, 's')}: cmake_options = "
        '["-DCONFIG_MINRPC_CLOCK_TIMING=y"] takes a finer clock, on Nordic\'s TIMER2'
    )


def _run(case: Case, device: Device) -> CheckOutcome:
    library = device.system_lib()
    with ExitStack() as stack:
        inputs = [stack.enter_context(device.array(array)) for array in case.inputs]
        result = stack.enter_context(device.empty(case.shape, case.dtype))
        library[case.function](*inputs, result)
        error = case.error_of(result.numpy())
        measure = library.measure(case.function, number=NUMBER, repeat=REPEAT, min_repeat_ms=MIN_REPEAT_MS)
        return CheckOutcome(case, error, measure(*inputs, result))


def _called(outcome: CheckOutcome) -> str:
    case, mean = outcome.case, outcome.measurement.seconds_per_call
    right = "right" if case.passes(outcome.error) else f"WRONG by {outcome.error:g}"
    per_call = quantity(sum(mean) / len(mean), "s")
    return f"{case.function} {case.dtype} {case.size}: {right}, {per_call} a call"
