# SPDX-License-Identifier: Apache-2.0
"""The layout of the device's answer about itself, as zephyr-app/runtime/info.c writes it."""

import struct

import pytest
from minrpc import DeviceInfo, DialectError
from minrpc.client import MemoryRegion
from minrpc.timing import ClockReading

from tests.unit.client.device_model import info_answer

REGIONS = (
    MemoryRegion("arena", 0x20000000, 4096),
    MemoryRegion("read_only", 0, 1 << 40),
    MemoryRegion("kind 9", 7, 8),
)
KINDS = (1, 2, 9)


def answer(**changes: int) -> bytes:
    """An answer with these regions, two options and a build id."""
    regions = b"".join(
        struct.pack("<QQII", region.base, region.size, kind, 0)
        for region, kind in zip(REGIONS, KINDS, strict=True)
    )
    return info_answer(regions=regions, options=b"numbered,streaming,", build_id=b"\xab\xcd", **changes)


def test_each_number_is_where_the_device_puts_it() -> None:
    info = DeviceInfo.parse(answer())
    assert (info.version, info.max_packet) == (4, 8192)
    assert (info.arena_size, info.arena_used, info.arena_peak, info.arena_largest_free) == (2, 3, 4, 5)
    assert (info.crc_errors, info.short_packets, info.invalid_escapes, info.oversize_frames) == (6, 7, 8, 9)
    assert (info.stale_messages, info.rx_overruns) == (10, 11)
    assert (info.stack_size, info.stack_peak) == (12, 13)
    assert info.clock == ClockReading(ticks=300, uptime=400, ticks_hz=100, coarse_hz=200, bits=64)
    assert info.timer_hz == 100


def test_what_it_is_made_of() -> None:
    info = DeviceInfo.parse(answer())
    assert info.regions == REGIONS
    assert info.options == {"numbered", "streaming"}
    assert info.build_id == "abcd"
    assert "arena:0x20000000+0x1000" in str(info)
    assert "options numbered+streaming" in str(info)


def test_a_device_that_tells_nothing_of_that() -> None:
    info = DeviceInfo.parse(info_answer())
    assert (info.regions, info.options, info.build_id) == ((), frozenset(), "")
    assert "regions none, options none, build_id unknown" in str(info)


def test_later_versions_append_to_each_part() -> None:
    """Fields are appended to the fixed part, to each region, and at the end."""
    later = answer(version=5, longer=8, wider=16) + b"more"
    assert DeviceInfo.parse(later).regions == REGIONS
    assert DeviceInfo.parse(later).build_id == "abcd"


@pytest.mark.parametrize("size", [0, 15, 16, 103, len(answer()) - 1])
def test_too_short_an_answer_is_refused(size: int) -> None:
    with pytest.raises(DialectError, match=f"has {size} bytes, expected [0-9]+"):
        DeviceInfo.parse(answer()[:size])


def test_an_older_firmware_is_named() -> None:
    with pytest.raises(DialectError, match="has version 3, expected 4"):
        DeviceInfo.parse(answer(version=3))


@pytest.mark.parametrize(("at", "size"), [(14, 2), (72, 8)])
def test_a_clock_without_a_rate_or_bits_is_refused(at: int, size: int) -> None:
    content = answer()
    with pytest.raises(DialectError, match=r"a clock of (0|64) bits that counts (0|100) a second"):
        DeviceInfo.parse(content[:at] + bytes(size) + content[at + size :])
