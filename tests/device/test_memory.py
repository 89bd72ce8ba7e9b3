# SPDX-License-Identifier: Apache-2.0
"""Memory that a call needs, and the device's own counters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from minrpc import (
    ConfigurationError,
    Device,
    Firmware,
    FunctionNotFoundError,
    LoadedLibrary,
    MissingError,
    RemoteError,
    RunningDevice,
    SessionTerminatedError,
    build,
    open_device,
)
from minrpc.client.device_counters import LIST
from minrpc.library.toolset import program_facts

SOURCES = Path(__file__).parent / "c"


@pytest.fixture
def counting(device: Device) -> Device:
    try:
        device.get_function(LIST)
    except Exception as error:
        pytest.skip(f"this firmware counts nothing: {error}")
    return device


def test_an_array_of_n_bytes_needs_n_bytes_of_stack(
    counting: Device, load: Callable[..., LoadedLibrary]
) -> None:
    lib = load("c/stack.c", flags=["-O1"])
    needed = [
        lib.measure("use_stack", memory=True, number=1, repeat=3)(size).memory.stack
        for size in (256, 512, 1024)
    ]
    if needed[0] is None:
        pytest.skip("the port does not know its stack")
    assert [item - needed[0] for item in needed] == [0, 256, 768]
    # The function's frame beside the array; on x86-64 it ends below its stated frame.
    assert 256 - 8 <= needed[0] < 256 + 160


def test_no_more_is_measured_than_the_compiler_says(
    counting: Device, load: Callable[..., LoadedLibrary]
) -> None:
    """An interrupt may come in a repeat, on its own stack or not; the smallest of several repeats has no
    interrupt."""
    lib = load("c/stack.c", flags=["-O1"])
    bounds = {}
    for name in ("use_much", "use_below"):
        memory = lib.measure(name, memory=True, number=1, repeat=10)(5).memory
        assert memory is not None
        if memory.stack is None or memory.bound is None:
            pytest.skip("the port does not know its stack, or the compiler tells no bound")
        assert not memory.beyond_bound, memory
        assert memory.stack > memory.bound - 160
        assert memory.bound % 4 == 0
        bounds[name] = memory.bound
    assert bounds["use_below"] > bounds["use_much"] >= 800
    assert lib.measure("use_stack", memory=True, repeat=2)(64).memory.bound is None


def test_a_function_that_needs_no_stack_has_none(
    counting: Device, load: Callable[..., LoadedLibrary]
) -> None:
    """The check of the arguments needs stack, which would count as the function's."""
    memory = load("c/stack.c", flags=["-O1"]).measure("need_none", memory=True, number=1, repeat=5)(5).memory
    if memory.stack is None or memory.bound is None:
        pytest.skip("the port does not know its stack, or the compiler tells no bound")
    assert memory.stack <= 16
    assert not memory.beyond_bound


def test_a_stack_that_is_used_up_is_no_figure(counting: Device, load: Callable[..., LoadedLibrary]) -> None:
    """A call that uses all of the stack, or more, is an error on each platform, with and without a guard."""
    size = counting.info().stack_size
    if not size:
        pytest.skip("the port does not know its stack")
    timed = load("c/stack.c", flags=["-O1"]).measure("use_stack", memory=True, number=1, repeat=1)
    # A process has more stack than it measures; a device with a guard restarts.
    with pytest.raises((RemoteError, SessionTerminatedError)) as caught:
        timed(size)
    assert "stack" in f"{caught.value.message} {caught.value.console_tail}"


def test_workspace_is_the_arenas_peak(counting: Device) -> None:
    lib = counting.system_lib()
    array = counting.array(np.zeros(4, np.float32))
    without = lib.measure("add", memory=True, repeat=2)(array, array, array).memory
    assert without is not None
    assert without.arena == 0
    assert lib.measure("add", repeat=2)(array, array, array).memory is None


def test_workspace_of_n_bytes_raises_the_arenas_peak_by_n(counting: Device) -> None:
    lib = counting.system_lib()
    try:
        lib.get_function("testing.workspace")
    except FunctionNotFoundError:
        pytest.skip("its firmware has no function that takes workspace")
    timed = lib.measure("testing.workspace", memory=True, number=2, repeat=2)

    def peak(size: int) -> int:
        memory = timed(size).memory
        assert memory is not None
        assert memory.arena is not None
        return memory.arena

    peaks = [peak(size) for size in (64, 128, 1024)]
    assert [peak - peaks[0] for peak in peaks] == [0, 64, 960]
    assert 64 <= peaks[0] < 64 + 128


