# SPDX-License-Identifier: Apache-2.0
"""Values of `device.stats`, from the device's answers."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace

import pytest
from minrpc import ConfigurationError, DeviceInfo, DeviceStats, DialectError
from minrpc.client.device_counters import HeapUse

from tests.unit.client.conftest import Bench
from tests.unit.client.device_model import TVM_0_18_0, info_answer

INFO = DeviceInfo.parse(info_answer())


def heap(bench: Bench, used: int, peak: int) -> list[list[object]]:
    """Make the device report its heap; the requests for it are kept."""
    asked: list[list[object]] = []

    def answer(args: object) -> bytes:
        asked.append(list(args))  # type: ignore[call-overload]
        return struct.pack("<II", used, peak) + b"a later version's more"

    bench.model.globals["minrpc.memory"] = answer
    return asked


def test_each_number_is_the_devices(bench: Bench) -> None:
    """`info_answer` numbers its fields; the clock of 100 Hz stands at 300."""
    heap(bench, 40, 50)
    stats = bench.device.stats()
    assert (stats.arena_size, stats.arena_used, stats.arena_peak, stats.arena_largest_free) == (2, 3, 4, 5)
    assert (stats.stack_size, stats.stack_peak) == (12, 13)
    assert (stats.heap_used, stats.heap_peak) == (40, 50)
    assert stats.uptime_s == 3.0
    assert stats.link == {
        "crc_errors": 6,
        "short_packets": 7,
        "invalid_escapes": 8,
        "oversize_frames": 9,
        "stale_messages": 10,
        "rx_overruns": 11,
    }


def test_a_stack_of_no_size_is_unknown() -> None:
    stats = DeviceStats.of(replace(INFO, stack_size=0), None)
    assert (stats.stack_size, stats.stack_peak) == (None, None)
    stats = DeviceStats.of(replace(INFO, stack_peak=0), None)
    assert (stats.stack_size, stats.stack_peak) == (INFO.stack_size, None)


@pytest.mark.parametrize(
    ("use", "shown"),
    [
        (None, (None, None)),
        (HeapUse(0, 0), (None, None)),
        (HeapUse(0, 9), (0, 9)),
        (HeapUse(9, 0), (9, 0)),
    ],
)
def test_a_heap_that_was_never_used_is_none(
    use: HeapUse | None, shown: tuple[int | None, int | None]
) -> None:
    stats = DeviceStats.of(INFO, use)
    assert (stats.heap_used, stats.heap_peak) == shown


@pytest.mark.parametrize("reset", [False, True])
def test_peaks_are_reset_for_who_asks(bench: Bench, reset: bool) -> None:
    asked = heap(bench, 40, 50)
    bench.device.stats(reset_peaks=reset)
    assert asked == [[int(reset)]]


def test_peaks_that_can_not_be_reset(bench: Bench, make_bench: Callable[..., Bench]) -> None:
    with pytest.raises(ConfigurationError, match="can't reset its peaks"):
        bench.device.stats(reset_peaks=True)
    assert bench.device.stats().heap_used is None
    with pytest.raises(DialectError, match="does not run this project's runtime"):
        make_bench(TVM_0_18_0).device.stats()


@pytest.mark.parametrize("answer", [b"1234567", 5])
def test_a_heap_that_makes_no_sense(bench: Bench, answer: bytes | int) -> None:
    bench.model.globals["minrpc.memory"] = lambda _: answer
    with pytest.raises(DialectError, match=r"minrpc\.memory gave"):
        bench.device.stats()
