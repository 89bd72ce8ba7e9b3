# SPDX-License-Identifier: Apache-2.0
"""Measuring in whole cycles: the requested counters, their sources, and the values from the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import example, given, strategies as st
from minrpc import ConfigurationError, Device, DialectError, HarnessError, Measurement, Sample, Target
from minrpc.client.counting import Counted
from minrpc.timing import Overhead

from tests.unit.client.conftest import Bench
from tests.unit.client.counting_model import EMPTY, FUNCTION, HZ, TIMER, CountingModel
from tests.unit.client.device_model import DeviceModel
from tests.unit.client.model_transport import ModelTransport
from tests.unit.timing.samples import measured

COUNTERS = {"reads": 32, "busy": 64, "absent": 0}
PEAKS = {"stack_bytes": 64, "arena_bytes": 64, "heap_bytes": 64}


@dataclass
class Outside:
    """An outside source: each counter is 1000 plus the batch's number, the stack 5000 minus it."""

    names: Mapping[str, str] = field(default_factory=lambda: {"instructions": ""})
    windows: int = 0
    asked_since: list[int] = field(default_factory=list)

    def count(self, batches: int) -> None:
        self.windows += batches

    refused: Mapping[str, str] = field(default_factory=dict)
    estimate: str = "estimate: a core's table"

    def of_batches(self, since: int, names: Sequence[str] | None = None) -> list[dict[str, int]]:
        self.asked_since.append(since)
        return [
            {
                name: 5000 - number if name == "stack_bytes" else 1000 + number
                for name in (self.names if names is None else names)
            }
            for number in range(since, self.windows)
        ]

    def name_in_tree(self, name: str, address: int | None) -> str:
        return name

    def inclusive(self, name: str, *, cycles: bool) -> Mapping[str, tuple[int, int]]:
        return {}

    def note_code(self, base: int, size: int, name: str, program: bytes) -> None:
        raise AssertionError("no code is loaded here")


def counting(
    counters: Mapping[str, int],
    outside: Outside | None = None,
    values: Callable[[str, str], int] = lambda *_: 0,
    target: Target | None = None,
) -> tuple[Device, CountingModel]:
    """A device with these counters, and the outside source `outside`."""
    model = DeviceModel()
    transport = ModelTransport(model)
    owner = replace(transport.owner, counters=outside, target=target)
    return Device(transport, owner), CountingModel(model, counters, values)


def test_ten_repeats_unless_told_otherwise_and_what_measuring_costs() -> None:
    """The defaults in the documentation of `measure`."""
    device, _ = counting({})
    found = device.system_lib().measure("inc", number=20)(1)
    assert found.samples == (Sample(TIMER + 20 * FUNCTION, 20),) * 10
    assert found.overhead == Overhead(timer=TIMER, call=EMPTY)
    assert found.clock.ticks_hz == HZ
    assert (found.counters, found.memory, found.groups, found.doubtful) == ({}, None, (), ())
    assert set(found.net().ticks_per_call) == {FUNCTION - EMPTY}


def test_what_measuring_costs_is_measured_once_in_a_session() -> None:
    device, model = counting({})
    library = device.system_lib()
    for _ in range(2):
        library.measure("inc")(1)
    empty = [evaluator for evaluator in model.evaluators if not evaluator.name]
    assert [(item.number > 0, item.runs) for item in empty] == [(False, 1), (True, 1)]


def test_counters_are_those_of_the_device_and_of_what_counts_it_from_outside() -> None:
    values = {"reads": 5, "busy": 6}
    outside = Outside(windows=3)
    device, model = counting(COUNTERS, outside, lambda counter, _: values[counter])
    measure = device.system_lib().measure("inc", counters=["busy", "instructions"], repeat=2)
    model.batches = [1, 2]
    model.ran = outside.count
    found = measure(1)
    assert model.evaluators[0].counters == ("busy",)
    assert found.counters == {"instructions": (1003, 1005), "busy": (6, 6)}
    # Then, each 15 batches without calls and 15 of an empty function: ticks, and both counters in turn.
    assert outside.asked_since == [3, 36, 66]
    assert found.overhead.counters["busy"] == (6.0, 0.0)
    assert found.net().counter_per_call("busy") == 0.0


