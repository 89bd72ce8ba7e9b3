# SPDX-License-Identifier: Apache-2.0
"""Withholds from a client the answers that a device still sends to the previous client.

Clients that share a link come one after another, and a device answers requests in their order. So everything
that the device sends before it answers a session start of the current client belongs to earlier clients. Such
a message would do harm: TVM's clients wait for ever after a message of another session.

Sans I/O: `SessionGate` sees the bytes of both directions, and returns those that the client may read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from minrpc.wire.framing import START, Deframer, Frame, encode_frame
from minrpc.wire.session_layer import HEADER, NO_SESSION_ID, MessageType

# Length of the longest answer to a start, with every byte escaped and the `fe` before it.
_LONGEST_REPLY: Final = 32
# Unanswered starts are forgotten after a while: a client that hears nothing sends a start every few seconds.
_MOST_STARTS: Final = 256


class SessionGate:
    """Opens when the device answers a session start of the current client; closes for each new client.

    While the gate is closed, only messages without a session pass: the device's `terminate` at boot, and
    logs.
    """

    def __init__(self) -> None:
        self._requests = Deframer()
        self._answers = Deframer()
        # Starts without an answer, oldest first: the nonce, and the number of the client.
        self._starts: deque[tuple[int, int]] = deque(maxlen=_MOST_STARTS)
        self._client = 0
        self._open = False

    def new_client(self) -> None:
        """Notes another client: earlier requests are not its own."""
        self._client += 1
        self._open = False
        self._answers = Deframer()

    def from_client(self, data: bytes) -> None:
        """Notes the next bytes that go to the device."""
        for event in self._requests.feed(data):
            if isinstance(event, Frame) and len(event.payload) >= HEADER.size:
                session_id, kind = HEADER.unpack_from(event.payload)
                if kind == MessageType.START_INIT:
                    self._starts.append((session_id & 0xFF, self._client))

    def from_device(self, data: bytes) -> bytes:
        """The part of the device's next bytes that the current client may read."""
        if self._open and not self._starts:
            return data
        passed = []
        for piece in _pieces(data):
            answers = [event.payload for event in self._answers.feed(piece) if isinstance(event, Frame)]
            opened = any(self._answers_own_start(payload) for payload in answers)
            if self._open:
                passed.append(piece)
            else:
                passed += [encode_frame(payload) for payload in answers if opened or _of_no_session(payload)]
            self._open |= opened
        return b"".join(passed)

    def _answers_own_start(self, payload: bytes) -> bool:
        """True if `payload` answers the current client's session start; forgets starts sent before it."""
        if len(payload) < HEADER.size:
            return False
        session_id, kind = HEADER.unpack_from(payload)
        nonces = [nonce for nonce, _ in self._starts]
        if kind != MessageType.START_REPLY or session_id & 0xFF not in nonces:
            return False
        client = -1
        for _ in range(nonces.index(session_id & 0xFF) + 1):
            client = self._starts.popleft()[1]
        return client == self._client


def _pieces(data: bytes) -> Iterator[bytes]:
    """`data`, cut so that the answer to a start ends a piece: the bytes after it are the client's.

    An answer is short, so the first bytes of each frame, and of `data`, are separate pieces.
    """
    position = 0
    while position < len(data):
        end = data.find(START, position + 1)
        end = len(data) if end < 0 else end
        singles = min(end, position + _LONGEST_REPLY)
        for at in range(position, singles):
            yield data[at : at + 1]
        if singles < end:
            yield data[singles:end]
        position = end


def _of_no_session(payload: bytes) -> bool:
    if len(payload) < HEADER.size:
        return False
    session_id, kind = HEADER.unpack_from(payload)
    return session_id == NO_SESSION_ID and kind in (MessageType.TERMINATE, MessageType.LOG)
