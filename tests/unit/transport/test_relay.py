# SPDX-License-Identifier: Apache-2.0
"""The terminal that clients open and close, and the bytes carried between it and a device."""

import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

import pytest
from minrpc import ConfigurationError, DeadlineError, LinkClosedError
from minrpc.transport import FdTransport, SocketTransport, open_terminal
from minrpc.transport.public_pty import PublicPty, PublishedLink
from minrpc.transport.relay import Relay
from minrpc.wire.framing import encode_frame
from minrpc.wire.session_layer import MessageType, encode_message

WAIT_S = 60.0


class Link(SocketTransport):
    """The relay's end of the device's link; `held` stops the relay at its next read."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        super().__init__(connection, name)
        self._reading = threading.Event()
        self._free = threading.Lock()

    def read(self, timeout_s: float) -> bytes:
        self._reading.set()
        with self._free:
            return super().read(timeout_s)

    @contextmanager
    def held(self, device: FdTransport) -> Iterator[None]:
        """Context in which the relay waits in a read of the device's bytes."""
        with self._free:
            self._reading.clear()
            device.write(b"x", WAIT_S)
            assert self._reading.wait(WAIT_S)
            yield


@dataclass
class Served:
    """A relay that runs in a thread.

    device: the device's end of its link, on which the test plays the device.
    link: the relay's end of the link.
    said: the relay's messages, one text at a time.
    """

    device: SocketTransport
    link: Link
    pty: PublicPty
    said: Queue[str]
    thread: threading.Thread
    stop_fd: int

    def stop(self) -> None:
        """End the relay, and wait for its end."""
        os.write(self.stop_fd, b"x")
        self.thread.join(WAIT_S)
        assert not self.thread.is_alive()

    def client(self) -> FdTransport:
        """Open the terminal, and wait until the relay has seen that."""
        opened = open_terminal(self.pty.path)
        assert self.said.get(timeout=WAIT_S) == "client came"
        return opened

    def session(self) -> tuple[FdTransport, int]:
        """A client whose session has started, and the session's id."""
        client = self.client()
        client.write(init(5), WAIT_S)
        assert read_all(self.device, len(init(5))) == init(5)
        session_id = 0x1005
        self.device.write(reply(session_id), WAIT_S)
        assert read_all(client, len(reply(session_id))) == reply(session_id)
        return client, session_id

    def leave(self, client: FdTransport) -> None:
        """Close the client's terminal, and wait until the relay has seen that."""
        client.close()
        assert self.said.get(timeout=WAIT_S) == "client left"


def init(nonce: int) -> bytes:
    """The bytes that start a session."""
    return encode_frame(encode_message(nonce, MessageType.START_INIT, b"\x01"))


def reply(session_id: int) -> bytes:
    """The device's answer to these bytes."""
    return encode_frame(encode_message(session_id, MessageType.START_REPLY, b"\x01"))


@pytest.fixture
def served() -> Iterator[Served]:
    ours, relays = socket.socketpair()
    stop_read, stop_write = os.pipe()
    device = SocketTransport(ours, "device's end")
    link = Link(relays, "relay's end")
    said: Queue[str] = Queue()
    with PublicPty() as pty:
        relay = Relay(link, pty, said.put)
        thread = threading.Thread(target=relay.run, args=(stop_read, None))
        thread.start()
        made = Served(device, link, pty, said, thread, stop_write)
        yield made
        made.stop()
    for end in (device, link):
        end.close()
    for descriptor in (stop_read, stop_write):
        os.close(descriptor)


def read_all(link: FdTransport, size: int) -> bytes:
    """`size` bytes from `link`."""
    data = b""
    while len(data) < size:
        came = link.read(WAIT_S)
        assert came, f"only {len(data)} of {size} bytes came"
        data += came
    return data


EVERY_BYTE = bytes(range(256))


def fill(client: FdTransport) -> int:
    """Write every byte value in turn until no more fit; returns their number."""
    sent = 0
    while True:
        try:
            client.write(EVERY_BYTE * 16, 0.0)
            sent += 4096
        except DeadlineError as error:
            return sent + error.written


def test_every_byte_value_passes_both_ways(served: Served) -> None:
    client, _ = served.session()
    client.write(EVERY_BYTE, WAIT_S)
    assert read_all(served.device, 256) == EVERY_BYTE
    served.device.write(EVERY_BYTE, WAIT_S)
    assert read_all(client, 256) == EVERY_BYTE
    served.leave(client)


def test_clients_come_and_leave(served: Served) -> None:
    for number in range(5):
        client = served.client()
        client.write(b"%d" % number, WAIT_S)
        assert read_all(served.device, 1) == b"%d" % number
        served.leave(client)


def test_what_a_client_sent_last_arrives(served: Served) -> None:
    client = served.client()
    client.write(b"the end", WAIT_S)
    served.leave(client)
    assert read_all(served.device, 7) == b"the end"


def test_a_client_finds_nothing_of_the_one_before(served: Served) -> None:
    """The next client gets neither the earlier client's unread bytes, nor the device's later bytes for it."""
    first, session_id = served.session()
    late = encode_frame(encode_message(session_id, MessageType.NORMAL, b"for the first"))
    served.device.write(late, WAIT_S)
    assert read_all(first, 3)[:3] == late[:3]
    served.device.write(late[:9], WAIT_S)
    served.leave(first)
    served.device.write(late[9:] + late, WAIT_S)
    second = served.client()
    second.write(init(9), WAIT_S)
    assert read_all(served.device, len(init(9))) == init(9)
    served.device.write(late + late[:7], WAIT_S)
    served.device.write(late + reply(0x2009) + b"for the second", WAIT_S)
    assert read_all(second, len(reply(0x2009)) + 14) == reply(0x2009) + b"for the second"
    served.leave(second)


