# SPDX-License-Identifier: Apache-2.0
"""Links of the bare-metal port that need no UART: semihosting, and RTT through a probe of the test's own."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from minrpc import (
    DeadlineError,
    EmulatorExitedError,
    SessionTerminatedError,
    Target,
    build,
    connect,
    open_device,
    start,
)
from minrpc.host import Deadline
from minrpc.host.process import spawn, stop_group
from minrpc.targets.table import FirmwareLink

from tests.native import need_platform

RESET_S = 60.0
BOOT_S = 60.0

# QEMU shares the PSRAM of this board only, so the program's data are there.
MACHINE = Path(__file__).parent / "data_in_psram.cmake"
MEMORY_AT, MEMORY_BYTES = 0x21000000, 16 << 20


def target_over(firmware_link: FirmwareLink, name: str) -> Target:
    """The platform with another link; skips the test if it can't run here."""
    target = Target.named(name)
    need_platform(target.platform)
    return replace(target, platform=replace(target.platform, firmware_link=firmware_link))


@pytest.mark.parametrize(
    "name",
    [
        "bare_mps2_an385",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("bare_mps2_an505", "bare_microbit", "bare_rv32", "bare_rv64")
        ),
    ],
)
def test_semihosting(name: str) -> None:
    with start(target_over("semihosting", name)) as running:
        device = connect(running, direct=False)
        lib = device.system_lib()
        sent = np.random.default_rng(1).integers(0, 256, 5_000, np.uint8)
        assert np.array_equal(device.array(sent).numpy(), sent)
        short, long = (lib.measure("spin", repeat=3)(count) for count in (1_000, 10_000))
        assert running.timing == "exact"
        assert 9 < long.net().typical_ticks / short.net().typical_ticks < 11
        with pytest.raises((SessionTerminatedError, EmulatorExitedError), match=r"[Ff]ault"):
            lib["testing.crash"]()
        count = device.system_lib()["testing.count"]
        assert (count(), count()) == (1, 2)
        running.reset(Deadline("reset", RESET_S, running.clock))
        with pytest.raises(SessionTerminatedError, match="it restarted"):
            count()
        assert device.system_lib()["testing.count"]() == 1


@pytest.fixture
def rtt_link(tmp_path: Path) -> Iterator[str]:
    """The URL of a Cortex-M3 in QEMU whose program speaks RTT."""
    memory = tmp_path / "memory"
    memory.write_bytes(b"")
    os.truncate(memory, MEMORY_BYTES)
    target = target_over("rtt", "bare_mps2_an385").changed(cmake_options=[f"-DMINRPC_MACHINE={MACHINE}"])
    share = f"memory-backend-file,id=m,size={MEMORY_BYTES},mem-path={memory},share=on"
    board = ["-machine", "mps2-an385,memory-backend=m", "-object", share, "-icount", "shift=7"]
    qemu = spawn(
        [target.platform.qemu, *board, "-nographic", "-net", "none", "-kernel", str(build(target).elf)]
    )
    try:
        probe = [sys.executable, str(Path(__file__).parent / "rtt_probe.py"), str(memory), hex(MEMORY_AT)]
        yield f"exec:{shlex.join(probe)}"
    finally:
        stop_group(qemu)
        assert qemu.stdout is not None
        qemu.stdout.close()


def test_rtt(rtt_link: str) -> None:
    with open_device("bare_mps2_an385", serial_port=rtt_link, session_timeout_s=BOOT_S) as device:
        lib = device.system_lib()
        sent = np.random.default_rng(1).integers(0, 256, 50_000, np.uint8)
        assert np.array_equal(device.array(sent).numpy(), sent)
        short, long = (lib.measure("spin", repeat=3)(count) for count in (1_000, 10_000))
        assert 9 < long.net().typical_ticks / short.net().typical_ticks < 11
        with pytest.raises(SessionTerminatedError, match=r"[Ff]ault"):
            lib["testing.crash"]()
        endless = device.system_lib().measure("spin", number=1000, repeat=100_000, timeout_s=0.5)
        with pytest.raises(DeadlineError):
            endless(1_000)
        assert device.system_lib()["testing.count"]() == 1
