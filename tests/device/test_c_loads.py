# SPDX-License-Identifier: Apache-2.0
"""Many loads, of which some crash: none is lost, and nothing is left on the device or here."""

from __future__ import annotations

import gc
import resource
from pathlib import Path

import pytest
from minrpc.errors import HarnessError
from minrpc.firmware import Firmware
from minrpc.library import Sources, load
from minrpc.pipeline import open_device
from minrpc.running import RunningDevice, start

from tests.device.conftest import Amount

SOURCE = """\
static int held[N % 7 + 1];

int number(void)
{
	held[N % 7] = N;
	return held[N % 7];
}

void crash(void)
{
	__builtin_trap();
}
"""
CRASH_EVERY = 50


def test_many_loads(firmware: Firmware | None, tmp_path: Path, amount: Amount) -> None:
    if firmware is None:
        pytest.skip("a board that has crashed may have to be reset by hand")
    (tmp_path / "n.c").write_text(SOURCE)
    loads = amount(20, 1000)
    last = 0
    before = peak_kib()
    for first in range(0, loads, CRASH_EVERY):
        with start(firmware) as running:
            last = loads_until_a_crash(running, tmp_path / "n.c", first, min(CRASH_EVERY, loads - first))
    assert last == loads
    assert peak_kib() - before < 100 * 1024


def loads_until_a_crash(running: RunningDevice, source: Path, first: int, count: int) -> int:
    with open_device(running) as device:
        used = device.info().arena_used
        for number in range(first, first + count):
            with load(device, Sources.of(source, defines={"N": number % 100})) as library:
                assert library.number() == number % 100
        gc.collect()
        assert device.info().arena_used == used
        library = load(device, Sources.of(source, defines={"N": 0}))
        with pytest.raises(HarnessError) as caught:
            library.crash()
        assert caught.value.stage == "call crash"
    return first + count


def peak_kib() -> int:
    """The most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
