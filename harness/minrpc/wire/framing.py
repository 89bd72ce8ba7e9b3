# SPDX-License-Identifier: Apache-2.0
"""Frames on a byte stream: start `ff fd`, length, payload, CRC, with every 0xff inside doubled.

    ff fd | u32 length, escaped | payload, escaped | u16 CRC, escaped        (little-endian)

The length counts the payload before escaping. The CRC (polynomial 0x1021, start 0xffff, most significant
bit first) covers the bytes as they travel, from `ff fd` to the end of the payload; a nop `ff fe` inside those
is covered too. An unescaped `ff fd` always starts a frame, after any bytes, so a reader can recover.

Nothing here reads a clock, a file or a port.
"""

from __future__ import annotations

import re
from binascii import crc_hqx
from dataclasses import dataclass
from enum import Enum
from struct import Struct
from typing import NamedTuple

START = b"\xff\xfd"
# Ends a dangling 0xff that a crashed sender left: `ff fe` is a nop, and `fe` between frames means nothing.
RESYNC = b"\xfe"

_CRC_START = 0xFFFF
_CRC_AFTER_START = crc_hqx(START, _CRC_START)
_LENGTH = Struct("<I")
_CRC = Struct("<H")
_OVERHEAD = len(START) + _LENGTH.size + _CRC.size
_FRONT = Struct("<2sI")

# The longest piece whose only escape is the literal 0xff. Possessive: no backtracking, linear in any input.
_PLAIN = re.compile(rb"(?:[^\xff]+|\xff\xff)*+")

_START_CODE, _NOP_CODE = 0xFD, 0xFE
_BETWEEN_FRAMES = b"\xfe\xff"


def encode_frame(payload: bytes, *, first: bool = False) -> bytes:
    """The bytes that carry `payload`. first: begin with a lone `fe`, for a writer that is new or was
    reset."""
    body = START + (_LENGTH.pack(len(payload)) + payload).replace(b"\xff", b"\xff\xff")
    crc = _CRC.pack(crc_hqx(body, _CRC_START)).replace(b"\xff", b"\xff\xff")
    return RESYNC + body + crc if first else body + crc


class Frame(NamedTuple):
    """A frame with the right CRC."""

    payload: bytes


class Noise(NamedTuple):
    """Bytes between frames, such as a boot banner. 0xfe and 0xff, which occur in no text, are left out."""

    data: bytes


class CrcMismatch(NamedTuple):
    """A complete frame whose CRC is wrong; `payload` holds the received bytes."""

    payload: bytes
    computed: int
    received: int

    def __str__(self) -> str:
        return (
            f"CRC of a frame of {len(self.payload)} bytes is {self.received:04x}, "
            f"its bytes give {self.computed:04x}"
        )


class ShortPacket(NamedTuple):
    """A new frame started inside this frame; `payload` holds the received bytes of this frame."""

    payload: bytes

    def __str__(self) -> str:
        return f"a frame was cut short after {len(self.payload)} bytes of payload"


class InvalidEscape(NamedTuple):
    """0xff inside a frame, followed by `code`, which no sender writes; `payload` holds its received bytes."""

    payload: bytes
    code: int

    def __str__(self) -> str:
        return f"invalid escape ff {self.code:02x} after {len(self.payload)} bytes of payload"


class OversizeFrame(NamedTuple):
    """A frame that announced more bytes than the reader takes."""

    length: int

    def __str__(self) -> str:
        return f"a frame announced {self.length} bytes, more than are taken"


FramingError = CrcMismatch | ShortPacket | InvalidEscape | OversizeFrame
FramingEvent = Frame | Noise | FramingError


@dataclass(slots=True)
class FramingCounters:
    """Events that a `Deframer` has seen since it was made. `noise_bytes` counts as `Noise` does."""

    frames: int = 0
    crc_errors: int = 0
    short_packets: int = 0
    invalid_escapes: int = 0
    oversize_frames: int = 0
    noise_bytes: int = 0

    @property
    def errors(self) -> int:
        """Damaged frames, of every kind."""
        return self.crc_errors + self.short_packets + self.invalid_escapes + self.oversize_frames


class _State(Enum):
    HUNT = "between frames"
    LENGTH = "length"
    PAYLOAD = "payload"
    CRC = "CRC"


