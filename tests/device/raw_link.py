# SPDX-License-Identifier: Apache-2.0
"""A client that sends forbidden messages directly over a device's link: in any session, with any bytes."""

from itertools import count

from minrpc import DeviceInfo, RunningDevice
from minrpc.host import Deadline, read_before, write_before
from minrpc.wire.framing import encode_frame
from minrpc.wire.replies import RemoteException, Reply, Return, decode_reply
from minrpc.wire.requests import CallFunc, Request, encode_request, get_global_func
from minrpc.wire.session import (
    ClientSession,
    Log,
    MessageType,
    Packet,
    SessionEvent,
    SessionState,
    Terminated,
    encode_message,
)
from minrpc.wire.values import Argument, Dialect, Handle, Module

TIMEOUT_S = 60.0


class RawLink:
    """A session on a running device, and the device's logs.

    logs: lines that came since the session was opened.
    """

    def __init__(self, running: RunningDevice) -> None:
        self.logs: list[str] = []
        self._running = running
        nonces = count(1)
        self._session = ClientSession(lambda: next(nonces) % 255 + 1)
        self.open()

    @property
    def session_id(self) -> int:
        """The id of the running session."""
        return self._session.session_id

    def open(self) -> None:
        """Start a session, which replaces the running session."""
        deadline = self._deadline("session")
        self.send(self._session.start())
        while self._session.state is not SessionState.ESTABLISHED:
            if any(isinstance(event, Terminated) for event in self._read(deadline)):
                # The device has just booted: bytes sent before are lost.
                self.send(self._session.start())

    def send(self, data: bytes) -> None:
        """Send these bytes unchanged."""
        write_before(self._running.transport, data, self._deadline("write"))

    def send_message(self, kind: int, body: bytes = b"", session_id: int | None = None) -> None:
        """Send one message in a good frame."""
        identity = self.session_id if session_id is None else session_id
        self.send(encode_frame(encode_message(identity, MessageType(kind), body)))

    def frame(self, packet: bytes) -> bytes:
        """The frame of an RPC packet, for a test that damages it."""
        return self._session.encode(packet)

    def exchange(self, packet: bytes) -> Reply:
        """The first answer to an RPC packet, with its length in front."""
        self.send(self._session.encode(packet))
        deadline = self._deadline("answer")
        while True:
            for event in self._read(deadline):
                if isinstance(event, Packet):
                    return decode_reply(event.body, Dialect.V0_8_0)

    def request(self, request: Request) -> Reply:
        """The answer to a request."""
        return self.exchange(encode_request(request, Dialect.V0_8_0))

    def values(self, request: Request) -> list[object]:
        """Values of the answer, which must not be an exception."""
        reply = self.request(request)
        assert isinstance(reply, Return), reply
        return list(reply.values)

    def exception(self, request: Request) -> str:
        """The text of the exception that the request ends with."""
        return text_of(self.request(request))

    def global_function(self, name: str) -> int:
        """A global function's handle."""
        handle = self.values(get_global_func(name))[0]
        assert isinstance(handle, Handle)
        return handle.value

    def call(self, handle: int, *args: Argument) -> object:
        """The value that a function returns."""
        return self.values(CallFunc(handle, args))[1]

    def library_function(self, name: str) -> int:
        """The handle of a function of the system library."""
        module = self.call(self.global_function("runtime.SystemLib"))
        assert isinstance(module, Handle)
        get_function = self.global_function("tvm.rpc.server.ModuleGetFunction")
        found = self.call(get_function, Module(module.value), name, 0)
        assert isinstance(found, Handle)
        return found.value

    def still_serves(self) -> bool:
        """True if the good request gets the right answer."""
        return self.call(self.library_function("inc"), 41) == 42

    def receive_size(self) -> int:
        """Bytes of the longest message that the device takes."""
        info = self.call(self.global_function("minrpc.device_info"))
        assert isinstance(info, bytes)
        return DeviceInfo.parse(info).max_packet

    def _deadline(self, stage: str) -> Deadline:
        return Deadline(stage, TIMEOUT_S, self._running.clock)

    def _read(self, deadline: Deadline) -> list[SessionEvent]:
        events = self._session.receive(read_before(self._running.transport, deadline, "the device's answer"))
        self.logs += [event.text for event in events if isinstance(event, Log)]
        return events


def text_of(reply: Reply) -> str:
    """The text of a reply, which must be an exception with a text."""
    assert isinstance(reply, RemoteException), reply
    assert reply.text
    return reply.text
