# SPDX-License-Identifier: Apache-2.0
"""Sizes in the form of Zephyr's size_report, as bloat-o-meter's text, and as a picture."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from minrpc.reports.treemap import Box, squarified, treemap
from minrpc.sizes import Piece
from minrpc.sizes.growth import growth, growth_text
from minrpc.sizes.pieces import PADDING
from minrpc.sizes.size_report import size_report

PIECES = [
    Piece("flash", ".text", 0, 40, "f", "/minrpc/app/zephyr-app/runtime/a.c"),
    Piece("flash", ".text", 40, 4, PADDING, PADDING),
    Piece("flash", ".text", 44, 12, "g", "/minrpc/app/zephyr-app/runtime/b.c"),
    Piece("ram", ".data", 100, 8, "state", "/minrpc/app/zephyr-app/runtime/b.c"),
]


def leaves(node: dict[str, Any]) -> int:
    children = node.get("children", [])
    return sum(map(leaves, children)) if children else int(node["size"])


def test_the_tree_adds_up() -> None:
    report = size_report(PIECES, "flash")
    root = report["symbols"]
    assert report["total_size"] == root["size"] == leaves(root) == 56
    assert [item["name"] for item in root["children"]] == ["runtime", PADDING]
    runtime = root["children"][0]
    assert [item["identifier"] for item in runtime["children"]] == ["runtime/a.c", "runtime/b.c"]
    (symbol,) = runtime["children"][1]["children"]
    assert symbol == {
        "name": "g",
        "size": 12,
        "identifier": "runtime/b.c/g",
        "address": 44,
        "section": ".text",
    }


@pytest.mark.extra("zephyr")
def test_zephyrs_own_tool_reads_it(tmp_path: Path) -> None:
    """Since anytree 2.9 a node's `size` is its number of nodes, so this tool only reports new and removed
    symbols."""
    script = Path(os.environ.get("ZEPHYR_BASE", "")) / "scripts/footprint/fpdiff.py"
    if not os.environ.get("ZEPHYR_BASE") or not script.is_file():
        pytest.skip("ZEPHYR_BASE names no Zephyr with scripts/footprint/fpdiff.py")
    base, head = tmp_path / "base.json", tmp_path / "head.json"
    base.write_text(json.dumps(size_report(PIECES, "flash")))
    renamed = [piece._replace(symbol="h") if piece.symbol == "f" else piece for piece in PIECES]
    head.write_text(json.dumps(size_report(renamed, "flash")))
    ran = subprocess.run(
        [sys.executable, str(script), str(base), str(head)], text=True, capture_output=True, check=True
    )
    told = re.sub(r"\x1b\[\d+m", "", ran.stdout)
    assert re.search(r"^runtime/a.c/f \(-\d+\) disappeared", told, re.MULTILINE)
    assert re.search(r"^runtime/a.c/h \(\+\d+\) is new", told, re.MULTILINE)


def test_growth_in_bloat_o_meters_text() -> None:
    text = growth_text({"gone": 10, "same": 5, "f": 100}, {"same": 5, "f": 184, "new": 2})
    assert text.splitlines() == [
        "add/remove: 1/1 grow/shrink: 1/0 up/down: 86/-10 (76)",
        "Symbol                                       old     new   delta",
        "f                                            100     184     +84",
        "gone                                          10       -     -10",
        "new                                            -       2      +2",
        "Total: Before=115, After=191, chg +66.09%",
    ]


sizes = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 99))


@given(sizes, sizes)
def test_growth_is_all_of_the_difference(base: dict[str, int], head: dict[str, int]) -> None:
    changes = growth(base, head)
    assert sum(change.grown for change in changes) == sum(head.values()) - sum(base.values())
    assert [abs(change.grown) for change in changes] == sorted(
        (abs(change.grown) for change in changes), reverse=True
    )


@given(st.lists(st.integers(1, 10**6), max_size=30))
def test_a_treemap_has_areas_as_sizes(given_sizes: list[int]) -> None:
    ordered = sorted(map(float, given_sizes), reverse=True)
    boxes = squarified(ordered, Box(0.0, 0.0, 300.0, 200.0))
    total = sum(ordered)
    assert len(boxes) == len(ordered)
    for size, box in zip(ordered, boxes, strict=True):
        assert box.width * box.height == pytest.approx(size / total * 60000.0, rel=1e-6)
        assert box.x >= -1e-6
        assert box.x + box.width <= 300.0 + 1e-6
        assert box.y + box.height <= 200.0 + 1e-6


def test_a_treemap_names_what_it_shows() -> None:
    drawn = treemap("a <b>", {"runtime": {"f": 90, "g": 10}, "empty": {}})
    assert "f, runtime: 90 bytes (90.0%)" in drawn
    assert "a &lt;b&gt;: 100 bytes" in drawn
