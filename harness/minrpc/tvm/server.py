# SPDX-License-Identifier: Apache-2.0
"""TVM's TCP door: `tvm.rpc.connect(host, port)` leads to a device.

One device serves one client; the next waits in the listener's queue. A client that goes away while a request
of its runs would leave a busy device to the next: the source is told, and ends it.
"""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol, Self

from minrpc.client.device import Device
from minrpc.errors import HarnessError
from minrpc.tvm.bridge import Bridge, OwnFunction
from minrpc.wire.tcp_door import NO_SUCH_KEY, V0_8, Door, Hello, PacketReceived, answer_hello
from minrpc.wire.values import MalformedError

_READ: Final = 1 << 16
# A client that connects and says nothing gives way to the next after so many seconds.
HELLO_S: Final = 10.0


class DeviceSource(Protocol):
    """Gives the device that clients are served by."""

    def open(self) -> Device:
        """A device with a fresh session: nothing of the client before is left in it."""

    def interrupt(self) -> None:
        """End what runs, from another thread: the client that wanted it is gone."""

    def discard(self) -> None:
        """The device failed: `open` gives another."""


@dataclass
class Server:
    """Serves clients of `listener`, one after another.

    functions: answered here and not on the device, made for each session's device.
    say: told what happens, a line each.
    """

    listener: socket.socket
    source: DeviceSource
    say: Callable[[str], None]
    functions: Callable[[Device], dict[str, OwnFunction]] = lambda _: {}
    accepts: Callable[[str], bool] = lambda _: True
    name: str = "minrpc"

    def serve_one(self) -> None:
        """Accept a client and serve it until it leaves."""
        connection, address = self.listener.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                self._serve(connection, f"{address[0]}:{address[1]}")
            except (ConnectionError, TimeoutError, MalformedError) as error:
                self.say(f"client {address[0]}:{address[1]} is gone: {error}")

    def _serve(self, connection: socket.socket, peer: str) -> None:
        door = Door()
        events = _events(connection, door)
        connection.settimeout(HELLO_S)
        hello = next(events, None)
        if not isinstance(hello, Hello):
            return
        connection.settimeout(None)
        if not self.accepts(hello.key):
            connection.sendall(answer_hello("", NO_SUCH_KEY))
            self.say(f"client {peer} refused: it asks for {hello.key!r}")
            return
        connection.sendall(answer_hello(f"server:{self.name}"))
        self.say(f"client {peer} came")
        self._packets(connection, events)
        self.say(f"client {peer} left")

    def _packets(self, connection: socket.socket, events: Iterator[Hello | PacketReceived]) -> None:
        try:
            device = self.source.open()
        except HarnessError as error:
            self._failed(connection, error, V0_8.encode_exception)
            return
        bridge = Bridge(device, self.functions(device))
        with _HangUp(connection, self.source.interrupt) as hang_up:
            for event in events:
                assert isinstance(event, PacketReceived)
                try:
                    with hang_up.request():
                        reply = bridge.answer(event.packet)
                except HarnessError as error:
                    self._failed(connection, error, bridge.refusal)
                    return
                if reply is None:
                    return
                connection.sendall(reply)

    def _failed(
        self, connection: socket.socket, error: HarnessError, refusal: Callable[[str], bytes]
    ) -> None:
        """The device is of no use any more: the client is told why, and leaves."""
        self.say(error.message)
        self.source.discard()
        connection.sendall(refusal(str(error)))


def _events(connection: socket.socket, door: Door) -> Iterator[Hello | PacketReceived]:
    while data := connection.recv(_READ):
        yield from door.feed(data)


class _HangUp:
    """Watches for the client's end while its requests run, in one thread for the whole connection.

    interrupt: called from that thread when the client has gone in the middle of a request.
    """

    def __init__(self, connection: socket.socket, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        self._lock = threading.Lock()
        self._busy = False
        self._gone = False
        self._connection = connection
        self._stop, self._stopped = socket.socketpair()
        self._thread = threading.Thread(target=self._watch, name="minrpc-hang-up", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.close()
        self._thread.join()
        self._stopped.close()

    @contextmanager
    def request(self) -> Iterator[None]:
        """A request runs. Raises ConnectionResetError when its client has gone already."""
        with self._lock:
            if self._gone:
                raise ConnectionResetError("it went before its request was answered")
            self._busy = True
        try:
            yield
        finally:
            with self._lock:
                self._busy = False

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._connection, select.POLLRDHUP)
        poll.register(self._stopped, select.POLLIN)
        if self._stopped.fileno() in dict(poll.poll()):
            return
        with self._lock:
            self._gone = True
            if self._busy:
                self._interrupt()
