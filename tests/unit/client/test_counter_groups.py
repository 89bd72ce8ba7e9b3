# SPDX-License-Identifier: Apache-2.0
"""If a device has too few slots for the counters, they are measured in groups, and the result names the
groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from minrpc import DeviceClock, HarnessError, Measurement, Measurer, RemoteError
from minrpc.client import DeviceCounter, EvaluatorOptions
from minrpc.client.counting import Counted
from minrpc.client.device_counters import _parsed
from minrpc.timing import Overhead, TimingRecord

from tests.unit.timing.samples import EXACT, measured


class Slots:
    """A device with `slots` slots: each counter counts its own length."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.asked: list[tuple[str, ...]] = []

    def evaluator(self, names: Sequence[str]) -> Callable[..., bytes]:
        def run(*_: object) -> bytes:
            if len(names) > self.slots:
                raise RemoteError(f"no slot for the counter {names[self.slots]}")
            self.asked.append(tuple(names))
            return ",".join(names).encode()

        return run


def parse(answer: bytes) -> Measurement:
    columns = {name: len(name) for name in filter(None, answer.decode().split(","))}
    item = measured([100, 200])
    return replace(item, samples=tuple(replace(sample, columns=columns) for sample in item.samples))


def measurer(device: Slots, names: Sequence[str], bits: int = 64) -> Measurer:
    counted = Counted(device=dict.fromkeys(names, bits))
    return Measurer(
        device.evaluator,
        "f",
        EvaluatorOptions(),
        parse,
        counted,
        lambda native: 0,
        lambda native: Overhead(0, 0),
    )


@given(st.lists(st.text("abc", min_size=1, max_size=8), unique=True, max_size=9), st.integers(1, 9))
def test_all_are_counted_in_as_many_groups_as_it_takes(names: list[str], slots: int) -> None:
    device = Slots(slots)
    found = measurer(device, names)()
    assert found.counters == {name: (len(name),) * 2 for name in found.counters}
    assert sorted(found.counters) == sorted(names)
    if len(names) <= slots:
        assert (found.groups, device.asked) == ((), [tuple(names)])
    else:
        assert found.groups == tuple(device.asked)
        assert [name for group in found.groups for name in group] == names


def test_without_any_slot_the_devices_words_are_told() -> None:
    with pytest.raises(RemoteError, match="no slot for the counter"):
        measurer(Slots(0), ["one"])()


def test_a_narrow_counter_is_doubtful_where_it_may_have_gone_round() -> None:
    assert measurer(Slots(9), ["one"], bits=8)().doubtful == ()
    found = measurer(Slots(9), ["one"], bits=7)()
    assert found.doubtful == ("one",)
    again = TimingRecord.from_json(TimingRecord(platform="p", measurement=found).to_json())
    assert (again.measurement.doubtful, again.measurement.groups) == (("one",), ())


@pytest.mark.parametrize(
    ("masked", "unmasked", "clock", "lost"),
    [
        (30_000, 100_000, EXACT, True),
        (66_000, 100_000, EXACT, True),
        (80_000, 100_000, EXACT, False),
        (100_000, 90_000, EXACT, False),
        (30_000, 100_000, replace(EXACT, mode="wall"), False),
        # Shorter than a thousandth of a second.
        (3_000, 10_000, EXACT, False),
    ],
)
def test_a_clock_that_needs_interrupts_is_found_out(
    masked: int, unmasked: int, clock: DeviceClock, lost: bool
) -> None:
    def evaluator(cycles: int) -> Callable[..., bytes]:
        return lambda *_: str(cycles).encode()

    measurer = Measurer(
        lambda _: evaluator(masked),
        "f",
        EvaluatorOptions(),
        lambda answer: measured([int(answer)] * 2, clock=clock),
        Counted(),
        lambda native: 0,
        lambda native: Overhead(0, 0),
        evaluator(unmasked),
    )
    if not lost:
        assert measurer().ticks_per_call == (masked / 10,) * 2
        return
    with pytest.raises(HarnessError, match=r"the clock lost time while interrupts were masked for 0\.004 s"):
        measurer()


def test_the_list_of_a_device() -> None:
    assert _parsed(b"dwt_cycles,cycles,32\nown,,8\nbroken\n") == [
        DeviceCounter("dwt_cycles", "cycles", 32),
        DeviceCounter("own", "", 8),
    ]