def test_a_client_that_comes_at_once_is_another(served: Served) -> None:
    """The terminal is open again before the relay could see that it was closed."""
    first, session_id = served.session()
    late = encode_frame(encode_message(session_id, MessageType.NORMAL, b"for the first"))
    with served.link.held(served.device):
        first.close()
        second = open_terminal(served.pty.path)
    assert [served.said.get(timeout=WAIT_S) for _ in range(2)] == ["client left", "client came"]
    second.write(init(9), WAIT_S)
    assert read_all(served.device, len(init(9))) == init(9)
    served.device.write(late + reply(0x2009), WAIT_S)
    assert read_all(second, len(reply(0x2009))) == reply(0x2009)
    served.leave(second)


def test_a_device_that_takes_nothing_holds_nobody_up(served: Served) -> None:
    """A client sends more than fits between it and the device, and leaves; another comes."""
    first = served.client()
    sent = fill(first)
    served.leave(first)
    second = served.client()
    second.write(init(9), WAIT_S)
    data = EVERY_BYTE * (sent // 256) + EVERY_BYTE[: sent % 256]
    assert read_all(served.device, sent + len(init(9))) == data + init(9)
    served.leave(second)


def test_it_stops_though_the_device_takes_nothing(served: Served) -> None:
    client = served.client()
    fill(client)
    served.stop()
    client.close()


def test_a_slow_reader_loses_nothing(served: Served) -> None:
    client, _ = served.session()
    data = EVERY_BYTE * 4096
    writer = threading.Thread(target=served.device.write, args=(data, WAIT_S))
    writer.start()
    assert read_all(client, len(data)) == data
    writer.join(WAIT_S)
    served.leave(client)


def test_both_sides_may_write_much_at_once(served: Served) -> None:
    client, _ = served.session()
    data = EVERY_BYTE * 1024

    def write_then_read(end: FdTransport) -> bytes:
        end.write(data, WAIT_S)
        return read_all(end, len(data))

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(write_then_read, (client, served.device))) == [data, data]
    served.leave(client)


def test_the_end_of_the_device_is_noticed() -> None:
    ours, relays = socket.socketpair()
    stop_read, stop_write = os.pipe()
    link = SocketTransport(relays, "relay's end")
    ours.close()
    with PublicPty() as pty:
        try:
            assert Relay(link, pty, lambda text: None).run(stop_read, None) is False
        except LinkClosedError:
            pytest.fail("the end of the device is a result of run, not an error")
    link.close()
    os.close(stop_read)
    os.close(stop_write)


def test_link_is_there_and_goes(tmp_path: Path) -> None:
    path = tmp_path / "link"
    with PublishedLink(path, "/dev/null"):
        assert path.readlink() == Path("/dev/null")
    assert not path.is_symlink()


def test_link_that_leads_nowhere_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "link"
    path.symlink_to("/dev/pts/no-such-terminal")
    with PublishedLink(path, "/dev/null"):
        assert path.readlink() == Path("/dev/null")


def test_link_of_a_killed_process_is_replaced_when_another_has_its_terminal(tmp_path: Path) -> None:
    path = tmp_path / "link"
    terminal, somebody = os.openpty()
    path.symlink_to(os.ttyname(somebody))
    with PublishedLink(path, "/dev/null"):
        assert path.readlink() == Path("/dev/null")
    os.close(terminal)
    os.close(somebody)


def test_link_that_a_living_process_serves_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "same").symlink_to(tmp_path)
    terminal, slave = os.openpty()
    with PublishedLink(tmp_path / "link", os.ttyname(slave)):
        with pytest.raises(ConfigurationError, match="another process serves it"):
            PublishedLink(tmp_path / "same" / "link", "/dev/null")
        assert (tmp_path / "link").readlink() == Path(os.ttyname(slave))
    with PublishedLink(tmp_path / "link", "/dev/null"):
        pass
    os.close(terminal)
    os.close(slave)


@pytest.mark.parametrize("there", ["file", "link"])
def test_anything_else_is_left_alone(tmp_path: Path, there: str) -> None:
    path = tmp_path / "taken"
    if there == "file":
        path.write_text("precious")
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(ConfigurationError, match="File exists"):
        PublishedLink(path, "/dev/null")
    assert path.exists()


def test_link_that_leads_elsewhere_by_then_stays(tmp_path: Path) -> None:
    path = tmp_path / "link"
    with PublishedLink(path, "/dev/null"):
        path.unlink()
        path.symlink_to("/dev/zero")
    assert path.readlink() == Path("/dev/zero")


@pytest.mark.parametrize("size", [10, 5000])
def test_a_client_finds_nothing_of_what_was_written_while_nobody_was_there(size: int) -> None:
    with PublicPty() as pty:
        assert os.write(pty.master, bytes(size)) == size
        pty.clean()
        slave = os.open(pty.path, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY)
        with pytest.raises(BlockingIOError):
            os.read(slave, 1)
        os.close(slave)


def test_an_end_frees_the_name_of_the_link(tmp_path: Path) -> None:
    """The name is freed even if the object is still referenced."""
    kept = PublishedLink(tmp_path / "link", "/dev/null")
    with kept:
        pass
    with PublishedLink(tmp_path / "link", "/dev/zero"):
        assert (tmp_path / "link").readlink() == Path("/dev/zero")
