# SPDX-License-Identifier: Apache-2.0
"""TVM's RPC server over TCP: `tvm.rpc.connect(host, port)` reaches a device.

A device serves one client at a time; the next waits in the listener's queue. A client that disconnects while
its request runs would leave a busy device to the next client, so the server makes the device's source end the
request.
"""

from __future__ import annotations

import os
import re
import select
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from minrpc.errors import ConfigurationError, HarnessError, LinkClosedError
from minrpc.pipeline import Device
from minrpc.tvm.rpc.bridge import Bridge, OwnFunction, is_shutdown
from minrpc.tvm.rpc.files import Files
from minrpc.tvm.rpc.tracker import PERIOD_S, Tracker
from minrpc.tvm.rpc.watch import Stream, Watch
from minrpc.wire.requests import InitServer
from minrpc.wire.tcp_door import (
    INITIALIZED,
    NO_SUCH_KEY,
    V0_8,
    Door,
    Hello,
    PacketReceived,
    answer_hello,
    recognize,
)
from minrpc.wire.values import MalformedError

_READ: Final = 1 << 16
# A client that connects and sends nothing is dropped after this time, in seconds.
HELLO_S: Final = 10.0


class DeviceSource(Protocol):
    """Protocol: provides the device that serves clients."""

    def open(self) -> Device:
        """A device with a fresh session: nothing of the previous client is left in it."""

    def interrupt(self) -> None:
        """End the running request, from another thread: its client has gone."""

    def discard(self) -> None:
        """Drop the failed device: `open` then gives another."""


@dataclass
class Server:
    """Serves clients of `listener`, one after another.

    functions: makes, for each session's device, the functions that are answered here and not on the device.
    accepts: True if a client with this handshake is to be served. name: the server's name in its reply.
    say: called with a line for each event.
    """

    listener: socket.socket
    source: DeviceSource
    say: Callable[[str], None]
    functions: Callable[[Device], Mapping[str, OwnFunction]] = lambda _: {}
    accepts: Callable[[str], bool] = lambda _: True
    name: str = "minrpc"

    def serve(self, stop_fd: int, tracker: Tracker | None = None) -> None:
        """Serve clients until `stop_fd` is readable; with a `tracker` only the clients that it sends. A lost
        tracker is tried again until it is back.
        """
        if tracker is not None:
            self.accepts = tracker.accepts
        poll = select.poll()
        poll.register(self.listener, select.POLLIN)
        poll.register(stop_fd, select.POLLIN)
        due = time.monotonic() + PERIOD_S
        while True:
            left_s = max(0.0, due - time.monotonic())
            ready = dict(poll.poll(None if tracker is None else left_s * 1000))
            if stop_fd in ready:
                return
            # A refused client has not used up the key in the tracker.
            served = self.listener.fileno() in ready and self.serve_one(stop_fd)
            if tracker is not None and (served or time.monotonic() >= due):
                self._tell(tracker, served=served)
                due = time.monotonic() + PERIOD_S

    def _tell(self, tracker: Tracker, *, served: bool) -> None:
        """Report to the tracker that the device is free for the next client."""
        try:
            if not tracker.connected:
                tracker.connect()
                self.say(f"in the tracker at {tracker.host}:{tracker.port} again, as {tracker.key}")
            elif served:
                tracker.register()
            else:
                tracker.look()
        except LinkClosedError as error:
            tracker.close()
            self.say(f"{error.message}; the device is listed again when the tracker is back")
        except ConfigurationError:
            tracker.close()  # The tracker is not back yet.

    def serve_one(self, stop_fd: int) -> bool:
        """Accept a client and serve it until it leaves or `stop_fd` is readable; False if it was refused."""
        connection, address = self.listener.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer = f"{address[0]}:{address[1]}"
            events = events_of(connection, Door())
            hello = None
            try:
                hello = self._greeted(connection, events, peer)
                if hello is not None:
                    self._serve(connection, events, peer, stop_fd, session_limit(hello.key))
            except (OSError, MalformedError) as error:
                self.say(f"client {peer} is gone: {error}")
            return hello is not None

    def _greeted(
        self, connection: socket.socket, events: Iterator[Hello | PacketReceived], peer: str
    ) -> Hello | None:
        """The handshake of a client that is to be served. Raises as `Service.serve` does."""
        connection.settimeout(HELLO_S)
        hello = next(events, None)
        connection.settimeout(None)
        if not isinstance(hello, Hello):
            return None
        if self.accepts(hello.key):
            return hello
        connection.sendall(answer_hello("", NO_SUCH_KEY))
        self.say(f"client {peer} refused: it asks for {hello.key!r}")
        return None

    def _serve(
        self,
        connection: socket.socket,
        events: Iterator[Hello | PacketReceived],
        peer: str,
        stop_fd: int,
        limit_s: float | None,
    ) -> None:
        connection.sendall(answer_hello(f"server:{self.name}"))
        self.say(f"client {peer} came")
        Service(self.source, self.say, self.functions).serve(connection, events, stop_fd, limit_s)
        self.say(f"client {peer} left")


