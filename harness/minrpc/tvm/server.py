# SPDX-License-Identifier: Apache-2.0
"""TVM's TCP door: `tvm.rpc.connect(host, port)` leads to a device.

One device serves one client; the next waits in the listener's queue. A client that goes away while a request
of its runs would leave a busy device to the next: the source is told, and ends it.
"""

from __future__ import annotations

import re
import select
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol, Self

from minrpc.client.device import Device
from minrpc.errors import ConfigurationError, HarnessError
from minrpc.firmware import Firmware
from minrpc.tvm.bridge import Bridge, OwnFunction
from minrpc.tvm.files import Files
from minrpc.tvm.tracker import PERIOD_S, Tracker
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
    accepts: whether a client with this handshake is to be served; name: what it is told of us.
    firmware: what modules are linked against; None for what the device's owner has started.
    say: told what happens, a line each.
    """

    listener: socket.socket
    source: DeviceSource
    say: Callable[[str], None]
    functions: Callable[[Device], Mapping[str, OwnFunction]] = lambda _: {}
    accepts: Callable[[str], bool] = lambda _: True
    name: str = "minrpc"
    firmware: Firmware | None = None

    def serve(self, stop_fd: int, tracker: Tracker | None = None) -> None:
        """Serve clients until `stop_fd` is readable; only those that `tracker` sends when there is one.

        Raises LinkClosedError when the tracker has gone.
        """
        if tracker is not None:
            self.accepts = tracker.accepts
        poll = select.poll()
        poll.register(self.listener, select.POLLIN)
        poll.register(stop_fd, select.POLLIN)
        while True:
            ready = dict(poll.poll(None if tracker is None else PERIOD_S * 1000))
            if stop_fd in ready:
                return
            if self.listener.fileno() in ready:
                self.serve_one(stop_fd)
                if tracker is not None:
                    tracker.register()
            elif tracker is not None:
                tracker.look()

    def serve_one(self, stop_fd: int) -> None:
        """Accept a client and serve it until it leaves, or `stop_fd` is readable."""
        connection, address = self.listener.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                self._serve(connection, f"{address[0]}:{address[1]}", stop_fd)
            except (ConnectionError, TimeoutError, MalformedError) as error:
                self.say(f"client {address[0]}:{address[1]} is gone: {error}")

    def _serve(self, connection: socket.socket, peer: str, stop_fd: int) -> None:
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
        with _Watch(connection, stop_fd, session_limit(hello.key), self.source.interrupt) as watch:
            self._packets(connection, events, watch)
        self.say(f"client {peer} left")

    def _packets(
        self, connection: socket.socket, events: Iterator[Hello | PacketReceived], watch: _Watch
    ) -> None:
        try:
            device = self.source.open()
        except HarnessError as error:
            self._failed(connection, error.message, V0_8.encode_exception)
            return
        with Files(device, self.firmware) as files:
            bridge = Bridge(device, files, self.functions(device))
            for event in events:
                assert isinstance(event, PacketReceived)
                try:
                    with watch.request():
                        reply = bridge.answer(event.packet)
                except HarnessError as error:
                    self._failed(connection, watch.reason or str(error), bridge.refusal)
                    return
                if reply is None:
                    return
                connection.sendall(reply)

    def _failed(self, connection: socket.socket, text: str, refusal: Callable[[str], bytes]) -> None:
        """The device is of no use any more: the client is told why, and leaves."""
        self.say(text.partition("\n")[0])
        self.source.discard()
        connection.sendall(refusal(text))


def listen(address: str, port: int) -> socket.socket:
    """A listener. Raises ConfigurationError for an address or a port that can't be had."""
    try:
        return socket.create_server((address, port))
    except (OSError, OverflowError) as error:
        raise ConfigurationError(
            f"can't listen at {address}:{port}: {error}", next_step="name another port, or 0 for a free one"
        ) from error


def session_limit(key: str) -> float | None:
    """Seconds after which the client wants its session ended, whatever runs; None when it did not say."""
    match = re.search(r" -timeout=(\d+(?:\.\d+)?)(?: |$)", key)
    return float(match[1]) if match else None


def _events(connection: socket.socket, door: Door) -> Iterator[Hello | PacketReceived]:
    while data := connection.recv(_READ):
        yield from door.feed(data)


class _Watch:
    """Ends a session from outside: its client has gone, its time is up, or the server is to stop.

    interrupt: called from a thread of its own when a request runs then.
    reason: what the client is to be told; "" as long as there is nothing.
    """

    def __init__(
        self,
        connection: socket.socket,
        stop_fd: int,
        limit_s: float | None,
        interrupt: Callable[[], None],
    ) -> None:
        self.reason = ""
        self._connection = connection
        self._stop_fd = stop_fd
        self._limit_s = limit_s
        self._interrupt = interrupt
        self._lock = threading.Lock()
        self._busy = False
        self._done, self._told = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="minrpc-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.close()
        self._thread.join()
        self._told.close()

    @contextmanager
    def request(self) -> Iterator[None]:
        """A request runs. Raises ConnectionResetError when the session has been ended already."""
        with self._lock:
            if self.reason:
                raise ConnectionResetError(self.reason)
            self._busy = True
        try:
            yield
        finally:
            with self._lock:
                self._busy = False

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._connection, select.POLLRDHUP)
        poll.register(self._stop_fd, select.POLLIN)
        poll.register(self._told, select.POLLIN)
        ready = dict(poll.poll(None if self._limit_s is None else self._limit_s * 1000))
        if self._told.fileno() in ready:
            return
        with self._lock:
            self.reason = self._why(ready)
            if self._busy:
                self._interrupt()
            elif self._connection.fileno() not in ready:
                self._connection.shutdown(socket.SHUT_RD)  # Ends the wait for the next request.

    def _why(self, ready: dict[int, int]) -> str:
        if self._stop_fd in ready:
            return "the server stops"
        if self._connection.fileno() in ready:
            return "the client left while its request ran"
        return f"the session's {self._limit_s:g} s are over, as its client wanted"
