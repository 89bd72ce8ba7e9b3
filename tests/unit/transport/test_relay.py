# SPDX-License-Identifier: Apache-2.0
"""The terminal that clients come to and leave, and what is carried between it and a device."""

import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

import pytest
from minrpc.errors import ConfigurationError, LinkClosedError
from minrpc.transport import FdTransport, SocketTransport, open_terminal
from minrpc.transport.public_pty import PublicPty, PublishedLink
from minrpc.transport.relay import Relay

WAIT_S = 60.0


@dataclass
class Served:
    """A relay that runs in a thread.

    device: the device's end of its link, ours to play the device on.
    said: what the relay tells, one text at a time.
    """

    device: SocketTransport
    pty: PublicPty
    said: Queue[str]

    def client(self) -> FdTransport:
        """Open the terminal, and wait until the relay has seen that."""
        opened = open_terminal(self.pty.path)
        assert self.said.get(timeout=WAIT_S) == "client came"
        return opened

    def leave(self, client: FdTransport) -> None:
        """Close it, and wait until the relay has seen that."""
        client.close()
        assert self.said.get(timeout=WAIT_S) == "client left"


@pytest.fixture
def served() -> Iterator[Served]:
    ours, relays = socket.socketpair()
    stop_read, stop_write = os.pipe()
    device = SocketTransport(ours, "device's end")
    link = SocketTransport(relays, "relay's end")
    said: Queue[str] = Queue()
    with PublicPty() as pty:
        relay = Relay(link, pty, said.put)
        thread = threading.Thread(target=relay.run, args=(stop_read, None))
        thread.start()
        yield Served(device, pty, said)
        os.write(stop_write, b"x")
        thread.join(WAIT_S)
        assert not thread.is_alive()
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


def test_every_byte_value_passes_both_ways(served: Served) -> None:
    client = served.client()
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
    first = served.client()
    served.device.write(b"for the first", WAIT_S)
    assert read_all(first, 3)[:3] == b"for"
    served.device.write(b"never read", WAIT_S)
    served.leave(first)
    served.device.write(b"for nobody", WAIT_S)
    second = served.client()
    second.write(b"?", WAIT_S)
    assert read_all(served.device, 1) == b"?"
    served.device.write(b"for the second", WAIT_S)
    assert read_all(second, 14) == b"for the second"
    served.leave(second)


def test_a_slow_reader_loses_nothing(served: Served) -> None:
    client = served.client()
    data = EVERY_BYTE * 4096
    writer = threading.Thread(target=served.device.write, args=(data, WAIT_S))
    writer.start()
    assert read_all(client, len(data)) == data
    writer.join(WAIT_S)
    served.leave(client)


def test_both_sides_may_write_much_at_once(served: Served) -> None:
    client = served.client()
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
