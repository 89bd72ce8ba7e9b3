# SPDX-License-Identifier: Apache-2.0
"""A device that listens on TCP: Zephyr on an emulated network card, and as a process."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from minrpc import DeadlineError, Device, LinkClosedError, RunningDevice, Target, build, open_device, start
from minrpc.host import Deadline

PORT = 9190
# A port of this machine, which must be free: no other program is known to have it.
HOST_PORT = 28190
BOOT_S = 60.0


@pytest.fixture
def link(running_device: RunningDevice) -> Iterator[str]:
    """The URL of another device like the tested device, with a socket as its link."""
    name = running_device.name
    if name not in ("qemu_x86", "native_sim") or running_device.target.attached:
        pytest.skip("boards/tcp_*.conf are for Zephyr on QEMU's PC and as a process")
    port = PORT if name == "qemu_x86" else HOST_PORT
    options = [f"-DEXTRA_CONF_FILE=boards/tcp_{name}.conf", f"-DCONFIG_MINRPC_LINK_TCP_PORT={port}"]
    with start(build(Target.named(name, cmake_options=options))) as running:
        wait_for_console(running, f"RPC on TCP port {port}")
        yield f"socket://127.0.0.1:{forwarded_port(running) if name == 'qemu_x86' else port}"


def wait_for_console(running: RunningDevice, text: str) -> None:
    deadline, position = Deadline("boot", BOOT_S), 0
    while text not in running.console_text:
        assert running.console_tail is not None
        _, position = running.console_tail.since(position, deadline.remaining())
        if deadline.expired():
            raise deadline.error(text)


def forwarded_port(running: RunningDevice) -> int:
    """A port of this machine, chosen by the kernel, that QEMU forwards to the device's port."""
    deadline = Deadline("forward a port", BOOT_S)
    assert running.qemu is not None
    running.qemu.order(f"hostfwd_add tcp:127.0.0.1:0-:{PORT}", deadline)
    told = running.qemu.ask("info usernet", deadline)
    found = re.search(r"HOST_FORWARD\D+\d+ +127\.0\.0\.1 +(\d+)", told)
    assert found is not None, told
    return int(found[1])


def opened(name: str, link: str, timeout_s: float = BOOT_S) -> Device:
    return open_device(name, serial_port=link, session_timeout_s=timeout_s)


@pytest.mark.slow
def test_a_device_that_listens(running_device: RunningDevice, link: str) -> None:
    name = running_device.name
    with opened(name, link) as device:
        assert device.system_lib()["inc"](1) == 2
        sent = np.random.default_rng(1).integers(0, 256, 100_000, np.uint8)
        assert np.array_equal(device.array(sent).numpy(), sent)
        # The network's interrupts are in these times: other links have tests of what a time is.
        assert device.system_lib().measure("spin", repeat=3)(10_000).typical_ticks > 0
        a_second_client_is_turned_away(name, link)
        assert device.system_lib()["inc"](2) == 3
        before = device.info()
        device.reset()
        # Not its uptime: a segment that is lost while it boots is sent again seconds later.
        assert device.info().arena_peak < sent.nbytes <= before.arena_peak
        endless = device.system_lib().measure("spin", number=1000, repeat=100_000, timeout_s=0.5)
        with pytest.raises(DeadlineError):
            endless(1_000)
    with opened(name, link) as device:
        assert device.system_lib()["inc"](3) == 4


def a_second_client_is_turned_away(name: str, link: str) -> None:
    with pytest.raises(LinkClosedError, match="the far end closed the link"):
        opened(name, link, timeout_s=1.0)
