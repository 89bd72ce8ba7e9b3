# SPDX-License-Identifier: Apache-2.0
"""Laws of the counts of QEMU's plugin: it agrees with time and with itself, and costs the guest nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from minrpc import (
    CFunctions,
    ConfigurationError,
    Device,
    Firmware,
    Measurement,
    QemuCounters,
    SystemLibrary,
    connect,
    counters_for,
    library_of,
    measure,
    open_device,
    profile_call,
    start,
)
from minrpc.counters import Counts
from minrpc.counters.coverage import covered_lines
from minrpc.counters.plugin_build import api_of, qemu_version

from tests.device.timing_rig import TICKS

ROUNDS = 10_000


class Counted(NamedTuple):
    """A measurement, the instructions of its batches, and the same by instruction."""

    measurement: Measurement
    batches: list[int]
    counts: Counts

    @property
    def least(self) -> tuple[int, int]:
        """Ticks and instructions of the shortest repeat, which has no interrupt."""
        cycles = [sample.ticks for sample in self.measurement.samples]
        return min(cycles), self.batches[cycles.index(min(cycles))]


class Counting(NamedTuple):
    """A device under the plugin."""

    lib: SystemLibrary
    counters: QemuCounters

    def spin(self, rounds: int, number: int = 1, repeat: int = 5) -> Counted:
        """Readings and counts of a measurement of `number` calls of `rounds` rounds."""
        measurer = self.lib.measure("spin", number=number, repeat=repeat)
        _ = measurer(0)  # also measures the cost of measuring, in batches of its own
        windows, before = self.counters.windows, self.counters.in_windows()
        measurement = measurer(rounds)
        return Counted(
            measurement,
            self.counters.window_instructions(windows),
            self.counters.in_windows() - before,
        )


@contextmanager
def counting(image: Firmware) -> Iterator[Counting]:
    """A device of its own with the plugin in its QEMU."""
    with (
        counters_for(image.elf) as counters,
        start(image, counters=counters) as running,
        connect(running) as device,
    ):
        yield Counting(device.system_lib(), counters)


def test_lines_of_skipped_instructions_are_not_covered(image: Firmware, tmp_path: Path) -> None:
    """A profile names them. Perhaps covered, where QEMU shows no flags: the compiler makes an IT block."""
    if image.target.platform.core not in ("cortex-m3", "cortex-m4"):
        pytest.skip("for Thumb with IT")
    source = tmp_path / "twice.c"
    source.write_text("int twice(int x)\n{\n\tif (x < 0)\n\t\treturn -2 * x;\n\treturn x + 1;\n}\n")
    exact = api_of(qemu_version(image.target.platform.qemu)) > 1
    with (
        counters_for(image.elf, flow=True) as counters,
        start(image, counters=counters) as running,
        connect(running) as device,
    ):
        library = library_of(device.load(source, flags=["-Os"]))

        def count_of_line_4() -> int | None:
            lines = covered_lines(counters.image, counters.executed_by_code(), Path)
            return lines[str(source)][4]

        assert library["twice"](5) == 6
        assert count_of_line_4() == (0 if exact else None)
        assert library["twice"](-5) == 10
        assert count_of_line_4() == (1 if exact else None)
        found = [profile_call(library, counters, "twice", [x]).skipped_lines for x in (5, -5)]
    words = [{line.number: word for line, word in lines.items() if line} for lines in found]
    either = {4: "perhaps skipped", 5: "perhaps skipped"}
    assert words == ([{4: "skipped"}, {5: "skipped"}] if exact else [either, either])


def test_the_plugin_takes_none_of_the_guests_time(image: Firmware) -> None:
    with counting(image) as counted:
        ticks, _ = counted.spin(ROUNDS).least
    with start(image) as running, connect(running) as device:
        plain = device.system_lib().measure("spin", number=1, repeat=5)(ROUNDS)
    assert abs(ticks - min(sample.ticks for sample in plain.samples)) <= 1


@pytest.mark.parametrize("form", ["native", "packed"])
def test_a_net_count_is_the_function_s_own_less_an_empty_function_s(
    image: Firmware, tmp_path: Path, form: str
) -> None:
    """A function of the runtime's form, and a loaded one, which has TVM's: their calls differ in cost."""
    source = tmp_path / "inc.c"
    source.write_text("int next(int x) { return x + 1; }\n")
    with (
        counters_for(image.elf, flow=True, memory=True) as counters,
        start(image, counters=counters) as running,
        connect(running) as device,
    ):
        if form == "native":
            measurer = device.system_lib().measure("inc", number=100, counters="all")
        else:
            measurer = library_of(device.load(source)).measure("next", number=100, counters="all")
        found = measurer(1)
    net = found.net()
    # An empty function returns a constant. The conversion of a loaded function's arguments is in no profile.
    least = found.inclusive["instructions"] - 5
    most = found.inclusive["instructions"] + (60 if form == "packed" else 0)
    assert least <= net.counter_per_call("instructions") <= most
    assert all(net.counter_per_call(name) >= 0 for name in ("loads", "stores", "branches"))


def test_each_batch_is_counted(image: Firmware) -> None:
    with counting(image) as counted:
        result = counted.spin(ROUNDS, repeat=7)
    assert len(result.batches) == 7
    assert result.counts.total == sum(result.batches)
    assert max(result.counts.by_function(counted.counters.image).values()) > 0.9 * sum(result.batches)


@pytest.mark.parametrize("flow", [False, True])
def test_what_runs_outside_of_batches_is_counted_too(image: Firmware, flow: bool) -> None:
    with (
        counters_for(image.elf, flow=flow) as counters,
        start(image, counters=counters) as running,
        connect(running) as device,
    ):
        lib = device.system_lib()
        measurer = lib.measure("spin", number=1, repeat=1)
        measurer(0)
        timed = counters.in_windows()
        measurer(ROUNDS)
        timed = counters.in_windows() - timed
        instructions, before = counters.instructions, counters.executed()
        lib["spin"](ROUNDS)
        called = counters.executed() - before
        assert counters.instructions - instructions >= called.total
    inside, outside = (item.by_function(counters.image) for item in (timed, called))
    most = max(inside, key=lambda name: inside[name])
    assert outside[most] == inside[most] > 2 * ROUNDS


def test_jumps_of_a_loop_are_one_less_than_its_rounds(image: Firmware) -> None:
    with counting(image) as counted:
        _ = counted.spin(0)  # also measures an empty function, thousands of times
        before = counted.counters.jumps_in_windows()
        _ = counted.spin(ROUNDS, repeat=1)
        jumps = counted.counters.jumps_in_windows()
    taken = {at: count - before.get(at, 0) for at, count in jumps.items()}
    assert max(taken.values()) in (ROUNDS - 1, ROUNDS)
    executed = counted.counters.in_windows().by_address
    assert all(count <= executed[at] for at, count in jumps.items())


def test_instructions_are_the_time(image: Firmware, own_shift: int) -> None:
    """The difference in time of two measurements is the difference of their instructions, to the tick."""
    with counting(image) as counted:
        (short_ticks, short), (long_ticks, long) = (counted.spin(n).least for n in (0, ROUNDS))
        hz = counted.spin(0).measurement.clock.ticks_hz
    assert long - short > ROUNDS
    assert abs((long_ticks - short_ticks) - (long - short) * 2**own_shift * hz / 1e9) <= TICKS


def test_twice_the_rounds_are_twice_the_instructions(image: Firmware) -> None:
    with counting(image) as counted:
        none, once, twice = (counted.spin(n).least[1] for n in (0, ROUNDS, 2 * ROUNDS))
        calls = [counted.spin(ROUNDS, number).least[1] for number in (1, 2, 3)]
    assert (once - none) % ROUNDS == 0
    assert twice - once == once - none
    assert calls[2] - calls[1] == calls[1] - calls[0]


ELEMENTS = 512


def test_memory_counters_agree_with_each_other(image: Firmware) -> None:
    """Each access is a load or a store, and goes to one kind of memory; accesses of a loop grow with its
    rounds."""
    with open_device(image.changed(counters=True)) as device:
        lib = device.system_lib()
        found = [add_int8(device, lib, ELEMENTS * times) for times in (1, 2, 3)]
    for item in found:
        accesses = sum(item[f"{kind}_accesses"] for kind in ("flash", "ram", "device"))
        assert item["loads"] + item["stores"] == accesses > item["cache_misses"]
        assert item["loads"] <= item["load_bytes"] <= 8 * item["loads"]
        assert item["instructions"] > item["branches"] > ELEMENTS / 8
    first, second, third = found
    for name in ("instructions", "branches", "loads", "stores", "load_bytes", "store_bytes"):
        assert third[name] - second[name] == second[name] - first[name], name
    assert second["load_bytes"] - first["load_bytes"] >= 2 * ELEMENTS
    assert second["store_bytes"] - first["store_bytes"] >= ELEMENTS


def add_int8(device: Device, lib: SystemLibrary, size: int) -> dict[str, int]:
    """The counters of a call in the repeat with the fewest instructions, which has no interrupt."""
    a, b, c = (device.array(np.arange(size).astype(np.int8)) for _ in range(3))
    measured = lib.measure("add", number=1, repeat=5, counters="all")(a, b, c)
    return dict(
        min((sample.columns for sample in measured.samples), key=lambda column: column["instructions"])
    )


def test_without_the_plugin_nothing_is_counted(image: Firmware) -> None:
    with open_device(image) as device:
        counted = device.system_lib().measure("inc", counters="all")(1).counters
        assert not counted.keys() & {"instructions", "loads", "stores"}
        with pytest.raises(ConfigurationError, match="start it with counters=True"):
            device.system_lib().measure("inc", counters=["loads"])


@contextmanager
def counted(image: Firmware) -> Iterator[CFunctions]:
    """Functions whose counts are known, on a device with counters."""
    with open_device(image.changed(counters=True)) as device:
        if "code_loading" not in device.info().options:
            pytest.skip("its firmware takes no code")
        yield device.load(Path(__file__).parent / "c/counted.c", flags=["-O1"])


def test_a_loop_of_n_loads_counts_n(image: Firmware) -> None:
    with counted(image) as lib:
        timed = measure(lib, "loads", number=1, repeat=5, counters=["loads"])
        counts = [min(timed(np.zeros(1, np.int32), n).counters["loads"]) for n in (0, 1, 100, 1000)]
    assert [count - counts[0] for count in counts] == [0, 1, 100, 1000]


def test_a_function_without_a_frame_takes_no_stack_by_either_figure(image: Firmware) -> None:
    with counted(image) as lib:
        counted_bytes = measure(lib, "divided", counters=["stack_bytes"])(6, 2).counters["stack_bytes"]
        measured = measure(lib, "divided", memory=True)(6, 2).memory
    if measured is None or measured.bound is None:
        pytest.skip("the compiler's bound is not known")
    # On x86 a call alone takes the bytes of its return address.
    assert min(counted_bytes) == measured.stack <= measured.bound <= 4


def test_an_array_of_n_bytes_takes_n_bytes_of_stack(image: Firmware) -> None:
    with counted(image) as lib:
        timed = measure(lib, "deep", number=3, repeat=5, counters=["stack_bytes"])
        peaks = [min(timed(size).counters["stack_bytes"]) for size in (64, 128, 256, 512)]
    if not any(peaks):
        pytest.skip("the stack that functions run on is not found in this image: no figure")
    assert [peak - peaks[0] for peak in peaks] == [0, 64, 192, 448]
