# SPDX-License-Identifier: Apache-2.0
"""A device's memory, uptime and link, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from minrpc.client.device_counters import HeapUse
from minrpc.client.info import DeviceInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStats:
    """Bytes, seconds, and counts since the device's start. None: the device can't report it.

    Peaks count from its start, or from their last reset.
    """

    arena_used: int
    arena_peak: int
    arena_size: int
    arena_largest_free: int
    stack_peak: int | None
    stack_size: int | None
    heap_used: int | None
    heap_peak: int | None
    uptime_s: float
    link: Mapping[str, int]

    @classmethod
    def of(cls, info: DeviceInfo, heap: HeapUse | None) -> Self:
        """Combines both answers of the device. An unused heap gives None."""
        clock = info.clock
        known = heap if heap and (heap.used or heap.peak) else None
        return cls(
            arena_used=info.arena_used,
            arena_peak=info.arena_peak,
            arena_size=info.arena_size,
            arena_largest_free=info.arena_largest_free,
            stack_peak=info.stack_peak if info.stack_size and info.stack_peak else None,
            stack_size=info.stack_size or None,
            heap_used=known.used if known else None,
            heap_peak=known.peak if known else None,
            uptime_s=clock.ticks / clock.ticks_hz,
            link=info.link_counts(),
        )