def test_counters_from_outside_are_those_of_the_group_whose_times_are_kept() -> None:
    outside = Outside()
    device, model = counting(COUNTERS, outside, lambda *_: 5)
    measure = device.system_lib().measure("inc", counters=["reads", "busy", "instructions"], repeat=2)
    model.slots, model.batches, model.ran = 1, [1, 2], outside.count
    found = measure(1)
    assert found.groups == (("reads",), ("busy",))
    assert outside.asked_since[0] == 0
    assert found.counters == {"instructions": (1000, 1002), "reads": (5, 5), "busy": (5, 5)}


def test_all_are_those_that_can_be_had() -> None:
    device, _ = counting(COUNTERS | PEAKS, Outside())
    device.connect()
    chosen = Counted.chosen(device.rpc, "all")
    assert chosen.names == ("instructions",)
    assert chosen.device == {"reads": 32, "busy": 64}
    assert chosen.memory == ()
    assert chosen.asked_of_device == ("reads", "busy")


def test_what_counts_from_outside_is_not_looked_at_for_the_devices_own() -> None:
    outside = Outside()
    device, model = counting(COUNTERS, outside, lambda *_: 5)
    model.batches = [1, 2]
    found = device.system_lib().measure("inc", counters=["reads"], repeat=2)(1)
    assert found.counters == {"reads": (5, 5)}
    assert outside.asked_since == []


def test_the_name_of_a_single_counter_needs_no_list() -> None:
    device, _ = counting(COUNTERS, None)
    device.connect()
    assert Counted.chosen(device.rpc, "reads") == Counted.chosen(device.rpc, ["reads"])


@pytest.mark.parametrize("given", [5, None, [5], {"reads"}, True])
def test_counters_are_a_list_of_names(given: Any) -> None:  # noqa: ANN401 - any type
    device, _ = counting(COUNTERS, None)
    with pytest.raises(TypeError, match="counters are a list of names or 'all', not "):
        device.system_lib().measure("inc", counters=given)


@pytest.mark.parametrize(
    ("platform", "port", "advice"),
    [
        ("bare_mps2_an385", None, "start it with counters=True, or --counters"),
        ("posix", None, "name a platform that runs under QEMU: see `minrpc platforms`"),
        ("bare_mps2_an385", "/dev/ttyACM0", "name a platform that runs under QEMU: see `minrpc platforms`"),
    ],
)
def test_the_advice_for_a_counter_can_be_followed(platform: str, port: str | None, advice: str) -> None:
    device, _ = counting({}, None, target=Target.named(platform, serial_port=port))
    with pytest.raises(ConfigurationError, match="no counter loads") as caught:
        device.system_lib().measure("inc", counters=["loads"])
    assert caught.value.next_step == advice


def test_nothing_is_asked_where_no_counters_are_wanted() -> None:
    device, model = counting(COUNTERS, Outside())
    device.connect()
    asked = len(model.model.requests)
    assert Counted.chosen(device.rpc, ()) == Counted()
    assert len(model.model.requests) == asked


@pytest.mark.parametrize(
    ("own", "outside", "name", "error", "details", "next_step"),
    [
        (
            COUNTERS,
            Outside(),
            "loads",
            "no counter loads",
            ("it has instructions, reads, busy",),
            "one of these",
        ),
        (COUNTERS, None, "loads", "no counter loads", ("it has reads, busy",), "--counters"),
        ({}, None, "loads", "no counter loads", ("nothing counts it",), "--counters"),
        (COUNTERS, None, "absent", "absent is not available here", ("there is reads, busy",), "leave it out"),
        ({"absent": 0}, None, "absent", "absent is not available here", (), "leave it out"),
    ],
)
def test_a_counter_that_is_not_there_is_named_with_those_that_are(
    own: Mapping[str, int],
    outside: Outside | None,
    name: str,
    error: str,
    details: Sequence[str],
    next_step: str,
) -> None:
    device, _ = counting(own, outside)
    with pytest.raises(ConfigurationError, match=error) as caught:
        device.system_lib().measure("inc", counters=[name])
    assert tuple(caught.value.details) == tuple(details)
    assert next_step in caught.value.next_step


def test_memory_is_the_least_stack_beyond_an_empty_call_and_the_most_of_the_rest() -> None:
    used = {"stack_bytes": 200, "arena_bytes": 32, "heap_bytes": 16}
    device, _ = counting(COUNTERS | PEAKS, None, lambda counter, name: used.get(counter, 5) if name else 64)
    found = device.system_lib().measure("inc", memory=True, counters=["reads"], repeat=2)(1)
    assert found.memory is not None
    assert (found.memory.stack, found.memory.arena, found.memory.heap) == (136, 32, 16)
    assert found.counters == {"reads": (5, 5)}


