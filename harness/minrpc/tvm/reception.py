# SPDX-License-Identifier: Apache-2.0
"""Clients from their connection to their session: greeted side by side, then served in turn.

Each says its hello to a thread of its own, so that a slow one keeps nobody out.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self, TypeAlias

from minrpc.tvm.bridge import is_shutdown
from minrpc.tvm.client_limits import Limits
from minrpc.tvm.watch import Stream
from minrpc.wire.requests import InitServer
from minrpc.wire.tcp_door import (
    INITIALIZED,
    NO_SUCH_KEY,
    V0_8,
    Door,
    Hello,
    PacketReceived,
    TooLong,
    answer_hello,
    recognize,
)
from minrpc.wire.values import MalformedError

Events: TypeAlias = Iterator[Hello | PacketReceived | TooLong]

_READ: Final = 1 << 16
# Clients that are told at the same time that too many wait; more are only disconnected.
_REFUSED: Final = 32
# A request with a file of the longest size is a little longer.
_HEAD: Final = 4096


@dataclass
class Guest:
    """A greeted client. events: what it sends after its handshake. key: of its handshake."""

    connection: socket.socket
    peer: str
    events: Events
    key: str


class Reception:
    """A context manager, which disconnects the waiting clients at its end.

    accepts: True if a client with this handshake is to be served. say: called with a line for each refusal.
    """

    def __init__(self, limits: Limits, accepts: Callable[[str], bool], say: Callable[[str], None]) -> None:
        self._limits = limits
        self._accepts = accepts
        self._say = say
        self._places = threading.Semaphore(limits.waiting + 1)
        self._refusals = threading.Semaphore(_REFUSED)
        self._greeted: queue.SimpleQueue[Guest | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._here: set[socket.socket] = set()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def take(self, connection: socket.socket, address: tuple[str, int]) -> None:
        """Greet a client, in a thread."""
        full = not self._places.acquire(blocking=False)
        if full and not self._refusals.acquire(blocking=False):
            connection.close()
            return
        self._here.add(connection)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._limits.keep_alive(connection)
        arguments = (connection, f"{address[0]}:{address[1]}", full)
        threading.Thread(target=self._greet, args=arguments, daemon=True).start()

    def next(self) -> Guest | None:
        """The next greeted client; None at the end. `leave` ends its stay."""
        guest = None if self._closed else self._greeted.get()
        if guest is not None:
            self._here.discard(guest.connection)
        return guest

    def leave(self) -> None:
        """A client's place is free again."""
        self._places.release()

    def close(self) -> None:
        """Disconnect all that wait. A second call does nothing."""
        self._closed = True
        for connection in list(self._here):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        while not self._greeted.empty():
            if (guest := self._greeted.get()) is not None:
                guest.connection.close()
        self._greeted.put(None)

    def _greet(self, connection: socket.socket, peer: str, full: bool) -> None:
        guest = None
        try:
            events = events_of(connection, Door(most=self._limits.session_bytes + _HEAD), self._limits)
            guest = self._guest(connection, events, peer)
            if guest is not None and full:
                connection.sendall(answer_hello("server:minrpc"))
                refuse(connection, events, f"{self._limits.waiting} clients wait already: try again later")
                self._say(f"client {peer} refused: {self._limits.waiting} wait")
        except (OSError, MalformedError) as error:
            self._say(f"client {peer} is gone: {error}")
        except Exception as error:  # As in `Server`: nothing that a client causes ends anything but its stay.
            self._say(f"client {peer} is gone: {error!a}")
        if guest is not None and not full:
            self._greeted.put(guest)
            return
        self._here.discard(connection)
        connection.close()
        (self._refusals if full else self._places).release()

    def _guest(self, connection: socket.socket, events: Events, peer: str) -> Guest | None:
        hello = next(events, None)
        if not isinstance(hello, Hello):
            return None
        with self._lock:
            accepted = self._accepts(hello.key)
        if accepted:
            return Guest(connection, peer, events, hello.key)
        connection.sendall(answer_hello("", NO_SUCH_KEY))
        self._say(f"client {peer} refused: its key is wrong")
        return None


def events_of(stream: Stream, door: Door, limits: Limits | None = None) -> Events:
    """The events decoded from a client's bytes, until it disconnects.

    Raises MalformedError, and OSError: with `limits` TimeoutError if no whole event comes in time.
    """
    limit_s, what = (limits.hello_s, "handshake") if limits else (None, "")
    begin = time.monotonic()
    while True:
        try:
            if limit_s is not None:
                stream.settimeout(_positive(begin + limit_s - time.monotonic()))
            data = stream.recv(_READ)
        except TimeoutError as error:
            if error.errno:  # The kernel's own, of `Limits.keep_alive`.
                raise ConnectionAbortedError("its machine does not answer any more") from error
            raise TimeoutError(f"no whole {what} came for {limit_s:g} s, the server's limit") from None
        if not data:
            return
        for event in door.feed(data):
            if limits:
                limit_s, what = limits.idle_s, "request"
            stream.settimeout(limit_s)  # of the answer
            yield event
            begin = time.monotonic()


def _positive(left_s: float) -> float:
    if left_s <= 0.0:
        raise TimeoutError
    return left_s


def refuse(stream: Stream, events: Events, text: str) -> None:
    """Answers with `text` the first packet that shows the client's packing: an error in another packing would
    end the whole process of today's client.
    """
    for event in events:
        if not isinstance(event, PacketReceived) or is_shutdown(event.packet):
            return
        request, packing = recognize(event.packet)
        if not isinstance(request, InitServer):
            stream.sendall((packing or V0_8).encode_exception(text))
            return
        stream.sendall(INITIALIZED)
