# SPDX-License-Identifier: Apache-2.0
"""A device's console for pexpect."""

from __future__ import annotations

import threading

import pexpect
import pytest
from minrpc import PLATFORMS, Device, RunningDevice, Target, build, open_device, start
from minrpc.host import Deadline
from minrpc.transport import MemoryTransport, memory_pair
from minrpc.wire.framing import encode_frame
from minrpc.wire.session_layer import MessageType, encode_message

from tests.native import need_platform

PATIENCE_S = 120.0


@pytest.fixture
def bare() -> Target:
    need_platform(PLATFORMS["bare_mps2_an385"])
    return Target.named("bare_mps2_an385")


def test_the_boot_of_a_device_that_was_opened_and_a_reset(bare: Target) -> None:
    with open_device(bare) as device:
        device.console.expect(r"minrpc: (\w+).* ready", timeout=PATIENCE_S)
        assert device.console.match[1] == "MPS2"
        with pytest.raises(pexpect.TIMEOUT):
            device.console.expect("ready", timeout=0.05)
        device.reset()
        assert device.console.expect(["nonsense", "ready"], timeout=PATIENCE_S) == 1


def test_a_later_session_does_not_find_what_an_earlier_one_saw(bare: Target) -> None:
    with start(build(bare)) as running:
        with open_device(running) as device:
            assert device.in_session
        with open_device(running) as device:
            assert "ready" in running.console_text
            with pytest.raises(pexpect.TIMEOUT):
                device.console.expect("ready", timeout=0.05)
            running.reset(Deadline("reset", PATIENCE_S))
            device.console.expect_exact("ready", timeout=PATIENCE_S)


def test_the_end_of_a_device_is_the_end_of_its_console() -> None:
    with open_device("posix") as device:
        assert isinstance(device.owner, RunningDevice)
        assert device.owner.process is not None
        device.owner.process.kill()
        with pytest.raises(pexpect.EOF, match="has ended"):
            device.console.expect("never", timeout=PATIENCE_S)


@pytest.fixture
def one_uart() -> tuple[Device, MemoryTransport]:
    """A device whose text comes over its link, and the link's far end."""
    near, far = memory_pair()
    return Device(near), far


def log(text: str) -> bytes:
    return encode_frame(encode_message(0, MessageType.LOG, text.encode()))


def test_text_that_comes_over_the_link(one_uart: tuple[Device, MemoryTransport]) -> None:
    device, far = one_uart
    far.write(b"banner\r\n" + log("hello 1") + log("hello 2"), 1.0)
    device.console.expect("banner\n", timeout=PATIENCE_S)
    device.console.expect(r"hello (\d)", timeout=PATIENCE_S)
    assert (device.console.match[1], device.console.before) == ("1", "")
    late = threading.Timer(0.05, far.write, [log("hello 3"), 1.0])
    late.start()
    device.console.expect("hello 3", timeout=PATIENCE_S)
    assert "hello 2" in device.console.before
    late.join()
    with pytest.raises(pexpect.TIMEOUT):
        device.console.expect("hello 4", timeout=0.01)
