# SPDX-License-Identifier: Apache-2.0
"""A device that listens on TCP: Zephyr's own network stack, through QEMU's network card."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from minrpc import DeadlineError, Device, LinkClosedError, RunningDevice, Target, build, open_device, start
from minrpc.host import Deadline

PORT = 9190
BOOT_S = 60.0


@pytest.fixture
def link(running_device: RunningDevice) -> Iterator[str]:
    """The URL of another device like the tested device, with a socket as its link."""
    if running_device.name != "qemu_x86" or running_device.target.attached:
        pytest.skip("boards/tcp_qemu_x86.conf is for Zephyr on QEMU's PC")
    options = ["-DEXTRA_CONF_FILE=boards/tcp_qemu_x86.conf"]
    with start(build(Target.named(running_device.name, cmake_options=options))) as running:
        yield f"socket://127.0.0.1:{forwarded_port(running)}"
        assert f"RPC on TCP port {PORT}" in running.console_text


def forwarded_port(running: RunningDevice) -> int:
    """A port of this machine, chosen by the kernel, that QEMU forwards to the device's port."""
    deadline = Deadline("forward a port", BOOT_S)
    assert running.qmp is not None
    answers = [
        running.qmp.execute("human-monitor-command", deadline, **{"command-line": command})
        for command in (f"hostfwd_add tcp:127.0.0.1:0-:{PORT}", "info usernet")
    ]
    found = re.search(r"HOST_FORWARD\D+\d+ +127\.0\.0\.1 +(\d+)", str(answers[1]))
    assert found is not None, answers
    return int(found[1])


def opened(link: str) -> Device:
    return open_device("qemu_x86", serial_port=link, session_timeout_s=BOOT_S)


@pytest.mark.slow
def test_a_device_that_listens(link: str) -> None:
    with opened(link) as device:
        assert device.system_lib()["inc"](1) == 2
        sent = np.random.default_rng(1).integers(0, 256, 100_000, np.uint8)
        assert np.array_equal(device.array(sent).numpy(), sent)
        short, long = (device.system_lib().measure("spin", repeat=3)(count) for count in (1000, 10_000))
        assert 9 < long.net().typical_cycles / short.net().typical_cycles < 11
        a_second_client_is_turned_away(link)
        assert device.system_lib()["inc"](2) == 3
        before = device.info()
        device.reset()
        assert device.info().clock.uptime < before.clock.uptime
        endless = device.system_lib().measure("spin", number=1000, repeat=100_000, timeout_s=0.5)
        with pytest.raises(DeadlineError):
            endless(1_000)
    with opened(link) as device:
        assert device.system_lib()["inc"](3) == 4


def a_second_client_is_turned_away(link: str) -> None:
    with pytest.raises(LinkClosedError, match="the far end closed the link"), opened(link) as second:
        second.system_lib()
