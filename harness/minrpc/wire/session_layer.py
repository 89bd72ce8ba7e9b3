# SPDX-License-Identifier: Apache-2.0
"""The client's side of a session: the handshake, and messages that carry the session's id.

    u16 session id | u8 type | body           one message is the payload of one frame

The id is the client's nonce in the low byte and the device's nonce in the high byte. The client opens with
`terminate` and `start-session-init`; the device's `start-session-reply` completes the handshake.

`ClientSession` holds no socket: `start`, `encode` and `terminate` return the bytes to send, `receive` takes
the bytes that came. Messages of other sessions are reported and otherwise ignored, so an answer that comes
after its caller gave up can never be taken for the answer to a later call.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import Enum, IntEnum
from struct import Struct
from typing import NamedTuple

from minrpc.wire.framing import CrcMismatch, Deframer, Frame, FramingError, Noise, encode_frame

PROTOCOL_VERSION = 1
NO_SESSION_ID = 0
HEADER = Struct("<HB")
_SEQUENCE = 1
_CHECK = Struct("<I")
# Number of bytes by which a numbered message is longer than a normal message.
NUMBERED_EXTRA = _SEQUENCE + _CHECK.size
_INIT_BODY = bytes([PROTOCOL_VERSION])


class MessageType(IntEnum):
    """The third byte of a message."""

    START_INIT = 0x00
    START_REPLY = 0x01
    TERMINATE = 0x02
    LOG = 0x03
    NORMAL = 0x10

    # This project's own, for links that lose bytes; sent only to devices that have `minrpc.resend`.
    NUMBERED = 0x11
    """u8 sequence, RPC packet, u32 CRC-32 of all before it. A request runs once, however often it arrives."""
    RESEND = 0x12
    """Body: u8 sequence. Sent by the device, which names the last request that arrived whole. The next
    request must be sent again."""
    PROBE = 0x13
    """Body: u8 sequence. Sent by the client, which wants that reply again, or RESEND if there is none."""

    # This project's own too; sent only to devices whose info has version 3 or later.
    CHECKED = 0x14
    """u32 CRC-32 of the RPC packet up to the data of its CopyToRemote, RPC packet. Used for a copy that is
    longer than the device's receive buffer: the device writes it before the frame's CRC is known."""


class SessionState(Enum):
    """The client's state of the session."""

    NO_SESSION = "no session"
    START_SENT = "start sent, not answered"
    ESTABLISHED = "established"


class SessionStateError(RuntimeError):
    """The caller sent a packet while no session is established."""


class Established(NamedTuple):
    """The device answered the start of the session."""

    session_id: int


class Terminated(NamedTuple):
    """The device sent `terminate`, as it does at boot. was_established: True if this session has ended by
    it."""

    was_established: bool


class Packet(NamedTuple):
    """An RPC packet of the running session."""

    body: memoryview


class Numbered(NamedTuple):
    """The answer to the numbered request `sequence`."""

    sequence: int
    body: memoryview


class Resend(NamedTuple):
    """The device asks for the message after the request `sequence`."""

    sequence: int


class Log(NamedTuple):
    """A line that the device logs, without its end of line."""

    text: str


class Ignored(NamedTuple):
    """A message that means nothing in this state, and the reason."""

    message: bytes
    reason: str


SessionEvent = Established | Terminated | Packet | Numbered | Resend | Log | Ignored | Noise | FramingError


def encode_message(session_id: int, kind: MessageType, body: bytes = b"") -> bytes:
    """One message: the payload of one frame."""
    return HEADER.pack(session_id, kind) + body


def next_nonce(nonce: int) -> int:
    """The nonce after `nonce` as TVM's code derives it; 1..255, because 0 stands for none."""
    value = (((nonce << 5) | (nonce >> 5)) + 1) & 0xFF
    return value or 1


