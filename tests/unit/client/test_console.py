# SPDX-License-Identifier: Apache-2.0
"""The text of `device.console`, by its origin and time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pexpect
import pytest
from minrpc import Device
from minrpc.client import Unowned
from minrpc.host.process import TextTail
from minrpc.wire.framing import encode_frame
from minrpc.wire.session import MessageType, encode_message

from tests.unit.client.conftest import Bench
from tests.unit.client.device_model import DeviceModel
from tests.unit.client.model_transport import ModelTransport


@pytest.fixture
def beside() -> Iterator[tuple[TextTail, Callable[[bytes], object]]]:
    """A console beside the link, and the function that prints there."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        tail = TextTail(pipe, "console")
        yield tail, lambda text: os.write(writing, text)
        os.close(writing)
        tail.finish(10.0)


@pytest.mark.parametrize("from_boot", [None, False, True])
def test_text_from_before_is_found_by_who_started_the_device(
    beside: tuple[TextTail, Callable[[bytes], object]], from_boot: bool | None
) -> None:
    tail, say = beside
    say(b"ready 1\r\n")
    transport = ModelTransport(DeviceModel())
    owner = Unowned(clock=transport.clock, console_tail=tail)
    made = Device(transport, owner) if from_boot is None else Device(transport, owner, from_boot=from_boot)
    with made as device:
        say(b"ready 2\r\n")
        device.console.expect(r"ready (\d)\n", timeout=10)
        assert device.console.match[1] == ("1" if from_boot else "2")


def test_text_over_the_link_is_found_from_the_first_character_on(bench: Bench) -> None:
    bench.transport.say(b"*** Booting ***\r\n")
    bench.device.connect()
    bench.device.console.expect_exact("*** Booting", timeout=0)
    assert bench.device.console.before == ""


def test_who_waits_for_text_hears_the_link(bench: Bench) -> None:
    """Without any request, the wait reads logs that a device sends by itself, also between its boot and its
    first session."""
    bench.transport.say(encode_frame(encode_message(0, MessageType.LOG, b"warm")) + b"banner\r\n")
    bench.device.console.expect(r"(w\w+)\n", timeout=0)
    assert bench.device.console.match[1] == "warm"
    bench.device.console.expect_exact("banner\n", timeout=0)
    assert bench.transport.written == []


def test_each_text_is_found_once(bench: Bench) -> None:
    bench.transport.say(b"hello\r\n")
    bench.device.console.expect_exact("hello", timeout=0)
    with pytest.raises(pexpect.TIMEOUT):
        bench.device.console.expect_exact("hello", timeout=0)
    bench.transport.say(b"hello again\r\n")
    bench.device.console.expect_exact("hello", timeout=0)