class Deframer:
    """Turns bytes into events, in any chunking. Never raises, and finds the next good frame after any damage.

    max_payload: longest payload accepted, in bytes before escaping: a damaged length must not reserve memory.
    """

    def __init__(self, max_payload: int = 1 << 26) -> None:
        self.counters = FramingCounters()
        self._max_payload = max_payload
        self._carry = b""
        self._events: list[FramingEvent] = []
        self._state = _State.HUNT
        self._parts: list[bytes] = []
        self._payload = b""
        self._need = 0
        self._crc = 0

    def whole(self, data: bytes) -> bytes | None:
        """The payload, when `data` is exactly one undamaged frame without an escape, the usual case.

        None for other data, which is then not consumed, and the caller passes it to `feed`.
        """
        size = len(data)
        if (
            _OVERHEAD <= size <= self._max_payload + _OVERHEAD
            and self._state is _State.HUNT
            and not self._carry
            and _FRONT.unpack_from(data) == (START, size - _OVERHEAD)
            and data.find(b"\xff", len(START)) < 0
            and crc_hqx(data[len(START) : -_CRC.size], _CRC_AFTER_START) == data[-2] | data[-1] << 8
        ):
            self.counters.frames += 1
            return data[_FRONT.size : -_CRC.size]
        return None

    def feed(self, data: bytes) -> list[FramingEvent]:
        """The events that end within `data`, the next bytes of the stream."""
        if self._carry:
            data, self._carry = self._carry + data, b""
        events: list[FramingEvent] = []
        self._events = events
        position, end = 0, len(data)
        while position < end:
            if self._state is _State.HUNT:
                position = self._hunt(data, position)
            else:
                position = self._inside(data, position)
        return events

    def _hunt(self, data: bytes, position: int) -> int:
        start = data.find(START, position)
        if start < 0:
            if data.endswith(b"\xff"):
                self._carry = b"\xff"
            self._noise(data[position:])
            return len(data)
        if start > position:
            self._noise(data[position:start])
        return self._begin(data, start)

    def _noise(self, data: bytes) -> None:
        data = data.translate(None, _BETWEEN_FRAMES)
        if data:
            self.counters.noise_bytes += len(data)
            self._events.append(Noise(data))

    def _begin(self, data: bytes, start: int) -> int:
        """Starts a frame at `start`; a complete frame without an escape is consumed at once."""
        stop = self._end_of_plain_frame(data, start)
        if stop:
            body = data[start : stop - _CRC.size]
            payload = body[len(START) + _LENGTH.size :]
            self._deliver(payload, crc_hqx(body, _CRC_START), _CRC.unpack_from(data, stop - _CRC.size)[0])
            return stop
        self._crc = _CRC_AFTER_START
        self._payload = b""
        self._expect(_State.LENGTH, _LENGTH.size)
        return start + len(START)

    def _end_of_plain_frame(self, data: bytes, start: int) -> int:
        if len(data) - start < _OVERHEAD:
            return 0
        length: int = _LENGTH.unpack_from(data, start + len(START))[0]
        stop = start + _OVERHEAD + length
        if length > self._max_payload or stop > len(data):
            return 0
        return 0 if data.find(b"\xff", start + len(START), stop) >= 0 else stop

    def _expect(self, state: _State, need: int) -> None:
        self._state = state
        self._need = need
        self._parts = []

    def _inside(self, data: bytes, position: int) -> int:
        match = _PLAIN.match(data, position)
        end = match.end() if match else position
        if end == position:
            return self._escape(data, position)
        raw = _whole_escapes(data, position, min(end, position + self._need))
        part = raw.replace(b"\xff\xff", b"\xff") if b"\xff" in raw else raw
        if self._state is not _State.CRC:
            self._crc = crc_hqx(raw, self._crc)
        self._parts.append(part)
        self._need -= len(part)
        if not self._need:
            self._complete(b"".join(self._parts))
        return position + len(raw)

    def _complete(self, field: bytes) -> None:
        if self._state is _State.LENGTH:
            self._take_length(_LENGTH.unpack(field)[0])
        elif self._state is _State.PAYLOAD:
            self._payload = field
            self._expect(_State.CRC, _CRC.size)
        else:
            self._deliver(self._payload, self._crc, _CRC.unpack(field)[0])
            self._abandon()

    def _take_length(self, length: int) -> None:
        if length > self._max_payload:
            self.counters.oversize_frames += 1
            self._events.append(OversizeFrame(length))
            self._abandon()
        elif length:
            self._expect(_State.PAYLOAD, length)
        else:
            self._expect(_State.CRC, _CRC.size)

    def _deliver(self, payload: bytes, computed: int, received: int) -> None:
        if computed == received:
            self.counters.frames += 1
            self._events.append(Frame(payload))
        else:
            self.counters.crc_errors += 1
            self._events.append(CrcMismatch(payload, computed, received))

    def _abandon(self) -> None:
        self._expect(_State.HUNT, 0)
        self._payload = b""

    def _escape(self, data: bytes, position: int) -> int:
        """Handles an 0xff at `position` inside a frame that does not begin the literal `ff ff`."""
        if position + 1 == len(data):
            self._carry = b"\xff"
            return len(data)
        code = data[position + 1]
        if code == _START_CODE:
            self.counters.short_packets += 1
            self._events.append(ShortPacket(self._so_far()))
            self._abandon()
            return self._begin(data, position)
        if code == _NOP_CODE:
            if self._state is not _State.CRC:
                self._crc = crc_hqx(data[position : position + 2], self._crc)
            return position + 2
        self.counters.invalid_escapes += 1
        self._events.append(InvalidEscape(self._so_far(), code))
        self._abandon()
        return position + 2

    def _so_far(self) -> bytes:
        return b"".join(self._parts) if self._state is _State.PAYLOAD else self._payload


def _whole_escapes(data: bytes, begin: int, end: int) -> bytes:
    """`data[begin:end]` without half a literal `ff ff` at its end, but at least one literal."""
    raw = data[begin:end]
    trailing = len(raw) - len(raw.rstrip(b"\xff"))
    if trailing % 2 == 0:
        return raw
    return raw[:-1] or data[begin : begin + 2]
