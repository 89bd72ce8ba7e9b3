# SPDX-License-Identifier: Apache-2.0
"""What a device of this project tells of itself."""

from __future__ import annotations

from dataclasses import dataclass, fields
from struct import Struct
from typing import Final

from minrpc.errors import DialectError
from minrpc.timing.reading import ClockReading

_LAYOUT = Struct("<6IQ8I")

LINK_COUNTS: Final = (
    "crc_errors",
    "short_packets",
    "invalid_escapes",
    "oversize_frames",
    "stale_messages",
    "rx_overruns",
)
"""The fields of `DeviceInfo` that count what went wrong on the link."""


@dataclass(frozen=True)
class DeviceInfo:
    """The answer of the global function `minrpc.device_info`: memory in bytes, and counts since boot.

    version: of this answer; later versions append fields.
    max_packet: what the device's receive buffer holds of one session message.
    arena_size, arena_used, arena_peak, arena_largest_free: the memory that arrays are in.
    timer_hz: counts per second of the platform timer.
    crc_errors, short_packets, invalid_escapes, oversize_frames: frames that reached the device damaged, or
        were longer than it takes.
    stale_messages: messages of sessions that had ended.
    rx_overruns: bytes that the device lost because it did not read them in time.
    stack_size, stack_peak: the stack that functions run on and how much of it was ever in use; 0 where the
        device can't tell.
    clock: its clocks when it answered; None before version 2.
    """

    version: int
    max_packet: int
    arena_size: int
    arena_used: int
    arena_peak: int
    arena_largest_free: int
    timer_hz: int
    crc_errors: int
    short_packets: int
    invalid_escapes: int
    oversize_frames: int
    stale_messages: int
    rx_overruns: int
    stack_size: int
    stack_peak: int
    clock: ClockReading | None = None

    @classmethod
    def parse(cls, answer: bytes) -> DeviceInfo:
        """From the bytes of the answer. Raises DialectError when they are too few."""
        if len(answer) < _LAYOUT.size:
            raise DialectError(f"the device's info has {len(answer)} bytes, {_LAYOUT.size} are due")
        rest = answer[_LAYOUT.size :]
        clock = ClockReading.parse(rest) if len(rest) >= ClockReading.SIZE else None
        return cls(*(*_LAYOUT.unpack_from(answer), clock))

    def link_counts(self) -> dict[str, int]:
        """What went wrong on the link, by name: damaged and dropped frames, lost bytes."""
        return {name: getattr(self, name) for name in LINK_COUNTS}

    def __str__(self) -> str:
        return ", ".join(f"{field.name} {getattr(self, field.name)}" for field in fields(self))
