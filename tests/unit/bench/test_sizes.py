# SPDX-License-Identifier: Apache-2.0
"""Sizes of the runtime: options and goals."""

from __future__ import annotations

from minrpc.firmware import firmware_root
from minrpc_bench import sizes
from minrpc_bench.rows import SourceSize


def test_the_goal_is_for_the_text_without_options() -> None:
    sources = [
        SourceSize("crc32.c", 100, 0, 0, 0, ""),
        SourceSize("server.c", 9000, 0, 0, 0, ""),
        SourceSize("timer.c", 500, 4, 8, 0, ""),
    ]
    rows = sizes.rows(sizes.Sizes(sources, 400, 8000, {"GUARDS": 500, "CODE_LOADING": 569}))
    assert {row.name: row.value for row in rows} == {
        "text without options": 8000,
        "text with the defaults": 9100,
        "text of guards": 500,
        "text of code_loading": 569,
        "text of the timer": 500,
        "RAM beside receive buffer and arena": 412,
    }
    assert [row.verdict for row in rows] == ["met", "", "", "", "met", "met"]


def test_options_are_those_of_the_header() -> None:
    header = (firmware_root() / "zephyr-app/runtime/include/minrpc/minrpc_config.h").read_text()
    options = sizes.default_options(header)
    assert {"GUARDS": 1, "CODE_LOADING": 0}.items() <= options.items()
    assert "VERSION" not in options
