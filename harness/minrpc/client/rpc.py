# SPDX-License-Identifier: Apache-2.0
"""Requests and their answers over a session, and what is known of the device while it lasts.

Handles that are no longer used are queued, from any thread and from the garbage collector too, and given back
before the next request.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import Protocol
from weakref import WeakSet

from minrpc.client.direct import Direct
from minrpc.client.info import DeviceCounter, DeviceInfo
from minrpc.client.layout import LAYOUT, STAGE, Places, no_layout, told_memory
from minrpc.client.link import SessionLink
from minrpc.errors import (
    ConfigurationError,
    DeadlineError,
    DialectError,
    HarnessError,
    LinkError,
    RemoteError,
    SessionTerminatedError,
)
from minrpc.timing import Overhead
from minrpc.wire.replies import (
    CopyAck,
    RemoteException,
    Reply,
    Result,
    Return,
    decode_call_reply,
    decode_reply,
)
from minrpc.wire.requests import Request, RpcCode, Syscall, encode_call, encode_request, get_global_func
from minrpc.wire.values import Argument, Dialect, Handle, MalformedError, Value

log = logging.getLogger("minrpc.client")

DEVICE_INFO = "minrpc.device_info"
RESEND = "minrpc.resend"

MAX_PACKET_SIZE = "tvm.rpc.server.GetCRTMaxPacketSize"

# In front of what n counts: the session header and n itself.
_LENGTH = 8
_FRONT = 3 + _LENGTH

# What n may count where the device can't be asked: the smallest receive buffer in use is 2048 bytes, and it
# must also hold the session header, the length, and what is left over of the session's start.
_CAUTIOUS_PACKET = 2048 - _FRONT - 7

# Seconds until a lost question, or its lost answer, is noticed: the device answers this one at once.
_QUESTION_S = 1.0


@dataclass
class Facts:
    """What is known of the device in the running session.

    dialect: None until the first allocation has told it.
    max_packet: what n of a packet may count; None until asked.
    long_copies: the device takes a copy of any length in one packet, whatever its receive buffer holds.
    functions: handles of global functions by name, 0 for those that it does not have.
    colon_names: whether it may know functions of its system library by their name after a colon.
    evaluator_arity: how many arguments its time evaluator takes; None until asked.
    overhead: what timing costs there; None until measured.
    direct: what need not go over the link.
    counters: what it counts itself, by name; None until asked.
    symbols: addresses of its shared libraries' functions by name, 0 for those that it does not have.
    empty_stack: bytes of the stack that an empty call needs; None until measured.
    """

    dialect: Dialect | None = None
    max_packet: int | None = None
    long_copies: bool = False
    functions: dict[str, int] = field(default_factory=dict)
    colon_names: bool = True
    evaluator_arity: int | None = None
    overhead: Overhead | None = None
    direct: Direct = field(default_factory=lambda: Direct(None))
    counters: Mapping[str, DeviceCounter] | None = None
    symbols: dict[str, int] = field(default_factory=dict)
    empty_stack: int | None = None


class Live(Protocol):
    """What belongs to a session, and is given back at its end."""

    def free(self) -> None: ...


class RpcClient:
    """All requests of one client. Operations of several requests hold `lock`.

    live: the objects on the device that somebody references.
    layout: where arrays and code lie in each session; None for where the firmware has them.

    session_timeout_s, call_timeout_s: limits in seconds as `Deadline` charges them.
    direct: copy arrays through memory that the device's owner shares with it, not over the link.
    resend: number the requests where the device can do that, so that what the link loses is sent again.
    """

    def __init__(
        self,
        link: SessionLink,
        *,
        session_timeout_s: float,
        call_timeout_s: float,
        resend: bool = False,
        direct: bool = True,
    ) -> None:
        self.link = link
        self.lock = RLock()
        self._direct = direct
        self.facts = self._new_facts()
        self.call_timeout_s = call_timeout_s
        self._session_timeout_s = session_timeout_s
        self.resend = resend
        self.layout: Places | None = None
        self.live: WeakSet[Live] = WeakSet()
        self._unused: deque[tuple[int, Syscall]] = deque()

    @property
    def direct(self) -> bool:
        """Whether arrays may be copied through shared memory; can be set."""
        return self.facts.direct.usable

    @direct.setter
    def direct(self, enabled: bool) -> None:
        self._direct = self.facts.direct.enabled = enabled

    @property
    def generation(self) -> int:
        """Which session runs; handles of another are worth nothing."""
        return self.link.generation

    @property
    def idle(self) -> bool:
        """Whether the next request can be sent at once: a session runs and nothing waits to be freed."""
        return self.link.usable and not self._unused

    @property
    def dialect(self) -> Dialect:
        """The one in use. As long as no tensor was sent it makes no difference."""
        return self.facts.dialect or Dialect.V0_8_0

    @property
    def ours(self) -> bool:
        """Whether the device runs this project's runtime."""
        return self.global_function(DEVICE_INFO) != 0

    def device_info(self, timeout_s: float | None = None) -> DeviceInfo:
        """What the device tells of itself. Raises DialectError when it is not this project's."""
        handle = self.global_function(DEVICE_INFO, timeout_s)
        if not handle:
            raise DialectError(f"the device has no {DEVICE_INFO}: it does not run this project's runtime")
        answer = self.call(handle, (), "read the device's info", timeout_s)
        return DeviceInfo.parse(answer if isinstance(answer, bytes) else b"")

    def max_packet(self) -> int:
        """What n of a packet may count: the device has no room for more. Asked once a session."""
        if self.facts.max_packet is None:
            self.facts.max_packet = self._ask_max_packet()
        return self.facts.max_packet - self.link.extra

    def _ask_max_packet(self) -> int:
        if self.ours:  # What it tells TVM's clients is what they can take in an answer: less than it takes.
            info = self.device_info()
            self.facts.long_copies = "streaming" in info.options
            return info.max_packet - _FRONT
        handle = self.global_function(MAX_PACKET_SIZE)
        size = self.call(handle, (), "ask for the packet size") if handle else _CAUTIOUS_PACKET
        if not isinstance(size, int):
            raise DialectError(f"{MAX_PACKET_SIZE} answered {size!r}, which is no number")
        return size

    def _require_room(self, packet: bytes, stage: str) -> None:
        """Raise ValueError when the device has no room for the packet: some would stop for good."""
        size = len(packet) - _LENGTH
        if size > _CAUTIOUS_PACKET - self.link.extra and size > self.max_packet():
            raise ValueError(
                f"{stage}: a request of {size} bytes, the device takes {self.max_packet()}; "
                "send large data as arrays"
            )

    def ready(self) -> None:
        """Have a session, and give back what is no longer used. Raises what `SessionLink.start` does."""
        with self.lock:
            if not self.link.usable:
                self._start()
            if self._unused:
                self._give_back()

    def restart(self) -> None:
        """A session of its own, whether one runs or not: what an earlier one left on the device is freed."""
        with self.lock:
            self._start()

    def _start(self) -> None:
        """A session, with the memory laid out."""
        self._start_session()
        if self.layout is not None and not self.lay_out(self.layout):
            raise DialectError(
                "arrays and code can't lie where they should: functions of the firmware keep memory there",
                stage=STAGE,
                next_step="device.relayout() gives the firmware's own layout",
            )

    def lay_out(self, places: Places) -> bool:
        """Whether the device's memory is as `places` say now; unchanged where live blocks are in the way.

        Raises ConfigurationError where it has no such memory, or can't do it.
        """
        handle = self.global_function(LAYOUT)
        if not handle:
            raise no_layout(self.link.name)
        numbers = (Handle(places.arena_at), places.arena_size, Handle(places.code_at), places.code_size)
        try:
            return self.call(handle, numbers, STAGE) == 1
        except RemoteError as error:
            details = told_memory(self.device_info())
            raise ConfigurationError(
                error.text, stage=STAGE, details=details, next_step="take a part of that"
            ) from error

    def move_to(self, link: SessionLink) -> None:
        """Go on over another link, on another device: what belonged to the sessions before is gone."""
        with self.lock:
            before, self.link = self.link, link
            link.generation = before.generation
            self.facts = self._new_facts()
            before.close()

    def _start_session(self) -> None:
        """A session.

        Some devices have less room for its first request. That is a small one: whoever sends a large one must
        have asked for a function, or for memory, before.
        """
        if self.resend:
            self._start_numbered()
            return
        self.link.start(self._session_timeout_s)
        self.facts = self._new_facts()

    def _new_facts(self) -> Facts:
        return Facts(direct=Direct(self.link.owner.memory, self._direct))

    def _start_numbered(self) -> None:
        """A session with numbered requests where the device has them.

        The link may damage the question too, and then the start is made anew: until the session's time is up.
        """
        deadline = self.link.deadline("session", self._session_timeout_s)
        while True:
            self.link.start(deadline.remaining())
            self.facts = self._new_facts()
            try:
                if self.find_global(RESEND, _QUESTION_S):
                    self.link.number_requests()
                return
            except (DeadlineError, LinkError, SessionTerminatedError):
                if deadline.expired():
                    raise

    def release(self, generation: int, request: Syscall | None) -> None:
        """Queue the request that gives a handle back. It sends nothing and takes no lock."""
        if request is not None:
            self._unused.append((generation, request))

    def call(
        self, handle: int, args: Sequence[Argument], stage: str, timeout_s: float | None = None
    ) -> Result:
        """Call a function. Raises RemoteError with the device's text when it fails."""
        dialect = self.facts.dialect or Dialect.V0_8_0
        packet = encode_call(handle, args, dialect)
        with self.lock:
            if len(packet) > _CAUTIOUS_PACKET:
                self._require_room(packet, stage)
            body = self.link.request(packet, stage, timeout_s or self.call_timeout_s)
        try:
            result = decode_call_reply(body, dialect)
        except MalformedError as error:
            raise DialectError(f"{stage}: the answer can't be read: {error}", stage=stage) from error
        if isinstance(result, RemoteException):
            raise self._remote_error(result, stage)
        return result

    def global_function(self, name: str, timeout_s: float | None = None) -> int:
        """The handle of a global function, 0 when there is none. Asked once a session."""
        with self.lock:
            if name not in self.facts.functions:
                self.facts.functions[name] = self.find_global(name, timeout_s)
            return self.facts.functions[name]

    def find_global(self, name: str, timeout_s: float | None = None) -> int:
        """As `global_function`, but asks each time: the handle is the caller's own to give back."""
        try:
            found = self.syscall(get_global_func(name), f"look up {name}", timeout_s)
        except RemoteError:
            return 0  # So the oldest devices answer when they don't know the name.
        return found.value if isinstance(found, Handle) else 0

    def library_function(self, name: str) -> int:
        """The handle of a function of the system library by one question, which our own devices understand.

        0 when the device does not understand it, or has no such function.
        """
        if not self.facts.colon_names:
            return 0
        handle = self.find_global(f":{name}")
        if not handle:
            self.facts.colon_names = self.ours
        return handle

    def syscall(self, request: Request, stage: str, timeout_s: float | None = None) -> Value:
        """Send any request but a call or a CopyFromRemote; the value that it returns."""
        match request:
            case Syscall(RpcCode.DEV_FREE_DATA, (_, Handle(address))):
                self.facts.direct.freed(address)
        return self.syscall_packet(encode_request(request, self.dialect), stage, timeout_s)

    def syscall_packet(
        self, packet: bytes, stage: str, timeout_s: float | None = None, front: int = 0
    ) -> Value:
        """As `syscall`, with the request's bytes; `front` as in `SessionLink.request`."""
        values = _values(self.exchange(packet, stage, timeout_s, front), stage)
        if len(values) != 1:
            raise DialectError(f"{stage}: {len(values)} values came back, not one", stage=stage)
        return values[0]

    def exchange(self, packet: bytes, stage: str, timeout_s: float | None = None, front: int = 0) -> Reply:
        """Send a packet; what came back. Raises RemoteError for an exception, and what the link raises."""
        with self.lock:
            if not front:
                self._require_room(packet, stage)
            body = self.link.request(packet, stage, timeout_s or self.call_timeout_s, front)
        try:
            reply = decode_reply(body, self.dialect)
        except MalformedError as error:
            raise DialectError(f"{stage}: the answer can't be read: {error}", stage=stage) from error
        if isinstance(reply, RemoteException):
            raise self._remote_error(reply, stage)
        return reply

    def _remote_error(self, exception: RemoteException, stage: str) -> RemoteError:
        text = exception.text or "the device gave no reason"
        return RemoteError(text, stage=stage, console_tail=self.link.console_text())

    def _give_back(self) -> None:
        while self._unused:
            generation, request = self._unused.popleft()
            if generation != self.generation:
                continue
            try:
                self.syscall(request, "free")
            except RemoteError as error:
                log.warning("the device did not free a handle: %s", error.text)

    def close(self) -> None:
        """Give back everything, where the end of the session does not do that, and close the link."""
        with self.lock:
            try:
                if self.link.usable and (self.live or self._unused) and not self.ours:
                    for handle in list(self.live):
                        handle.free()
                    self._give_back()
            except HarnessError as error:
                log.debug("not everything was given back: %s", error.message)
            finally:
                self.link.close()


def _values(reply: Reply, stage: str) -> list[Value]:
    if isinstance(reply, Return):
        return reply.values
    size = len(reply.data) if isinstance(reply, CopyAck) else 0
    raise DialectError(f"{stage}: {size} bytes of a copy came where values were due", stage=stage)
