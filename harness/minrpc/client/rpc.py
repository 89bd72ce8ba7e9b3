# SPDX-License-Identifier: Apache-2.0
"""Requests and their answers over a session, and the facts about the device that hold during the session.

Unused handles are queued, from any thread and from the garbage collector too, and freed before the next
request.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import Protocol
from weakref import WeakSet, ref

from minrpc.client.conversation import Conversation, FunctionOnHost, MemoryOnHost
from minrpc.client.direct import Direct
from minrpc.client.info import DeviceCounter, DeviceInfo
from minrpc.client.layout import LAYOUT, STAGE, LayoutRequest, no_layout, told_memory
from minrpc.client.link import SessionLink
from minrpc.errors import (
    ClockError,
    ConfigurationError,
    DeadlineError,
    DialectError,
    HarnessError,
    LinkError,
    RemoteError,
    SessionTerminatedError,
    WrongBoardError,
)
from minrpc.names import same_board
from minrpc.timing import Overhead
from minrpc.wire.replies import (
    CopyAck,
    Question,
    RemoteException,
    Reply,
    Result,
    Return,
    decode_call_reply,
    decode_reply,
    is_question,
)
from minrpc.wire.requests import Request, RpcCode, Syscall, encode_call, encode_request, get_global_func
from minrpc.wire.values import Argument, Buffer, Dialect, Handle, MalformedError, Value

log = logging.getLogger("minrpc.client")

DEVICE_INFO = "minrpc.device_info"
RESEND = "minrpc.resend"

MAX_PACKET_SIZE = "tvm.rpc.server.GetCRTMaxPacketSize"

# Bytes that the length field does not count: the session header and the field itself.
_LENGTH = 8
_FRONT = 3 + _LENGTH

# Largest value of the length field if the device can't be asked: the smallest receive buffer in use has 2048
# bytes, and also holds the session header, the length field, and the rest of the session's start.
_CAUTIOUS_PACKET = 2048 - _FRONT - 7

# Seconds until a lost request for numbering, or its lost answer, is noticed: the device answers at once.
_QUESTION_S = 1.0

# The device's text when a function has changed the clock that times it: evaluator.c.
_NO_TIME = "time is not known"


class Live(Protocol):
    """An object that belongs to a session and is freed at its end."""

    @property
    def freed(self) -> bool: ...

    def free(self) -> None: ...


@dataclass
class Facts:
    """Facts about the device in the running session.

    dialect: None until the first allocation has shown it.
    max_packet: largest value of the length field, in bytes; None until asked.
    long_copies: the device takes a copy of any length in one packet, with a receive buffer of any size.
    functions: handles of global functions by name, 0 for missing functions.
    colon_names: True if it may know functions of its system library by their name after a colon.
    evaluator_arity: the number of arguments that its time evaluator takes; None until asked.
    overheads: the overhead of timing, by the function's form, `Overhead.native`, and further counters.
    direct: copies without the link.
    counters: the device's own counters, by name; None until asked.
    symbols: addresses of its shared libraries' functions by name, 0 for missing functions.
    empty_stack: bytes of the stack that an empty call needs, by the function's form.
    fakes: Python's functions behind those of loaded code, by the address of the latter.
    on_host: memory that only Python has; None for none.
    code: the modules of loaded code, by its address.
    thread_locals: offsets of its variables in the room of the firmware's threads, by its address.
    """

    dialect: Dialect | None = None
    max_packet: int | None = None
    long_copies: bool = False
    functions: dict[str, int] = field(default_factory=dict)
    colon_names: bool = True
    evaluator_arity: int | None = None
    overheads: dict[tuple[bool, tuple[str, ...]], Overhead] = field(default_factory=dict)
    direct: Direct = field(default_factory=lambda: Direct(None))
    counters: Mapping[str, DeviceCounter] | None = None
    symbols: dict[str, int] = field(default_factory=dict)
    empty_stack: dict[bool, int] = field(default_factory=dict)
    fakes: dict[int, FunctionOnHost] = field(default_factory=dict)
    on_host: MemoryOnHost | None = None
    code: dict[int, ref[Live]] = field(default_factory=dict)
    thread_locals: dict[int, range] = field(default_factory=dict)

    @property
    def loaded(self) -> set[int]:
        """Addresses of the code that is still loaded."""
        return {base for base, made in self.code.items() if (module := made()) and not module.freed}


class RpcClient:
    """All requests of one client. Operations of several requests hold `lock`.

    live: the objects on the device that are still referenced.
    conversation: with the function that waits for Python's answer; None if no function waits.
    layout: places of arrays and code in each session; None for the firmware's own places.

    session_timeout_s, call_timeout_s: limits in seconds as `Deadline` charges them.
    direct: copy arrays through memory that the device's owner shares with it, not over the link.
    resend: number requests if the device supports it, so that lost messages are sent again.
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
        self.session_timeout_s = session_timeout_s
        self.resend = resend
        self.layout: LayoutRequest | None = None
        self.live: WeakSet[Live] = WeakSet()
        self._unused: deque[tuple[int, Syscall]] = deque()
        self.conversation: Conversation | None = None

    @property
    def direct(self) -> bool:
        """True if arrays may be copied through shared memory; can be set."""
        return self.facts.direct.usable

    @direct.setter
    def direct(self, enabled: bool) -> None:
        self._direct = self.facts.direct.enabled = enabled

    @property
    def generation(self) -> int:
        """The number of the running session; handles of other sessions are invalid."""
        return self.link.generation

    @property
    def idle(self) -> bool:
        """True if the next request can be sent at once: a session runs and no handle waits to be freed."""
        return self.link.usable and not self._unused and self.conversation is None

    @property
    def dialect(self) -> Dialect:
        """The dialect in use. It makes no difference until a tensor is sent."""
        return self.facts.dialect or Dialect.V0_8_0

    @property
    def ours(self) -> bool:
        """True if the device runs this project's runtime."""
        return self.global_function(DEVICE_INFO) != 0

    def device_info(self, timeout_s: float | None = None) -> DeviceInfo:
        """The device's description of itself. Raises DialectError if it lacks this project's runtime."""
        handle = self.global_function(DEVICE_INFO, timeout_s)
        if not handle:
            raise DialectError(f"the device has no {DEVICE_INFO}: it does not run this project's runtime")
        answer = self.call(handle, (), "read the device's info", timeout_s)
        return DeviceInfo.parse(answer if isinstance(answer, bytes) else b"")

    def max_packet(self) -> int:
        """Largest length field that the device has room for, in bytes. Asked once per session."""
        if self.facts.max_packet is None:
            self.facts.max_packet = self._ask_max_packet()
        return self.facts.max_packet - self.link.extra

    def _ask_max_packet(self) -> int:
        if self.ours:  # The device gives TVM's clients a smaller limit: their own limit for answers.
            info = self.device_info()
            self.facts.long_copies = "streaming" in info.options
            return info.max_packet - _FRONT
        handle = self.global_function(MAX_PACKET_SIZE)
        size = self.call(handle, (), "ask for the packet size") if handle else _CAUTIOUS_PACKET
        if not isinstance(size, int):
            raise DialectError(f"{MAX_PACKET_SIZE} answered {size!r}, which is no number")
        return size

    def _require_room(self, packet: bytes, stage: str) -> None:
        """Raise ValueError when the device has no room for the packet: some devices would hang for good."""
        size = len(packet) - _LENGTH
        if size > _CAUTIOUS_PACKET - self.link.extra and size > self.max_packet():
            raise ValueError(
                f"{stage}: a request of {size} bytes, the device takes {self.max_packet()}; "
                "send large data as arrays"
            )

    def ready(self) -> None:
        """Make sure of a session, and free unused handles. Raises as `SessionLink.start` does, and
        ConfigurationError while a function waits for Python's answer."""
        with self.lock:
            self._require_free()
            if not self.link.usable:
                self._start()
            if self._unused:
                self._give_back()

    def ready_for_memory(self) -> None:
        """Does the same as `ready`, or nothing while a function waits for Python: its stub reaches memory."""
        if self.conversation is None:
            self.ready()

    def restart(self) -> None:
        """Start a new session in any case: objects that an earlier session left on the device are freed."""
        with self.lock:
            self._start()

    def _start(self) -> None:
        """Start a session, and lay out the memory."""
        self._start_session()
        if self.layout is not None and not self.lay_out(self.layout):
            raise DialectError(
                "arrays and code can't be placed as requested: functions of the firmware keep memory there",
                stage=STAGE,
                next_step="device.relayout() gives the firmware's own layout",
            )

    def lay_out(self, places: LayoutRequest) -> bool:
        """Lay out the device's memory by `places`; False, with no change, if live blocks are in the way.

        Raises ConfigurationError if the device has no such memory, or can't change its layout.
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
        """Go on over another link, on another device: the objects of earlier sessions are gone."""
        with self.lock:
            before, self.link = self.link, link
            link.generation = before.generation
            self.facts = self._new_facts()
            before.close()

    def _start_session(self) -> None:
        """Start a session.

        Some devices have less room for its first request. The first request is always small: a large request
        follows a request for a function or for memory.
        """
        if self.resend:
            self._start_numbered()
            return
        self.link.start(self.session_timeout_s)
        self.facts = self._new_facts()
        self._check_board()

    def _check_board(self) -> None:
        """Raise WrongBoardError if another board was named than the device says it is."""
        named = self.link.owner.names_of_board()
        if not named or not self.ours:
            return
        told = self.device_info().board
        if told and not any(same_board(told, name) for name in named):
            raise WrongBoardError(
                f"{self.link.name} is {told}, not {named[0]}",
                stage="session",
                next_step=f"name its platform: --platform {told}; or name the port of {named[0]}",
            )

    def _new_facts(self) -> Facts:
        return Facts(direct=Direct(self.link.owner.memory, self._direct))

    def _start_numbered(self) -> None:
        """Start a session, with numbered requests if the device has them.

        If the link damages the request for numbering, the session is started again, until its time is up.
        """
        deadline = self.link.deadline("session", self.session_timeout_s)
        while True:
            self.link.start(deadline.remaining())
            self.facts = self._new_facts()
            try:
                if self.find_global(RESEND, _QUESTION_S):
                    self.link.number_requests()
                self._check_board()
                return
            except (DeadlineError, LinkError, SessionTerminatedError):
                if deadline.expired():
                    raise

    def release(self, generation: int, request: Syscall | None) -> None:
        """Queue the request that frees a handle. Sends nothing and takes no lock."""
        if request is not None:
            self._unused.append((generation, request))

    def _require_free(self) -> None:
        if self.conversation is not None:
            raise self.conversation.refusal()

    def call(
        self,
        handle: int,
        args: Sequence[Argument],
        stage: str,
        timeout_s: float | None = None,
        *,
        timed: bool = False,
        probing: bool = False,
    ) -> Result:
        """Call a function. Raises RemoteError with the device's text when it fails.

        timed: refuse questions to Python, whose time is not the function's.
        probing: the function looks for parts of the device; accesses to missing parts are no error.
        """
        dialect = self.facts.dialect or Dialect.V0_8_0
        packet = encode_call(handle, args, dialect)
        with self.lock:
            if len(packet) > _CAUTIOUS_PACKET:
                self._require_room(packet, stage)
            self._require_free()
            try:
                body = self.link.request(packet, stage, timeout_s or self.call_timeout_s)
                if is_question(body):
                    body = self._converse(body, stage, timed=timed)
            finally:  # The next call does not answer for this call's accesses.
                stray = self.link.owner.stray_accesses()
        try:
            result = decode_call_reply(body, dialect)
        except MalformedError as error:
            raise DialectError(f"{stage}: the answer can't be read: {error}", stage=stage) from error
        if isinstance(result, RemoteException):
            raise self._remote_error(result, stage, stray)
        if stray is not None and not probing:
            raise stray.add_context(stage=stage)
        return result

    def _converse(self, body: Buffer, stage: str, *, timed: bool) -> Buffer:
        """Answer the running function's questions; its own reply. Python's time is not charged.

        Raises the Python function's error, after the device has ended the call.
        """
        while is_question(body):
            facts = self.facts
            self.conversation = Conversation(self.link, body, stage, facts.fakes, on_host=facts.on_host)
            try:
                body = self.conversation.answer(timed=timed)
            finally:
                self.conversation = None
        return body

    def global_function(self, name: str, timeout_s: float | None = None) -> int:
        """The handle of a global function, 0 when there is none. Asked once per session."""
        with self.lock:
            if name not in self.facts.functions:
                self.facts.functions[name] = self.find_global(name, timeout_s)
            return self.facts.functions[name]

    def find_global(self, name: str, timeout_s: float | None = None) -> int:
        """`global_function` without the cache: the caller owns the handle and frees it."""
        try:
            handle = self.syscall(get_global_func(name), f"look up {name}", timeout_s)
        except RemoteError:
            return 0  # The oldest devices answer an unknown name with an error.
        return handle.value if isinstance(handle, Handle) else 0

    def library_function(self, name: str) -> int:
        """The handle of a function of the system library in one request, which this project's devices know.

        0 if the device does not know the request, or has no such function.
        """
        if not self.facts.colon_names:
            return 0
        handle = self.find_global(f":{name}")
        if not handle:
            self.facts.colon_names = self.ours
        return handle

    def syscall(self, request: Request, stage: str, timeout_s: float | None = None) -> Value:
        """Send a request other than a call or CopyFromRemote; returns its value."""
        match request:
            case Syscall(RpcCode.DEV_FREE_DATA, (_, Handle(address))):
                self.facts.direct.freed(address)
        return self.syscall_packet(encode_request(request, self.dialect), stage, timeout_s)

    def syscall_packet(
        self, packet: bytes, stage: str, timeout_s: float | None = None, front: int = 0
    ) -> Value:
        """Does the same as `syscall`, for an encoded request; `front` as in `SessionLink.request`."""
        values = _values(self.exchange(packet, stage, timeout_s, front), stage)
        if len(values) != 1:
            raise DialectError(f"{stage}: {len(values)} values came back instead of one value", stage=stage)
        return values[0]

    def exchange(self, packet: bytes, stage: str, timeout_s: float | None = None, front: int = 0) -> Reply:
        """Send a packet and return its answer. Raises RemoteError for an exception, and the link's errors."""
        with self.lock:
            self._require_free()
            if not front:
                self._require_room(packet, stage)
            body = self.link.request(packet, stage, timeout_s or self.call_timeout_s, front)
            stray = self.link.owner.stray_accesses()
        try:
            reply = decode_reply(body, self.dialect)
        except MalformedError as error:
            raise DialectError(f"{stage}: the answer can't be read: {error}", stage=stage) from error
        if isinstance(reply, RemoteException):
            raise self._remote_error(reply, stage, stray)
        if stray is not None:
            raise stray.add_context(stage=stage)
        return reply

    def _remote_error(
        self, exception: RemoteException, stage: str, stray: HarnessError | None
    ) -> RemoteError:
        text = exception.text or "the device gave no reason"
        kind = ClockError if _NO_TIME in text else RemoteError
        error = kind(text, stage=stage, console_tail=self.link.console_text())
        error.details += () if stray is None else (stray.message, *stray.details)
        return error

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
        """Free all objects, unless the end of the session does, and close the link."""
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
    size = len(reply.data) if isinstance(reply, CopyAck | Question) else 0
    raise DialectError(f"{stage}: {size} bytes of a copy came where values were due", stage=stage)
