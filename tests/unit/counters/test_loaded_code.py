# SPDX-License-Identifier: Apache-2.0
"""Code that is loaded while QEMU runs: the tables that the plugin reads."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from minrpc import QemuCounters
from minrpc.counters import Image, qemu_counters

from tests.unit.counters.test_image import image

__all__ = ["image"]

SIZE = 1 << 20


@pytest.fixture
def content(tmp_path: Path) -> bytes:
    """Code with the function f; all of it lies between 0 and SIZE."""
    (tmp_path / "f.c").write_text("int f(int x) { return x + 1; }\n")
    subprocess.run(["cc", "-O1", "-g", "-shared", "-nostdlib", "f.c", "-o", "f"], check=True, cwd=tmp_path)
    return (tmp_path / "f").read_bytes()


def places(counters: QemuCounters, address: int) -> tuple[int, int]:
    """Number of loaded ranges, and of loaded functions, that the plugin finds at `address`."""
    ranges = counters._ranges[len(counters.image.code) :]
    functions = counters._functions[len(counters.image.functions) :]
    return (
        int(((ranges["base"] <= address) & (address < ranges["base"] + ranges["size"])).sum()),
        int(((functions["start"] <= address) & (address < functions["end"])).sum()),
    )


def test_code_without_room_is_not_counted_as_what_lay_there(
    image: Image, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qemu_counters, "_LOADED_RANGES", 2)
    with QemuCounters(image) as counters:
        counters.note_code(0, SIZE, "first", content)
        counters.note_code(SIZE, SIZE, "beside", content)
        (start,) = (function.start for function in image.loaded[0].functions if function.name == "f")
        assert places(counters, start) == (1, 3)
        counters.note_code(start, 8, "second", content)
        assert places(counters, start) == (0, 0)
        assert image.function_at(start) is None
        assert counters.unknown_code == 8
        assert [code.name for code in image.loaded] == ["beside"]
        assert places(counters, SIZE) == (1, 1)


def test_code_that_is_loaded_again_where_it_lies_takes_no_more_room(
    image: Image, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qemu_counters, "_LOADED_RANGES", 3)
    with QemuCounters(image) as counters:
        for name in ("first", "first", "first", "over it", "first"):
            counters.note_code(0, SIZE, name, content)
        assert counters.unknown_code == 0
        assert [code.name for code in image.loaded] == ["first", "over it", "first"]
