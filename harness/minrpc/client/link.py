# SPDX-License-Identifier: Apache-2.0
"""One client session over a transport: starts it, sends a request, waits for its answer.

Nothing is sent unless a caller asks, and at most one request is under way. When a request ends without
its answer, the session is given up: the next session has a new id, so that a late answer is recognized.
"""

from __future__ import annotations

import logging
import secrets
import select
import shlex
from collections import deque
from collections.abc import Callable
from dataclasses import asdict

from minrpc.client import resend
from minrpc.client.console import ConsoleTail
from minrpc.client.lent_transport import LentTransport
from minrpc.client.owner import ASKING, Owner, Unowned
from minrpc.errors import (
    ConfigurationError,
    DeadlineError,
    EmulatorExitedError,
    HarnessError,
    LinkClosedError,
    LinkError,
    NothingHeardError,
    SessionError,
    SessionTerminatedError,
)
from minrpc.host.deadline import Deadline, read_before, write_before
from minrpc.host.forks import stay_own
from minrpc.transport import ParentsLink, SerialTransport, Transport, has_rate
from minrpc.wire.framing import CrcMismatch, FramingCounters, InvalidEscape, Noise, ShortPacket
from minrpc.wire.heard import describe
from minrpc.wire.session_layer import (
    HEADER,
    NUMBERED_EXTRA,
    ClientSession,
    Established,
    Ignored,
    Log,
    MessageType,
    Numbered,
    Packet,
    SessionEvent,
    SessionState,
    Terminated,
)
from minrpc.wire.values import Buffer

wire_log = logging.getLogger("minrpc.wire")

# Seconds until an unanswered start is sent again; the last value repeats. They grow, so that a slow device's
# answer falls into one of the later waits.
_RETRY_S = (0.5, 1.0, 2.0, 4.0, 8.0)
# The same waits after the device has reported its boot.
_AFTER_BOOT_S = 0.1
_MORE_TIME = (
    "look at the console; if it is only slow: function.with_timeout(SECONDS), device.call_timeout_s, or "
    "call_timeout_s of open_device"
)
# Prefix of the name of a stage in which a function runs.
_CALL = "call "
# The last words of a device that can not restart itself.
_HALTED = "halted: it can't restart"
_TAIL_CHUNKS = 8
_TAIL_BYTES = 64


class RandomNonces:
    """Gives 1..254; 0xff would be escaped in each frame of the session.

    Never the same twice in a row: otherwise the answer to an earlier start would be taken for the answer to a
    later start.
    """

    def __init__(self) -> None:
        self._last = 0

    def __call__(self) -> int:
        self._last = (self._last + secrets.randbelow(253)) % 254 + 1
        return self._last


