# SPDX-License-Identifier: Apache-2.0
"""The description that a device of this project gives of itself."""

from __future__ import annotations

from dataclasses import dataclass, fields
from struct import Struct
from typing import Final, NamedTuple

from minrpc.errors import DialectError
from minrpc.timing.reading import ClockReading

# zephyr-app/runtime/info.c
_HEAD: Final = Struct("<I6H")
_HEAD_FIELDS: Final = 7
_FIXED: Final = Struct("<I6H14I4Q")
_REGION: Final = Struct("<QQI")
_VERSION: Final = 4
_REGION_KINDS: Final = {1: "arena", 2: "read_only", 3: "code", 4: "memory", 5: "code_memory"}

_BOARD: Final = "board="

LINK_COUNTS: Final = (
    "crc_errors",
    "short_packets",
    "invalid_escapes",
    "oversize_frames",
    "stale_messages",
    "rx_overruns",
)
"""The fields of `DeviceInfo` that count errors on the link."""


_NUMBERS: Final = (
    *("max_packet", "arena_size", "arena_used", "arena_peak", "arena_largest_free"),
    *LINK_COUNTS,
    *("stack_size", "stack_peak"),
)


class DeviceCounter(NamedTuple):
    """A counter of the device. bits: its width; 0 if the kernel or the core does not have it."""

    name: str
    unit: str
    bits: int


class MemoryRegion(NamedTuple):
    """Memory of the device.

    kind: "arena" (arrays, and all that a session makes), "read_only" (constants that may be named as arrays),
        "code" (for code that is loaded), "memory" and "code_memory" (where `Device.relayout` may put arrays
        and code; the first "memory" is the firmware's own choice), or "kind N" for a kind that this program
        does not know.
    base: its first address.
    size: in bytes.
    """

    kind: str
    base: int
    size: int


@dataclass(frozen=True)
class DeviceInfo:
    """The answer of the global function `minrpc.device_info`: memory in bytes, and counts since boot.

    version: of this answer; later versions append.
    max_packet: bytes of one session message that the device's receive buffer holds.
    arena_size, arena_used, arena_peak, arena_largest_free: the memory that holds arrays.
    crc_errors, short_packets, invalid_escapes, oversize_frames: frames that reached the device damaged, or
        longer than its receive buffer.
    stale_messages: messages that belonged to ended sessions.
    rx_overruns: bytes that the device lost because it did not read them in time.
    stack_size, stack_peak: size and peak use of the stack that functions run on; 0 if the device can't tell.
    clock: its clocks when it answered.
    regions: its memory, as far as it reports it.
    options: the options built into it: names of options of minrpc/minrpc_config.h in lower case.
    build_id: identifies its image, in hexadecimal; empty if unknown.
    board: the Zephyr board that it was built for, with its SoC and core; empty on other ports.
    """

    version: int
    max_packet: int
    arena_size: int
    arena_used: int
    arena_peak: int
    arena_largest_free: int
    crc_errors: int
    short_packets: int
    invalid_escapes: int
    oversize_frames: int
    stale_messages: int
    rx_overruns: int
    stack_size: int
    stack_peak: int
    clock: ClockReading
    regions: tuple[MemoryRegion, ...] = ()
    options: frozenset[str] = frozenset()
    build_id: str = ""
    board: str = ""

    @property
    def timer_hz(self) -> int:
        """Counts per second of the platform timer."""
        return self.clock.ticks_hz

    @classmethod
    def parse(cls, answer: bytes) -> DeviceInfo:
        """Parses the answer. Raises DialectError when it is malformed or too old."""
        if len(answer) < _HEAD.size:
            raise DialectError(f"the device's info has {len(answer)} bytes, expected {_FIXED.size}")
        version, size, count, stride, options_size, build_id_size, bits = _HEAD.unpack_from(answer)
        if version < _VERSION:
            raise DialectError(
                f"the device's info has version {version}, expected {_VERSION}",
                next_step="put this version's firmware onto the device",
            )
        options_at = size + count * stride
        end = options_at + options_size + build_id_size
        if size < _FIXED.size or (count and stride < _REGION.size) or end > len(answer):
            raise DialectError(f"the device's info has {len(answer)} bytes, expected {max(end, _FIXED.size)}")
        numbers = _FIXED.unpack_from(answer)[_HEAD_FIELDS:]
        ticks_hz, coarse_hz, ticks, coarse = numbers[-4:]
        if not ticks_hz or not 0 < bits <= 64:
            raise DialectError(
                f"the device's info has a clock of {bits} bits that counts {ticks_hz} a second"
            )
        texts = answer[options_at : options_at + options_size].decode("ascii", "backslashreplace").split(",")
        board = next((text for text in texts if text.startswith(_BOARD)), "")
        return cls(
            version=version,
            clock=ClockReading(ticks, coarse, ticks_hz, coarse_hz, bits),
            regions=tuple(_region(answer, size + i * stride) for i in range(count)),
            options=frozenset(text for text in texts if text and text != board),
            board=board.removeprefix(_BOARD),
            build_id=answer[end - build_id_size : end].hex(),
            **dict(zip(_NUMBERS, numbers, strict=False)),
        )

    def link_counts(self) -> dict[str, int]:
        """Errors on the link, by name: damaged and dropped frames, lost bytes."""
        return {name: getattr(self, name) for name in LINK_COUNTS}

    def __str__(self) -> str:
        return ", ".join(f"{field.name} {_shown(getattr(self, field.name))}" for field in fields(self))


def _shown(value: object) -> object:
    if isinstance(value, frozenset):
        return "+".join(sorted(value)) or "none"
    if isinstance(value, tuple):
        return " ".join(f"{region.kind}:{region.base:#x}+{region.size:#x}" for region in value) or "none"
    return "unknown" if value == "" else value


def _region(answer: bytes, at: int) -> MemoryRegion:
    base, size, kind = _REGION.unpack_from(answer, at)
    return MemoryRegion(_REGION_KINDS.get(kind, f"kind {kind}"), base, size)
