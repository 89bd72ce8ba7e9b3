# SPDX-License-Identifier: Apache-2.0
"""The layout of the device's answer about itself, as zephyr-app/runtime/info.c writes it."""

import struct

import pytest
from minrpc.client.info import DeviceInfo
from minrpc.errors import DialectError

ANSWER = struct.pack("<6IQ8I", 1, 8192, 1000, 200, 300, 700, 10**9, 1, 2, 3, 4, 5, 6, 2048, 512)


def test_each_number_is_where_the_device_puts_it() -> None:
    info = DeviceInfo.parse(ANSWER)
    assert (info.version, info.max_packet, info.timer_hz) == (1, 8192, 10**9)
    assert (info.arena_size, info.arena_used, info.arena_peak) == (1000, 200, 300)
    assert info.arena_largest_free == 700
    assert (info.crc_errors, info.short_packets, info.invalid_escapes, info.oversize_frames) == (1, 2, 3, 4)
    assert (info.stale_messages, info.rx_overruns) == (5, 6)
    assert (info.stack_size, info.stack_peak) == (2048, 512)


def test_later_versions_append() -> None:
    assert DeviceInfo.parse(ANSWER + bytes(8)) == DeviceInfo.parse(ANSWER)


def test_too_short_an_answer_is_refused() -> None:
    with pytest.raises(DialectError, match="has 63 bytes, 64 are due"):
        DeviceInfo.parse(ANSWER[:-1])