class SessionLink:
    """The client's session on one transport.

    owner: knowledge of the device beside its link. total: a deadline for all requests together.
    generation: grows with each session; handles belong to one of them.
    numbered: the numbered requests, sent again when lost; None unless the device agreed in this session.
    resend_counters: counts of numbered requests since the link was opened.
    why_ended: why the last session ended, in lines; empty if no request failed.
    """

    def __init__(
        self,
        transport: Transport,
        owner: Owner | None = None,
        *,
        total: Deadline | None = None,
        keep_open: bool = False,
        new_nonce: Callable[[], int] | None = None,
    ) -> None:
        self.generation = 0
        self.numbered: resend.NumberedRequests | None = None
        self.resend_counters = resend.ResendCounters()
        self.console = ConsoleTail()
        self.transport = transport
        self.owner: Owner = owner or Unowned()
        self.total = total
        self._keep_open = keep_open
        self._closed = False
        self._session = ClientSession(new_nonce or RandomNonces())
        self._waiting = False
        self._deadline = Deadline("session", 0.0)
        self.why_ended: tuple[str, ...] = ()
        self._why: tuple[str, ...] = ()
        self._overdue = ""
        self._lent_to = ""
        self._last_call = ""
        self._before_session = 0
        self._tail: deque[bytes] = deque(maxlen=_TAIL_CHUNKS)
        self._starts: list[bytes] = []
        stay_own(self)

    @property
    def name(self) -> str:
        """The transport's name."""
        return self.transport.name

    @property
    def counters(self) -> FramingCounters:
        """Frames and damage that this side's reader has counted."""
        return self._session.deframer.counters

    @property
    def usable(self) -> bool:
        """True if a session is established and all its requests were answered."""
        return self._session.state is SessionState.ESTABLISHED and not self._waiting

    def console_text(self) -> str | None:
        """The device's output, on its own console and over this link; None when there is neither."""
        beside = self.owner.console_text
        if beside is None and not self.console.text:
            return None
        return (beside or "") + self.console.text

    def wait(self, wait_s: float) -> bool:
        """Wait up to `wait_s` seconds for bytes, and read none; False at once if the link can't do that."""
        number = getattr(self.transport, "fileno", lambda: -1)()
        if number >= 0:
            readable = select.poll()
            readable.register(number, select.POLLIN)
            readable.poll(1000.0 * wait_s)
        return number >= 0

    def listen(self, wait_s: float) -> None:
        """Take the device's unrequested output: logs, text, notices of a restart.

        Raises ConfigurationError while the link is lent.
        """
        self._require_own()
        for event in self._session.receive(self.transport.read(wait_s)):
            self._note(event)

    def start(self, budget_s: float) -> None:
        """Start a session, or restart it.

        Raises NothingHeardError when no byte came, SessionError when bytes came but no answer,
        ConfigurationError while the link is lent.
        """
        self._require_own()
        if self._closed:  # The link may go on for another client, whose session this would end.
            step = "open the device again, and load libraries again"
            error = LinkClosedError(f"{self.transport.name}: this device was closed", next_step=step)
            error.by_us = True
            raise error
        deadline = self.deadline("session", budget_s)
        self._waiting = False
        self.numbered = None
        self._tail.clear()
        self._starts.clear()
        try:
            self.go_on(self.owner.link_for_session(deadline))
            self._handshake(deadline)
        except HarnessError as error:
            if self._overdue and isinstance(error, NothingHeardError):
                error.details += (f"'{self._overdue}' has not answered: it may still run",)
                error.next_step = "reset the device, or open it again"
            cause = self._explained(error, "session")
            if isinstance(cause, EmulatorExitedError) and self.generation:  # It has worked before.
                self._start_again(cause)
            if cause is error:
                raise
            raise cause from error
        self._before_session = self.console.since(0)[1]
        self.owner.session_began()
        self._overdue = ""
        self.why_ended, self._why = self._why, ()
        self.generation += 1

    def go_on(self, link: Transport | None) -> None:
        """Go on over a link that was opened again; None if the link is the same. A lent link stays lent."""
        if isinstance(self.transport, LentTransport) and link is not None:
            self.transport.inner = link
        else:
            self.transport = link or self.transport

    def leave_to(self, process: int) -> None:
        """Does the same as `Owner.leave_to` of forks."""
        self._waiting = True
        self.go_on(ParentsLink(self.transport, process))

    def lend(self, to: str) -> None:
        """Lends the link to another client: until `take_back` no session can be started from here."""
        self._lent_to = to
        self._waiting = True

    def take_back(self) -> None:
        """Ends `lend`; the next request needs a new session."""
        self._lent_to = ""

    def _require_own(self) -> None:
        if self._lent_to:
            raise ConfigurationError(
                f"{self.name} is lent to {self._lent_to}", next_step="use that, or wait for its end"
            )

    def request(
        self,
        packet: bytes,
        stage: str,
        budget_s: float,
        front: int = 0,
        whole_s: float | None = None,
        place: Callable[[], str] | None = None,
    ) -> Buffer:
        """Send an RPC packet and return the packet that answers it.

        front: for a copy longer than the device's receive buffer, the bytes before its data.
        whole_s: the limit of the call that this request continues; `budget_s` is the part that is left.
        place: gives the place where the function that this request answers has asked.

        Raises SessionTerminatedError, LinkError when the answer came damaged, DeadlineError, and the errors
        of the transport and of the owner's check.
        """
        deadline = self._deadline = Deadline(stage, budget_s, self.owner.clock, self.total, whole_s)
        self._waiting = True
        damaged = self._session.deframer.counters.errors
        try:
            if budget_s <= 0.0:  # Each answer of a device that asks without end comes in time.
                overdue = deadline.error(ASKING)
                overdue.wall_s = overdue.cpu_s = None
                raise overdue
            reply = (
                self._numbered(packet, deadline) if self.numbered else self._plain(packet, deadline, front)
            )
        except HarnessError as error:
            if isinstance(error, DeadlineError) and not error.limit:
                error.limit, error.next_step = "call", _MORE_TIME
            if isinstance(error, DeadlineError) and place is not None:
                error.details = (place(),)
            failure = self._explained(self._blame(error, damaged), stage)
            self._give_up(failure, stage)
            if failure is error:
                raise
            raise failure from error
        except BaseException:  # Such as Ctrl-C: nobody waits for the function any more.
            self._give_up(DeadlineError("interrupted"), stage)
            raise
        self._waiting = False
        if stage.startswith(_CALL):
            self._last_call = stage
        return reply

    @property
    def whole_s(self) -> float:
        """The limit of the last request's call, in seconds."""
        return self._deadline.whole_s

    @property
    def left_s(self) -> float:
        """The part of the last request's budget that is not used, in seconds."""
        return self._deadline.remaining()

    @property
    def piece(self) -> int:
        """Largest number of bytes that a copy should carry."""
        return self.numbered.piece if self.numbered else 1 << 62

    @property
    def extra(self) -> int:
        """Number of bytes by which each message is longer than TVM's."""
        return NUMBERED_EXTRA if self.numbered else 0

    def number_requests(self) -> None:
        """Number requests until the session ends: the device has agreed."""
        self.numbered = resend.NumberedRequests(counters=self.resend_counters)

    def _plain(self, packet: bytes, deadline: Deadline, front: int) -> Buffer:
        session = self._session
        data = session.encode_checked(packet, front) if front else session.encode(packet)
        self._write(data, deadline)
        return self._await_reply(deadline)

    def _numbered(self, packet: bytes, deadline: Deadline) -> memoryview:
        assert self.numbered is not None

        def encode(sequence: int) -> bytes:
            return self._session.encode_numbered(sequence, packet)

        def write(data: bytes) -> None:
            self._write(data, deadline)

        def read(wait_s: float) -> list[SessionEvent] | None:
            return self._read_numbered(Deadline("answer", wait_s, self.owner.clock, deadline), deadline)

        return resend.run(self.numbered, encode, self._session.probe, write, read)

    def _read_numbered(self, attempt: Deadline, deadline: Deadline) -> list[SessionEvent] | None:
        """The next events; None when `attempt` ends before they come. Raises when `deadline` does."""
        try:
            events = self._read(attempt, "the answer")
        except DeadlineError:
            if deadline.expired():
                raise deadline.error("the answer") from None
            return None
        for event in events:
            self._note(event)
            if isinstance(event, Terminated):
                raise self._terminated_error()
        if events and not any(isinstance(event, Numbered) for event in events):
            deadline.check("the answer")
        return events

    def _terminated_error(self) -> SessionTerminatedError:
        return SessionTerminatedError(f"the device ended the session before it answered: {self._end()}")

    def _end(self) -> str:
        return "it halted" if self._halted() else "it restarted"

    def _halted(self) -> bool:
        return _HALTED in self.console.since(self._before_session)[0]

    def close(self) -> None:
        """End the session as far as the link still allows, and close the transport unless it was lent."""
        self._closed = True
        try:
            self.transport.write(self._session.terminate(), 1.0)
        except (DeadlineError, LinkClosedError) as error:
            wire_log.debug("the session was not ended: %s", error.message)
        finally:
            if not self._keep_open:
                self.transport.close()

    def deadline(self, stage: str, budget_s: float) -> Deadline:
        return Deadline(stage, budget_s, self.owner.clock, self.total)

    def _write(self, data: bytes, deadline: Deadline) -> None:
        if wire_log.isEnabledFor(logging.DEBUG):
            wire_log.debug("> %s", data.hex(" "))
        try:
            write_before(self.transport, data, deadline)
        except DeadlineError:
            self._session.write_failed()
            raise

    def _read(self, deadline: Deadline, waited_for: str) -> list[SessionEvent]:
        return self._session.receive(self._read_bytes(deadline, waited_for))

    def _read_bytes(self, deadline: Deadline, waited_for: str) -> bytes:
        data = read_before(self.transport, deadline, waited_for)
        if wire_log.isEnabledFor(logging.DEBUG):
            wire_log.debug("< %s", data.hex(" "))
        self._tail.append(data)
        return data

    def _await_reply(self, deadline: Deadline) -> Buffer:
        while True:
            reply: Buffer | None = None
            failure: HarnessError | None = None
            events = self._session.receive_packet(self._read_bytes(deadline, "the answer"))
            if isinstance(events, bytes):
                return events
            for event in events:
                if isinstance(event, Packet):
                    reply = reply or event.body
                else:
                    failure = failure or self._failure(event)
                    self._note(event)
            if reply is not None:
                return reply
            if failure is not None:
                raise failure
            if events:
                deadline.check("the answer")

    def _failure(self, event: SessionEvent) -> HarnessError | None:
        """The error that `event` means while an answer is awaited; None if it means none."""
        if isinstance(event, Terminated):
            return self._terminated_error()
        if isinstance(event, CrcMismatch | ShortPacket | InvalidEscape) and self._is_answer(event.payload):
            return self._link_error(f"the answer came damaged: {event}")
        return None

    def _is_answer(self, payload: bytes) -> bool:
        if len(payload) < HEADER.size:
            return False
        return bool(HEADER.unpack_from(payload) == (self._session.session_id, MessageType.NORMAL))

    def _note(self, event: SessionEvent) -> None:
        if isinstance(event, Log):
            self.console.log(event.text)
        elif isinstance(event, Noise):
            self.console.noise(event.data)
        elif isinstance(event, Terminated) and event.was_established:
            self._why = (f"the device ended it: {self._end()}",)
        elif not isinstance(event, Established | Terminated | Packet | Numbered):
            wire_log.info("%s", event.reason if isinstance(event, Ignored) else event)

    def _handshake(self, deadline: Deadline) -> None:
        attempt = 0
        while not self._start_or_reopen(deadline, _RETRY_S[min(attempt, len(_RETRY_S) - 1)]):
            attempt += 1
            if deadline.expired():
                raise self._unanswered(deadline)

    def _start_or_reopen(self, deadline: Deadline, wait_s: float) -> bool:
        """Tries a start; its owner may open a link again that closes before the first byte."""
        try:
            return self._try_start(deadline, wait_s)
        except LinkClosedError as error:
            if self._tail or error.by_us:
                raise
            self.go_on(self.owner.link_once_free(error, wait_s, deadline))
            return False

    def _try_start(self, deadline: Deadline, wait_s: float) -> bool:
        """Sends one start; returns False when it is time for the next."""
        self._starts.append(self._session.start())
        self._write(self._starts[-1], deadline)
        attempt = Deadline("session", wait_s, self.owner.clock, deadline)
        while True:
            try:
                events = self._read(attempt, "the answer to the start of a session")
            except DeadlineError:
                return False
            for event in events:
                self._note(event)
            if self._session.state is SessionState.ESTABLISHED:
                return True
            if any(isinstance(event, Terminated) for event in events):
                # The device has just booted: the start that was sent before is in its buffer, or lost.
                wait_s = min(_AFTER_BOOT_S, deadline.remaining() / 4)
                attempt = Deadline("session", wait_s, self.owner.clock, deadline)
            elif events and attempt.expired():
                return False

    def _unanswered(self, deadline: Deadline) -> HarnessError:
        passed = deadline.error("the answer to the start of a session")
        heard = describe(b"".join(self._tail), self._starts, *self._rate())
        kind = SessionError if self._tail else NothingHeardError
        message = f"{self.name}: {heard.message}"
        error = kind(message, details=[passed.message], next_step=heard.next_step)
        return error.add_context(waited_for=passed.waited_for, wall_s=passed.wall_s, cpu_s=passed.cpu_s)

    def _rate(self) -> tuple[str, int, int]:
        """The serial port, its baud rate and the framing errors that it has counted; none for other links."""
        target = self.owner.target
        port = target.serial_port if target is not None else None
        if target is None or port is None or not has_rate(port):
            return "", 0, 0
        link = self.transport.inner if isinstance(self.transport, LentTransport) else self.transport
        errors = link.framing_errors() if isinstance(link, SerialTransport) else 0
        return shlex.quote(port), target.platform.baud, errors

    def _link_error(self, message: str) -> LinkError:
        return LinkError(message, counts=self._counts())

    def _counts(self) -> dict[str, int]:
        return {name: count for name, count in asdict(self.counters).items() if count}

    def _blame(self, error: HarnessError, damaged: int) -> HarnessError:
        """Turns a passed deadline into a LinkError if frames were damaged since `damaged` was counted."""
        if not isinstance(error, DeadlineError) or self.counters.errors == damaged:
            return error
        blamed = self._link_error("no answer came, but damaged frames did")
        return blamed.add_context(waited_for=error.waited_for, wall_s=error.wall_s, cpu_s=error.cpu_s)

    def _give_up(self, failure: HarnessError, stage: str) -> None:
        """Has a device started again that has ended, or in which a function does not return."""
        self._overdue = stage if isinstance(failure, DeadlineError) else ""
        overdue = self._overdue and stage.startswith(_CALL)
        if isinstance(failure, EmulatorExitedError) or overdue or self._halted():
            self._start_again(failure)
        self._why = (f"it ended in '{stage}': {failure.message}",)

    def _start_again(self, failure: HarnessError) -> None:
        told = self.owner.start_again()
        failure.details += (told,) if told else ()

    def _explained(self, error: HarnessError, stage: str) -> HarnessError:
        """`error` with the stage, console and traffic; if the device is gone, the error that reports this."""
        # A device without a console sends its text over this link; its owner looks for it there.
        said, _ = self.console.since(self._before_session)
        cause = self.owner.diagnose(error.add_context(stage=stage, console_tail=self.console_text()), said)
        tail = b"".join(self._tail)[-_TAIL_BYTES:]
        cause.add_context(stage=stage, console_tail=self.console_text(), wire_tail=tail)
        if self.counters.errors and not isinstance(cause, LinkError):
            counted = ", ".join(f"{name} {count}" for name, count in self._counts().items())
            cause.details += (f"the link was damaged before: {counted}",)
        if cause.own_code and self._last_call:
            cause.details += (f"the last call that came back was {self._last_call.removeprefix(_CALL)}",)
        return cause
