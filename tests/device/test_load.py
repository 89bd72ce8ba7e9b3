# SPDX-License-Identifier: Apache-2.0
"""Many calls, many sessions, many devices: nothing grows and nothing drifts.

A normal run does a small part; `--load` does all: 100,000 calls with allocations and frees in one session,
5,000 sessions one after another.
"""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from minrpc import Device, DeviceInfo, Firmware, RunningDevice, connect, start
from minrpc.client import LentTransport

from tests.device.conftest import Amount
from tests.device.test_session import add_works

DEVICES = 8
PAGE = os.sysconf("SC_PAGE_SIZE")
# An interrupt that uses the interrupted code's stack may come at a deeper place than all before: 8 bytes
# deeper in the second half of 100,000 rounds on bare_mps2_an385. Growth with each round would be far more.
INTERRUPT_STACK = 256


def resident_bytes() -> int:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def link_errors(info: DeviceInfo) -> dict[str, int]:
    return {name: count for name, count in info.link_counts().items() if name != "stale_messages"}


@pytest.mark.once
def test_calls_with_allocations_and_frees(device: Device, amount: Amount) -> None:
    """Sizes differ, arrays are freed out of order, and an array is always alive, as in a test suite."""
    rounds = amount(100, 100_000)
    add = device.system_lib()["add"]
    item = device.array(np.array([1], np.int8))
    before = device.info()
    objects, memory, middle = 0, 0, None
    for number in range(rounds):
        size = number % 37 + 1
        a, c = device.empty((size,), np.int8), device.empty((size,), np.int8)
        a.copy_from(np.full(size, number % 100, np.int8))
        add(a, item, c)
        a.free()
        if number % 50 == 0:
            assert c.numpy().tolist() == [number % 100 + 1] * size
        c.free()
        if number == rounds // 2:
            gc.collect()
            objects, memory, middle = len(gc.get_objects()), resident_bytes(), device.info()
    gc.collect()
    after = device.info()
    assert middle is not None
    assert (after.arena_used, after.arena_peak) == (before.arena_used, middle.arena_peak)
    assert after.arena_largest_free == before.arena_largest_free
    assert after.stack_peak - middle.stack_peak <= INTERRUPT_STACK
    assert link_errors(after) == link_errors(before)
    # The link's trace, for failures, may have filled meanwhile.
    assert len(gc.get_objects()) - objects < 500
    assert resident_bytes() - memory < 4 * 1024 * 1024
    assert device.sessions == 1


@pytest.mark.once
def test_sessions_one_after_another(running_device: RunningDevice, amount: Amount) -> None:
    sessions = amount(50, 5_000)
    link = LentTransport(running_device.transport)
    with connect(running_device, transport=link, direct=False) as first:
        before = first.info()
    for number in range(sessions):
        with connect(running_device, transport=link, direct=False) as device:
            device.empty((100,), np.int8)
            assert device.system_lib()["inc"](number) == number + 1
    with connect(running_device, transport=link, direct=False) as last:
        after = last.info()
    assert (after.arena_used, after.arena_largest_free) == (before.arena_used, before.arena_largest_free)
    assert link_errors(after) == link_errors(before)


@pytest.mark.once
def test_eight_devices_at_once(firmware: Firmware | None) -> None:
    """One process uses eight devices at the same time, each in a thread of its own."""
    if firmware is None:
        pytest.skip("a board is one device")
    together = threading.Barrier(DEVICES)
    results: dict[int, object] = {}

    def use(number: int) -> None:
        with start(firmware) as running, connect(running) as device:
            device.connect()
            together.wait()
            data = np.random.default_rng(number).integers(-128, 128, 5000, np.int8)
            ok = device.array(data).numpy().tolist() == data.tolist()
            results[number] = ok and add_works(device) and device.system_lib()["testing.count"]() == 1

    threads = [threading.Thread(target=use, args=(number,)) for number in range(DEVICES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(DEVICES), True)
