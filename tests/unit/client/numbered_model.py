# SPDX-License-Identifier: Apache-2.0
"""The device's half of numbered messages: a request runs once, its answer is kept until the next."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from minrpc.wire.framing import encode_frame
from minrpc.wire.session_layer import HEADER, MessageType, encode_message

_BODY = HEADER.size + 1


class NumberedModel:
    """The device's half of one session. answer: executes an RPC packet; returns None if it has no answer."""

    def __init__(self, answer: Callable[[bytes], bytes | None]) -> None:
        self._answer = answer
        self._sequence = 0
        self._kept: bytes | None = None

    @staticmethod
    def takes(kind: int) -> bool:
        """True if messages of this type are numbered."""
        return kind in (MessageType.NUMBERED, MessageType.PROBE)

    def receive(self, message: bytes) -> bytes:
        """The bytes that answer a message of the running session."""
        session_id, kind = HEADER.unpack_from(message)
        if kind == MessageType.PROBE:
            known = message[HEADER.size :] == bytes([self._sequence]) and self._kept is not None
            return self._again(session_id) if known else self._ask(session_id)
        return self._request(session_id, message)

    def _request(self, session_id: int, message: bytes) -> bytes:
        check = zlib.crc32(message[:-4]).to_bytes(4, "little")
        if len(message) < _BODY + len(check) or message[-4:] != check:
            return self._ask(session_id)
        sequence = message[HEADER.size]
        if sequence == (self._sequence + 1) & 0xFF:
            self._sequence = sequence
            self._kept = self._answer(message[_BODY:-4])
        elif sequence != self._sequence:
            return self._ask(session_id)
        return self._again(session_id)

    def _again(self, session_id: int) -> bytes:
        if self._kept is None:
            return b""
        message = encode_message(session_id, MessageType.NUMBERED, bytes([self._sequence]) + self._kept)
        return encode_frame(message + zlib.crc32(message).to_bytes(4, "little"))

    def _ask(self, session_id: int) -> bytes:
        return encode_frame(encode_message(session_id, MessageType.RESEND, bytes([self._sequence])))
