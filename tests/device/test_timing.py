# SPDX-License-Identifier: Apache-2.0
"""The time evaluator. Laws of every clock are asserted always; exact numbers only where QEMU counts
instructions (`--timing exact`).

The laws for exact times allow for the cost of interrupts: the clock's own interrupts fall into one
measurement and not into another. On Zephyr's qemu_x86 an interrupt takes about 1,200 instructions, as
measured.
"""

from collections.abc import Callable

import numpy as np
import pytest
from minrpc import Device, RemoteArray, RemoteError, RunningDevice, SystemLibrary, TimingResult

RecordTiming = Callable[[str, TimingResult], None]

INTERRUPT_INSTRUCTIONS = 2000
# Long enough that the allowance is below one per cent.
LEAST_INSTRUCTIONS = 100 * INTERRUPT_INSTRUCTIONS


@pytest.fixture
def instruction_s(running_device: RunningDevice) -> float:
    """Seconds of virtual time that one instruction takes; skips where instructions are not counted."""
    if running_device.icount is None:
        pytest.skip(f"{running_device.name}: instructions are not counted (timing {running_device.timing})")
    return float(2**running_device.icount.shift * 1e-9)


@pytest.fixture
def arguments(device: Device) -> tuple[RemoteArray, RemoteArray, RemoteArray]:
    """Arguments for add and mul: 64 int8 elements, one element to broadcast, and the result."""
    a = device.array(np.arange(64, dtype=np.int8))
    return a, device.array(np.array([4], np.int8)), device.empty((64,), np.int8)


def totals(
    lib: SystemLibrary, name: str, args: tuple[RemoteArray, ...], number: int, repeat: int
) -> list[float]:
    """Seconds of each repeat of `number` calls."""
    results = lib.time_evaluator(name, number=number, repeat=repeat)(*args).results
    return [result * number for result in results]


@pytest.mark.parametrize(("name", "operands"), [("add", 3), ("exp", 2)])
def test_times_are_positive_and_the_result_right(
    device: Device, record_timing: RecordTiming, name: str, operands: int
) -> None:
    x = np.linspace(-2, 2, 16, dtype=np.float32)
    result = device.empty(x.shape, np.float32)
    args = [*(device.array(x) for _ in range(operands - 1)), result]
    timing = device.system_lib().time_evaluator(name, number=20, repeat=3, min_repeat_ms=40)(*args)
    record_timing(name, timing)
    assert len(timing.results) == 3
    assert all(0 < seconds < 1 for seconds in timing.results)
    assert timing.min <= timing.median <= timing.max
    assert timing.mean > 0
    expected = x + x if name == "add" else np.exp(x)
    np.testing.assert_allclose(result.numpy(), expected, rtol=3e-7)


def test_repeats_are_equal(
    lib: SystemLibrary, arguments: tuple[RemoteArray, ...], instruction_s: float
) -> None:
    repeats = totals(lib, "add", arguments, number=1000, repeat=10)
    assert min(repeats) > LEAST_INSTRUCTIONS * instruction_s
    assert max(repeats) - min(repeats) <= INTERRUPT_INSTRUCTIONS * instruction_s


def test_twice_the_number_takes_twice_the_time(
    lib: SystemLibrary, arguments: tuple[RemoteArray, ...], instruction_s: float
) -> None:
    once, twice = (min(totals(lib, "add", arguments, number, repeat=5)) for number in (1000, 2000))
    assert once > LEAST_INSTRUCTIONS * instruction_s
    assert abs(twice - 2 * once) <= 3 * INTERRUPT_INSTRUCTIONS * instruction_s


def test_twice_the_elements_take_twice_the_time(
    device: Device, lib: SystemLibrary, instruction_s: float
) -> None:
    """For 256, 512 and 1024 elements: the constant part of a call's cost is the same for each."""

    def seconds(elements: int) -> float:
        a, c = device.array(np.zeros(elements, np.int8)), device.empty((elements,), np.int8)
        return min(totals(lib, "add", (a, a, c), number=100, repeat=3))

    first, second, third = (seconds(elements) for elements in (256, 512, 1024))
    assert second - first > LEAST_INSTRUCTIONS * instruction_s
    assert abs((third - second) - 2 * (second - first)) <= 5 * INTERRUPT_INSTRUCTIONS * instruction_s


def test_grown_batches_agree_with_fixed_ones(
    lib: SystemLibrary, arguments: tuple[RemoteArray, ...], instruction_s: float
) -> None:
    """`min_repeat_ms` changes the number of calls in a batch, and not the time of a call."""
    fixed = min(lib.time_evaluator("add", number=1000, repeat=3)(*arguments).results)
    grown = lib.time_evaluator("add", number=1, repeat=3, min_repeat_ms=20)(*arguments)
    # A batch of at least 20 ms has many calls, so that an interrupt's share of a call is small.
    share = INTERRUPT_INSTRUCTIONS * instruction_s * fixed / 0.020
    shares = INTERRUPT_INSTRUCTIONS * instruction_s / 1000 + share
    assert all(abs(seconds - fixed) <= shares for seconds in grown.results)


def test_several_evaluators_are_alive_at_once(lib: SystemLibrary, arguments: tuple[RemoteArray, ...]) -> None:
    adding = lib.time_evaluator("add", number=3, repeat=2)
    multiplying = lib.time_evaluator("mul", number=5, repeat=4)
    counting = lib.time_evaluator("inc", number=7, repeat=3)
    for _ in range(2):
        assert len(adding(*arguments).results) == 2
        assert len(multiplying(*arguments).results) == 4
        assert len(counting(1).results) == 3


def test_an_evaluator_remembers_nothing(
    lib: SystemLibrary, arguments: tuple[RemoteArray, ...], instruction_s: float
) -> None:
    """Earlier measurements, also by a batch that grew, change no later result."""
    adding = lib.time_evaluator("add", number=1000, repeat=1)
    before = adding(*arguments).mean * 1000
    lib.time_evaluator("mul", number=1, repeat=1, min_repeat_ms=20)(*arguments)
    assert abs(adding(*arguments).mean * 1000 - before) <= INTERRUPT_INSTRUCTIONS * instruction_s


def test_function_that_fails(lib: SystemLibrary, arguments: tuple[RemoteArray, ...]) -> None:
    adding = lib.time_evaluator("add", number=2)
    with pytest.raises(RemoteError, match="add: expected 3 arguments, got 1"):
        adding(arguments[0])
    assert adding(*arguments).mean >= 0
    assert lib.time_evaluator("mul", number=100, min_repeat_ms=1)(*arguments).mean > 0
