# SPDX-License-Identifier: Apache-2.0
"""The device's facts about itself, and its counts of memory."""

import numpy as np
import pytest
from minrpc import Device, Firmware
from minrpc.library.loading import build_id_of


def test_info_makes_sense(device: Device) -> None:
    info = device.info()
    assert info.version >= 4
    assert info.max_packet >= 512
    assert 0 < info.arena_largest_free <= info.arena_size
    assert info.timer_hz > 0


def test_it_tells_its_memory_and_what_is_built_in(device: Device) -> None:
    info = device.info()
    (arena,) = (region for region in info.regions if region.kind == "arena")
    assert arena.size == info.arena_size
    assert arena.base > 0
    assert {"numbered", "streaming", "error_texts"} <= info.options


def test_memory_is_counted_and_comes_back(device: Device) -> None:
    before = device.info()
    with device.empty((1000,), np.int8):
        during = device.info()
    after = device.info()
    assert during.arena_used >= before.arena_used + 1000
    assert during.arena_peak >= during.arena_used
    assert after.arena_used == before.arena_used


def test_a_hundred_allocations_leave_nothing(device: Device) -> None:
    used = device.info().arena_used
    for number in range(100):
        device.empty((number % 50 + 1,), np.int8).free()
    assert device.info().arena_used == used


def test_a_clean_link_counts_no_damage(device: Device) -> None:
    info = device.info()
    device.array(np.arange(min(5000, info.arena_largest_free // 8), dtype=np.int32)).numpy()
    after = device.info()
    assert after.crc_errors == info.crc_errors
    assert after.rx_overruns == info.rx_overruns
    assert device.link_counters.errors == 0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_random_fill_makes_plain_floats(device: Device, dtype: str) -> None:
    array = device.empty((256,), dtype)
    device.get_function("tvm.contrib.random.random_fill")(array)
    values = array.numpy()
    magnitude = np.abs(values)
    assert ((magnitude >= np.finfo(dtype).smallest_normal) & (magnitude < 2)).all()
    assert len(set(values.tolist())) > 100


def test_the_build_id_is_the_programs(device: Device, firmware: Firmware | None) -> None:
    if firmware is None or not device.info().build_id:
        pytest.skip("the device does not know its build")
    assert len(device.info().build_id) == 40  # SHA-1, in hexadecimal
    assert device.info().build_id == build_id_of(firmware.elf)