class ClientSession:
    """One client's session over one link.

    new_nonce: gives the nonce of each start of a session, 1..255. Successive starts should differ.
    deframer: the reader of the link; its counters show the quality of the link.
    """

    def __init__(self, new_nonce: Callable[[], int], deframer: Deframer | None = None) -> None:
        self.deframer = deframer or Deframer()
        self.state = SessionState.NO_SESSION
        self.session_id = NO_SESSION_ID
        self._new_nonce = new_nonce
        self._nonce = 0
        self._fresh = True
        self._header = b""

    def start(self) -> bytes:
        """Bytes that start or restart a session: `terminate`, and the init with a new nonce."""
        self._nonce = self._new_nonce()
        if not 1 <= self._nonce <= 255:
            raise ValueError(f"a nonce is 1..255, not {self._nonce}")
        goodbye = self.terminate()
        self.state = SessionState.START_SENT
        return goodbye + encode_frame(encode_message(self._nonce, MessageType.START_INIT, _INIT_BODY))

    def terminate(self) -> bytes:
        """Bytes that end the session in any state."""
        self.state = SessionState.NO_SESSION
        self.session_id = NO_SESSION_ID
        first, self._fresh = self._fresh, False
        return encode_frame(encode_message(NO_SESSION_ID, MessageType.TERMINATE), first=first)

    def encode(self, packet: bytes) -> bytes:
        """Bytes that carry one RPC packet. Raises SessionStateError when no session is established."""
        if self.state is not SessionState.ESTABLISHED:
            self._require_established()
        return encode_frame(self._header + packet)

    def encode_checked(self, packet: bytes, front: int) -> bytes:
        """Bytes that carry a CopyToRemote whose data begins at `front`. Raises as `encode` does."""
        self._require_established()
        check = _CHECK.pack(zlib.crc32(memoryview(packet)[:front]))
        return encode_frame(encode_message(self.session_id, MessageType.CHECKED, check + packet))

    def encode_numbered(self, sequence: int, packet: bytes) -> bytes:
        """Bytes that carry an RPC packet that may be sent again. Raises as `encode` does."""
        self._require_established()
        message = encode_message(self.session_id, MessageType.NUMBERED, bytes([sequence]) + packet)
        return encode_frame(message + _CHECK.pack(zlib.crc32(message)))

    def probe(self, sequence: int) -> bytes:
        """Bytes that ask for the answer to `sequence`. Raises as `encode` does."""
        self._require_established()
        return encode_frame(encode_message(self.session_id, MessageType.PROBE, bytes([sequence])))

    def _require_established(self) -> None:
        if self.state is not SessionState.ESTABLISHED:
            raise SessionStateError(f"can't send a packet: {self.state.value}")

    def write_failed(self) -> None:
        """A write was cut short: the next frame begins with the lone `fe` again."""
        self._fresh = True

    def receive_packet(self, data: bytes) -> bytes | list[SessionEvent]:
        """Receives bytes, but returns the packet itself if they are exactly one packet of the running
        session."""
        payload = self.deframer.whole(data)
        if payload is None:
            return self.receive(data)
        if self.state is SessionState.ESTABLISHED and payload.startswith(self._header):
            return payload[HEADER.size :]
        return [self._message(payload)]

    def receive(self, data: bytes) -> list[SessionEvent]:
        """The events that the next bytes of the link complete."""
        return [
            self._message(event.payload) if isinstance(event, Frame) else event
            for event in self.deframer.feed(data)
        ]

    def _message(self, payload: bytes) -> SessionEvent:
        if payload.startswith(self._header) and self.state is SessionState.ESTABLISHED:
            return Packet(memoryview(payload)[HEADER.size :])
        if len(payload) < HEADER.size:
            return Ignored(payload, "shorter than a session header")
        session_id, kind = HEADER.unpack_from(payload)
        body = payload[HEADER.size :]
        if kind == MessageType.START_REPLY:
            return self._start_reply(payload, session_id, body)
        if kind == MessageType.TERMINATE:
            return self._terminated()
        if session_id == self.session_id and self.state is SessionState.ESTABLISHED:
            if kind == MessageType.NUMBERED:
                return _numbered(payload)
            if kind == MessageType.RESEND and len(body) == _SEQUENCE:
                return Resend(body[0])
        if kind == MessageType.LOG and session_id in (NO_SESSION_ID, self.session_id):
            return Log(body.decode("utf-8", "backslashreplace").rstrip("\r\n"))
        if kind in (MessageType.NORMAL, MessageType.LOG):
            return Ignored(payload, f"of session {session_id:04x}, the running one is {self.session_id:04x}")
        return Ignored(payload, f"type {kind:#04x} means nothing to a client")

    def _start_reply(self, payload: bytes, session_id: int, body: bytes) -> SessionEvent:
        if session_id & 0xFF != self._nonce or session_id >> 8 == 0:
            return Ignored(payload, "answers another start of a session")
        if self.state is SessionState.ESTABLISHED:
            return self._second_reply(payload, session_id)
        if self.state is not SessionState.START_SENT:
            return Ignored(payload, "answers a start of a session that was given up")
        if body != _INIT_BODY:
            return Ignored(payload, f"speaks protocol version {body.hex() or 'none'}, not {PROTOCOL_VERSION}")
        self.state = SessionState.ESTABLISHED
        self.session_id = session_id
        self._header = HEADER.pack(session_id, MessageType.NORMAL)
        return Established(session_id)

    def _second_reply(self, payload: bytes, session_id: int) -> SessionEvent:
        """The link doubled our start; if the device's nonce is another, the first session is over."""
        if session_id == self.session_id:
            return Ignored(payload, "repeats the answer to the start of this session")
        return self._terminated()

    def _terminated(self) -> Terminated:
        was_established = self.state is SessionState.ESTABLISHED
        if was_established:
            self.state = SessionState.NO_SESSION
            self.session_id = NO_SESSION_ID
        return Terminated(was_established)


def _numbered(payload: bytes) -> SessionEvent:
    """A numbered message. If its own check fails, its frame's CRC was right only by chance."""
    body = HEADER.size + _SEQUENCE
    end = len(payload) - _CHECK.size
    if end < body:
        return Ignored(payload, "shorter than a numbered message")
    computed = zlib.crc32(memoryview(payload)[:end])
    (received,) = _CHECK.unpack_from(payload, end)
    if computed != received:
        return CrcMismatch(payload, computed, received)
    return Numbered(payload[HEADER.size], memoryview(payload)[body:end])
