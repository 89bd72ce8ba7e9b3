# SPDX-License-Identifier: Apache-2.0
"""The text of `device.console`, by its origin and time."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pexpect
import pytest
from minrpc import Device
from minrpc.client import Unowned
from minrpc.host.process import TextTail
from minrpc.transport import SocketTransport
from minrpc.wire.framing import encode_frame
from minrpc.wire.session_layer import MessageType, encode_message

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


def link_beside(tail: TextTail) -> tuple[ModelTransport, Unowned]:
    """A link to a device that has a console, too."""
    transport = ModelTransport(DeviceModel())
    return transport, Unowned(clock=transport.clock, console_tail=tail)


@pytest.mark.parametrize("from_boot", [None, False, True])
def test_text_from_before_is_found_by_who_started_the_device(
    beside: tuple[TextTail, Callable[[bytes], object]], from_boot: bool | None
) -> None:
    tail, say = beside
    say(b"ready 1\r\n")
    link = link_beside(tail)
    with Device(*link) if from_boot is None else Device(*link, from_boot=from_boot) as device:
        say(b"ready 2\r\n")
        device.console.expect(r"ready (\d)\n", timeout=10)
        assert device.console.match[1] == ("1" if from_boot else "2")


def test_text_over_the_link_is_heard_beside_a_console(
    beside: tuple[TextTail, Callable[[bytes], object]],
) -> None:
    """Logs that a device sends behind the answer; what it prints there is found as well, in its own time."""
    tail, say = beside
    transport, owner = link_beside(tail)
    with Device(transport, owner) as device:
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


def test_a_call_in_which_python_waits_for_text_gets_its_answer(
    beside: tuple[TextTail, Callable[[bytes], object]],
) -> None:
    """A fake can wait there."""
    tail, _ = beside
    transport, owner = link_beside(tail)
    with Device(transport, owner) as device:
        call = device.system_lib()["inc"]
        text = encode_frame(encode_message(0, MessageType.LOG, b"after the answer"))
        waited = []

        def wait(data: bytes) -> bytes:
            with pytest.raises(pexpect.TIMEOUT):
                device.console.expect_exact("after the answer", timeout=0)
            waited.append(data)
            transport.spoil = bytes
            return data

        transport.say(text)
        transport.spoil = wait
        assert call(1) == 2
        assert waited
        device.console.expect_exact("after the answer", timeout=0)


def test_who_waits_for_text_of_an_ended_console_does_not_wait() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        tail = TextTail(pipe, "console")
        os.close(writing)
        tail.finish(10.0)
        with Device(*link_beside(tail)) as device, pytest.raises(pexpect.EOF):
            device.console.expect_exact("never", timeout=3600)


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


@pytest.fixture
def far() -> Iterator[tuple[Device, socket.socket]]:
    """A device behind a socket, and the socket's far end; a thread answers there."""
    ours, theirs = socket.socketpair()
    model = DeviceModel()

    def answer() -> None:
        with suppress(BrokenPipeError):  # The session's end is not answered.
            while data := theirs.recv(65536):
                theirs.sendall(model.receive(data))

    answering = threading.Thread(target=answer, daemon=True)
    answering.start()
    with theirs, Device(SocketTransport(ours, "socket")) as device:
        yield device, theirs
        device.close()
        answering.join()


def test_who_waits_for_text_keeps_no_call_of_another_thread(far: tuple[Device, socket.socket]) -> None:
    device, end = far
    found = threading.Event()

    def wait() -> None:
        device.console.expect_exact("later", timeout=3600)
        found.set()

    waiter = threading.Thread(target=wait, daemon=True)
    device.connect()
    waiter.start()
    for x in range(20):
        assert device.system_lib()["inc"](x) == x + 1
    assert not found.is_set()
    end.sendall(encode_frame(encode_message(0, MessageType.LOG, b"later")))
    assert found.wait(600)
    waiter.join()


def test_a_closed_device_has_no_text_more(far: tuple[Device, socket.socket]) -> None:
    device, _ = far
    closing = threading.Timer(0.1, device.close)
    closing.start()
    with pytest.raises(pexpect.EOF, match="the link is closed"):
        device.console.expect_exact("text", timeout=3600)
    closing.join()
