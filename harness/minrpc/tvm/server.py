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
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final, Protocol

from minrpc.errors import ConfigurationError, HarnessError, LinkClosedError
from minrpc.host.process import stopped_by
from minrpc.pipeline import Device
from minrpc.tvm.bridge import Bridge, OwnFunction, is_shutdown
from minrpc.tvm.client_limits import DEFAULT, Limits
from minrpc.tvm.reception import Events, Guest, Reception, refuse
from minrpc.tvm.tracker import PERIOD_S, Tracker
from minrpc.tvm.uploads import Files
from minrpc.tvm.watch import Stream, Watch
from minrpc.wire.tcp_door import Hello, PacketReceived, TooLong, answer_hello
from minrpc.wire.values import MalformedError

_READ: Final = 1 << 16


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
    limits: Limits = DEFAULT

    def serve(self, stop_fd: int, tracker: Tracker | None = None) -> None:
        """Serve clients until `stop_fd` is readable; with a `tracker` only the clients that it sends. A lost
        tracker is tried again until it is back.
        """
        if tracker is not None:
            self.accepts = tracker.accepts
        ended, tells = socket.socketpair()
        with ended, tells, Reception(self.limits, self.accepts, self.say) as reception:
            worker = threading.Thread(target=self._sessions, args=(reception, stop_fd, tells))
            worker.start()
            try:
                self._attend(reception, stop_fd, ended, tracker)
            finally:
                reception.close()
                worker.join()

    def _attend(
        self, reception: Reception, stop_fd: int, ended: socket.socket, tracker: Tracker | None
    ) -> None:
        poll = select.poll()
        for readable in (self.listener, stop_fd, ended):
            poll.register(readable, select.POLLIN)
        due = time.monotonic() + PERIOD_S
        while True:
            left_s = max(0.0, due - time.monotonic())
            ready = dict(poll.poll(None if tracker is None else left_s * 1000))
            if stop_fd in ready:
                return
            if self.listener.fileno() in ready:
                reception.take(*self.listener.accept())
            # A refused client has not used up the key in the tracker.
            served = ended.fileno() in ready and bool(ended.recv(_READ))
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
            elif tracker.match_key:
                tracker.look()
        except LinkClosedError as error:
            tracker.close()
            self.say(f"{error.message}; the device is listed again when the tracker is back")
        except ConfigurationError:
            tracker.close()  # The tracker is not back yet.

    def _sessions(self, reception: Reception, stop_fd: int, tells: socket.socket) -> None:
        """Serves the greeted clients in turn; tells the end of each."""
        while (guest := reception.next()) is not None:
            with guest.connection:
                try:
                    self._serve(guest, stop_fd)
                except (OSError, MalformedError) as error:
                    self.say(f"client {guest.peer} is gone: {error}")
                except Exception as error:  # The one boundary: nothing that a client causes ends the server.
                    self.say(f"client {guest.peer} is gone: {error!a}")
            reception.leave()
            tells.send(b"x")

    def _serve(self, guest: Guest, stop_fd: int) -> None:
        guest.connection.sendall(answer_hello(f"server:{self.name}"))
        self.say(f"client {guest.peer} came")
        service = Service(self.source, self.say, self.functions, self.limits)
        service.serve(guest.connection, guest.events, stop_fd, session_limit(guest.key))
        self.say(f"client {guest.peer} left")


@dataclass(frozen=True)
class Service:
    """Serves one connected client, on any stream. Its fields have the same meaning as in `Server`."""

    source: DeviceSource
    say: Callable[[str], None]
    functions: Callable[[Device], Mapping[str, OwnFunction]] = lambda _: {}
    limits: Limits = DEFAULT

    def serve(
        self,
        stream: Stream,
        events: Events,
        stop_fd: int | None = None,
        limit_s: float | None = None,
    ) -> None:
        """Answer the packets until the client leaves, `stop_fd` is readable or `limit_s` seconds are over.

        Raises OSError if the client disconnects without a shutdown, MalformedError if it is no TVM client.
        """
        with (
            Watch(stream, stop_fd, limit_s, self.source.interrupt) as watch,
            stopped_by(watch.interrupted),
        ):
            try:
                device = self.source.open()
            except Exception as error:  # Also of a firmware that a client has damaged.
                self._no_device(stream, events, error)
                return
            files = Files(device, self.limits)
            try:
                self._packets(stream, events, watch, Bridge(device, files, self.functions(device)))
            finally:
                if uploads := files.close():
                    self.say(uploads)
                    self.source.discard()  # The client's code may still run there.

    def _packets(self, stream: Stream, events: Events, watch: Watch, bridge: Bridge) -> None:
        try:
            for event in events:
                if isinstance(event, TooLong):
                    most = self.limits.session_bytes
                    stream.sendall(bridge.refusal(f"a request of {event.nbytes} bytes: the limit is {most}"))
                elif not self._answered(stream, event, watch, bridge):
                    return
        except TimeoutError as error:
            if bridge.has_asked:  # An answer that it can't read would end the client's process.
                stream.sendall(bridge.refusal(str(error)))
            raise

    def _answered(self, stream: Stream, event: Hello | PacketReceived, watch: Watch, bridge: Bridge) -> bool:
        """Answer a request; False if the session is over."""
        assert isinstance(event, PacketReceived)
        if is_shutdown(event.packet):
            return False
        watch.begin()
        try:
            reply = bridge.answer(event.packet)
        except Exception as error:  # Any error of a hostile request costs its client's session only.
            text = watch.reason or _text(error)
            self._gone(text)
            stream.sendall(bridge.refusal(text))  # The client then leaves.
            return False
        finally:
            watch.end()
        stream.sendall(reply)
        return True

    def _no_device(self, stream: Stream, events: Events, error: Exception) -> None:
        self._gone(_text(error))
        refuse(stream, events, _text(error))

    def _gone(self, text: str) -> None:
        """Drop the unusable device."""
        self.say(text.partition("\n")[0])
        self.source.discard()


def _text(error: Exception) -> str:
    return str(error) if isinstance(error, HarnessError) else f"the server failed: {error!r}"


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


def has_token(token: str) -> Callable[[str], bool]:
    """For `Server.accepts`: clients whose key is `token`; all for "". Takes equal time for each key."""
    expected = f"client:{token}".encode()
    return lambda key: not token or compare_digest(key.split(" ")[0].encode(), expected)


def session_limit(key: str) -> float | None:
    """The client's limit for its session, in seconds, even during a request; None if it set none."""
    match = re.search(r" -timeout=(\d+(?:\.\d+)?)(?: |$)", key)
    return float(match[1]) if match else None
