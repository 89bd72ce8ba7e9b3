# SPDX-License-Identifier: Apache-2.0
"""Addresses of a requested layout, from a device's facts about its memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
from minrpc import ConfigurationError, DeviceInfo
from minrpc.client import MemoryRegion
from minrpc.client.layout import Layout, LayoutRequest, Where, places_of, told_memory

from tests.unit.client.device_model import info_answer

PSRAM = MemoryRegion("memory", 0x21000000, 0x1000000)
SRAM = MemoryRegion("memory", 0x20001010, 0x3000)
PAGES = MemoryRegion("code_memory", 0x50000000, 0x10000)


def info(*regions: MemoryRegion) -> DeviceInfo:
    return replace(DeviceInfo.parse(info_answer()), regions=(MemoryRegion("read_only", 0, 16), *regions))


@pytest.mark.parametrize(
    ("arena", "code", "places"),
    [
        (None, None, LayoutRequest(PSRAM.base, PSRAM.size)),
        (None, 0, LayoutRequest(PSRAM.base, PSRAM.size)),
        (4096, None, LayoutRequest(PSRAM.base, 4096)),
        (4096, 1000, LayoutRequest(PSRAM.base, 4096, 0x21FFFC00, 1000)),
        (None, 1000, LayoutRequest(PSRAM.base, 0xFFFC00, 0x21FFFC00, 1000)),
        (SRAM, None, LayoutRequest(SRAM.base, SRAM.size)),
        ((SRAM.base, 4096), 1024, LayoutRequest(SRAM.base, 4096, 0x20003C00, 1024)),
        (None, (SRAM.base, 4096), LayoutRequest(PSRAM.base, PSRAM.size, SRAM.base, 4096)),
        (None, (PSRAM.base + 4096, 4096), LayoutRequest(PSRAM.base, 4096, PSRAM.base + 4096, 4096)),
    ],
)
def test_places(arena: Where | None, code: Where | None, places: LayoutRequest) -> None:
    assert places_of(info(PSRAM, SRAM), "it", arena, code) == places


def test_code_where_the_port_has_memory_for_it() -> None:
    found = places_of(info(PSRAM, PAGES), "it", None, 4096)
    assert found == LayoutRequest(PSRAM.base, PSRAM.size, PAGES.base, 4096)
    assert told_memory(info(PSRAM, PAGES)) == [
        "for arrays: 0x21000000+16,777,216",
        "for code: 0x50000000+65,536",
    ]


def test_what_is_no_size() -> None:
    wrong: list[tuple[Where | None, Where | None]] = [(0, None), (-1, None), ((-4, 64), None)]
    for arena, code in [*wrong, (None, -1), (None, (16, -1))]:
        with pytest.raises(ValueError, match="the size must be above 0"):
            places_of(info(PSRAM), "it", arena, code)
    with pytest.raises(TypeError, match="code is bytes, or an address and bytes, not 'x'"):
        places_of(info(PSRAM), "it", None, "x")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="firmware of it can't change") as caught:
        places_of(info(), "it", None, None)
    assert "MINRPC_LAYOUT" in caught.value.next_step


def test_told() -> None:
    text = str(Layout(MemoryRegion("arena", 0x1000, 4096), None, "new session", "in the way"))
    assert text == "new session (in the way): arrays 0x1000+4,096, code among them"
    assert str(Layout(SRAM, PAGES, "session")).startswith(
        "session: arrays 0x20001010+12,288, code 0x50000000"
    )