def test_memory_that_the_device_does_not_tell_is_unknown() -> None:
    device, _ = counting({"stack_bytes": 64}, None, lambda _, name: 100 if name else 128)
    found = device.system_lib().measure("inc", memory=True)(1)
    assert found.memory is not None
    assert (found.memory.stack, found.memory.arena, found.memory.heap) == (0, None, None)


@pytest.mark.parametrize("outside", [None, Outside()])
def test_memory_is_refused_where_nothing_tells_it(outside: Outside | None) -> None:
    device, _ = counting({}, outside)
    with pytest.raises(ConfigurationError, match="does not report a call's need of memory"):
        device.system_lib().measure("inc", memory=True)


def test_interrupts_are_masked_where_the_device_can() -> None:
    device, model = counting(COUNTERS)
    device.system_lib().measure("inc", interrupts_masked=True, counters=["reads"])(1)
    # The first measurement shows whether the second has lost time.
    assert [evaluator.counters for evaluator in model.evaluators if evaluator.name] == [
        (),
        ("reads", "interrupts_masked"),
    ]
    with pytest.raises(ConfigurationError, match="can't mask interrupts"):
        counting({})[0].system_lib().measure("inc", interrupts_masked=True)


def test_a_device_of_another_kind_counts_no_cycles(bench: Bench) -> None:
    with pytest.raises(DialectError, match="can't count cycles"):
        bench.device.system_lib().measure("inc")


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 99)), min_size=1, max_size=5))
def test_each_repeat_has_the_counters_of_its_last_batch(repeats: list[tuple[int, int]]) -> None:
    batches = [
        {"loads": kept if last else 12345} for many, kept in repeats for last in [False] * (many - 1) + [True]
    ]
    found = Counted(names=("loads",)).added_to(batched([many for many, _ in repeats]), batches)
    assert found.counters == {"loads": tuple(kept for _, kept in repeats)}


def test_batches_that_were_not_all_counted_are_an_error() -> None:
    counted = Counted(names=("loads",))
    with pytest.raises(HarnessError, match="7 batches were timed, and 5 were counted"):
        counted.added_to(batched([1, 2, 4]), [{"loads": 1}] * 5)
    with pytest.raises(HarnessError, match="0 batches were timed, and 0 were counted"):
        counted.added_to(batched([]), [])


def batched(batches: Sequence[int]) -> Measurement:
    item = measured([100] * len(batches))
    samples = (replace(sample, batches=many) for sample, many in zip(item.samples, batches, strict=True))
    return replace(item, samples=tuple(samples))


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=3), st.integers(1, 64))
@example([2**63], 63)
@example([2**63 - 1], 63)
@example([2**64 - 1], 64)
@example([2**32 - 1, 2**32, 0], 32)
def test_a_counter_is_doubtful_that_can_not_hold_the_longest_repeat(cycles: list[int], bits: int) -> None:
    doubtful = Counted(device={"one": bits}).doubtful(measured(cycles).samples)
    assert doubtful == (("one",) if max(cycles) >= 2**bits else ())


def test_the_counters_are_asked_for_once_in_a_session() -> None:
    device, model = counting(COUNTERS)
    answer = model.model.globals["minrpc.counters"]
    asked: list[object] = []
    model.model.globals["minrpc.counters"] = lambda args: asked.append(args) or answer(args)  # type: ignore[func-returns-value]
    for _ in range(2):
        device.system_lib().measure("inc", counters=["reads"])
    assert len(asked) == 1


def test_a_list_of_counters_that_is_none(bench: Bench) -> None:
    bench.model.globals["minrpc.counters"] = lambda _: 5
    bench.device.connect()
    with pytest.raises(DialectError, match="gave 5 instead of a list"):
        Counted.chosen(bench.device.rpc, "all")


@pytest.mark.parametrize("counters", [(), ["stack_bytes"], ["instructions"]])
def test_the_stack_is_counted_from_outside_where_the_device_does_not_tell(counters: Sequence[str]) -> None:
    outside = Outside({"instructions": "", "stack_bytes": "bytes"})
    device, model = counting({}, outside)
    model.batches = [1, 2]
    model.ran = outside.count
    found = device.system_lib().measure("inc", memory=True, counters=counters, repeat=2)(1)
    assert found.counters["stack_bytes"] == (62, 60)  # An empty function's is 4938.
    assert set(found.counters) == {*counters, "stack_bytes"}
    assert found.memory is None
