# SPDX-License-Identifier: Apache-2.0
"""The text of `device.console`, by its origin and time."""

from __future__ import annotations

import os
import threading
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


def test_text_over_the_link_is_heard_beside_a_console(
    beside: tuple[TextTail, Callable[[bytes], object]],
) -> None:
    """Logs that a device sends behind the answer; what it prints there is found as well, in its own time."""
    tail, say = beside
    transport = ModelTransport(DeviceModel())
    with Device(transport, Unowned(clock=transport.clock, console_tail=tail)) as device:
        device.connect()
        transport.say(encode_frame(encode_message(0, MessageType.LOG, b"over the link")))
        device.console.expect_exact("over the link\n", timeout=0)
        late = threading.Timer(0.1, say, [b"beside\n"])
        late.start()
        device.console.expect_exact("beside\n", timeout=60)
        late.join()
        transport.close()  # A device that is gone has no text more; the next call says so.
        with pytest.raises(pexpect.TIMEOUT):
            device.console.expect_exact("more", timeout=0)


def test_text_over_the_link_is_found_from_the_first_character_on(bench: Bench) -> None:
    bench.transport.say(b"*** Booting ***\r\n")
    bench.device.connect()
    bench.device.console.expect_exact("*** Booting", timeout=0)
    assert bench.device.console.before == ""


def test_who_waits_for_text_waits_for_the_rest_of_a_message(bench: Bench) -> None:
    frame = encode_frame(encode_message(0, MessageType.LOG, b"in two pieces"))
    bench.device.connect()
    bench.transport.say(frame[:7])
    rest = threading.Timer(0.1, bench.transport.say, [frame[7:]])
    rest.start()
    bench.device.console.expect_exact("in two pieces", timeout=60)
    rest.join()


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