def test_peaks_can_be_reset(counting: Device) -> None:
    before = counting.stats(reset_peaks=True)
    array = counting.empty((64,), np.uint8)
    stats = counting.stats()
    assert before.arena_peak >= before.arena_used
    assert before.arena_used + 64 <= stats.arena_peak < before.arena_used + 64 + 512
    if stats.stack_peak is not None and before.stack_peak is not None:
        assert stats.stack_peak > 0
    assert stats.uptime_s > before.uptime_s
    assert stats.link.keys() == before.link.keys()
    assert array.shape == (64,)


def test_the_link_rests_while_a_function_is_timed(counting: Device) -> None:
    measured = counting.system_lib().measure("inc", counters=["link_received", "link_sent"], repeat=3)(1)
    assert measured.counters == {"link_received": (0, 0, 0), "link_sent": (0, 0, 0)}


def test_what_can_not_be_had_is_named_as_such(counting: Device, running_device: RunningDevice) -> None:
    counting.system_lib().measure("inc", counters="all")
    listed = counting.rpc.facts.counters or {}
    if running_device.icount is not None:
        # QEMU has none of these counters: they are named as absent, never counted as 0.
        assert all(item.bits == 0 for name, item in listed.items() if name.startswith(("dwt_", "pmu_")))
    for name, item in listed.items():
        if item.bits == 0:
            with pytest.raises(ConfigurationError, match=f"{name} is not available here"):
                counting.system_lib().measure("inc", counters=[name])


def test_twice_the_rounds_count_twice(counting: Device) -> None:
    """Instructions by the processor's own counter, if there is one."""
    lib = counting.system_lib()
    lib.measure("inc", counters="all")
    listed = counting.rpc.facts.counters or {}
    names = [name for name in ("minstret", "perf_instructions") if name in listed and listed[name].bits]
    clock = counting.clock()
    if not names or clock is None or not clock.exact:
        pytest.skip("no counter of instructions in exact time")
    timed = lib.measure("spin", number=1, repeat=3, counters=names)
    few, more, most = (min(timed(rounds).counters[names[0]]) for rounds in (1000, 2000, 4000))
    assert most - more == 2 * (more - few) > 0


def test_a_call_needs_the_heap_that_it_allocates(
    counting: Device, load: Callable[..., LoadedLibrary]
) -> None:
    """malloc of n bytes raises the peak of the heap by n, and a block by its guards."""
    lib = load("c/library.c")
    timed = lib.measure("two_blocks", memory=True, number=2, repeat=3)
    peaks = [timed(size).memory.heap for size in (256, 1024, 4096, 512)]
    if not any(peaks):
        pytest.skip("the heap's use is not known here")
    assert [peak - peaks[0] for peak in peaks] == [0, 768, 3840, 256]
    assert 256 <= peaks[0] <= 352


@pytest.mark.slow
def test_the_kernel_counts(image: Firmware) -> None:
    """When a thread of Zephyr's sleeps, others run."""
    if image.platform.port != "zephyr":
        pytest.skip("it has no kernel")
    options = ("-DCONFIG_TRACING=y", "-DCONFIG_TRACING_USER=y")
    firmware = build(image.target.changed(sources=[SOURCES / "resources.c"], cmake_options=options))
    least = {"interrupts": 3, "context_switches": 6}
    if program_facts(firmware.elf).machine == "EM_X86_64":
        del least["interrupts"]
    with open_device(firmware) as device:
        timed = device.system_lib().measure("rests", number=1, repeat=5, counters=list(least))
        counters = timed(3).counters
    assert all(min(counters[name]) >= count for name, count in least.items())


@pytest.mark.slow
def test_a_users_own_counter(image: Firmware) -> None:
    """The counter of docs/counters.md: five lines of C beside the code."""
    try:
        firmware = build(image.target.changed(sources=[SOURCES / "own_counter.c"]))
    except MissingError as error:
        pytest.skip(str(error))
    with open_device(firmware) as device:
        lib = device.system_lib()
        measured = lib.measure("inc", number=1, repeat=4, counters=["own_reads"])(1)
        narrow = lib.measure("inc", number=1, repeat=300, counters=["own_narrow"])(1)
    # Each read adds 1, so the difference between two reads is 1.
    assert measured.counters == {"own_reads": (1, 1, 1, 1)}
    # 8 bits wrap, which does not change differences.
    assert set(narrow.counters["own_narrow"]) == {1}