@dataclass(frozen=True)
class Service:
    """Serves one connected client, on any stream. Its fields have the same meaning as in `Server`."""

    source: DeviceSource
    say: Callable[[str], None]
    functions: Callable[[Device], Mapping[str, OwnFunction]] = lambda _: {}

    def serve(
        self,
        stream: Stream,
        events: Iterator[Hello | PacketReceived],
        stop_fd: int | None = None,
        limit_s: float | None = None,
    ) -> None:
        """Answer the packets until the client leaves, `stop_fd` is readable or `limit_s` seconds are over.

        Raises OSError if the client disconnects without a shutdown, MalformedError if it is no TVM client.
        """
        with Watch(stream, stop_fd, limit_s, self.source.interrupt) as watch:
            self._packets(stream, events, watch)

    def _packets(self, stream: Stream, events: Iterator[Hello | PacketReceived], watch: Watch) -> None:
        try:
            device = self.source.open()
        except HarnessError as error:
            self._no_device(stream, events, error)
            return
        bridge = Bridge(device, Files(device), self.functions(device))
        for event in events:
            assert isinstance(event, PacketReceived)
            if is_shutdown(event.packet):
                return
            watch.begin()
            try:
                reply = bridge.answer(event.packet)
            except HarnessError as error:
                self._failed(stream, watch.reason or str(error), bridge.refusal)
                return
            finally:
                watch.end()
            stream.sendall(reply)

    def _no_device(
        self, stream: Stream, events: Iterator[Hello | PacketReceived], error: HarnessError
    ) -> None:
        """Answers with `error` the first packet that shows the client's packing: an error in another packing
        would end the whole process of today's client.
        """
        self._gone(str(error))
        for event in events:
            assert isinstance(event, PacketReceived)
            if is_shutdown(event.packet):
                return
            request, packing = recognize(event.packet)
            if not isinstance(request, InitServer):
                stream.sendall((packing or V0_8).encode_exception(str(error)))
                return
            stream.sendall(INITIALIZED)

    def _gone(self, text: str) -> None:
        """Drop the unusable device."""
        self.say(text.partition("\n")[0])
        self.source.discard()

    def _failed(self, stream: Stream, text: str, refusal: Callable[[str], bytes]) -> None:
        """Drop the unusable device, and send the client the reason; the client then leaves."""
        self._gone(text)
        stream.sendall(refusal(text))


def listen(address: str, port: int) -> socket.socket:
    """A listener. Raises ConfigurationError for an unavailable address or port."""
    try:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, port), family=family)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None)
        why = os.strerror(number) if number and number > 0 else str(error)
        raise ConfigurationError(
            f"can't listen at {address}:{port}: {why}", next_step="name another port, or 0 for a free port"
        ) from error


def session_limit(key: str) -> float | None:
    """The client's limit for its session, in seconds, even during a request; None if it set none."""
    match = re.search(r" -timeout=(\d+(?:\.\d+)?)(?: |$)", key)
    return float(match[1]) if match else None


def events_of(stream: Stream, door: Door) -> Iterator[Hello | PacketReceived]:
    """The events decoded from a client's bytes, until it disconnects. Raises MalformedError, and OSError."""
    while data := stream.recv(_READ):
        yield from door.feed(data)
