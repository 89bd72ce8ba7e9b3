# SPDX-License-Identifier: Apache-2.0
"""A function's figures depend on that function only: not on other functions of its file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from minrpc import Device, Firmware, connect, measure, start
from minrpc.running import all_counters

CLEAR = "void clear(unsigned char *to, int n)\n{\n\tfor (int i = 0; i < n; i++) {\n\t\tto[i] = 0;\n\t}\n}\n"
EDITS = (
    "int unrelated(int a) { return a + 1; }\n",
    "int unrelated(int a) { return a * a * a + 7; }\n",
    "long long sum(const short *x, int n) { long long s = 0; while (n--) s += *x++; return s; }\n",
    "double half(double x) { return x / 2; }\n",
    "void nothing(void) { }\n",
    "int many(int a, int b, int c, int d, const int *e) { return a + b + c + d + *e; }\n",
    "const unsigned char table[301] = {1}; int look(int i) { return table[i]; }\n",
    "static int state = 5; int count(void) { return state++; }\n",
    "int one(int a) { return a; } int two(int a) { return -a; } int three(int a, int b) { return a - b; }\n",
    "struct point { int x, y; }; int norm(struct point p) { return p.x * p.x + p.y * p.y; }\n",
)


def figures(device: Device, source: str, tmp_path: Path) -> dict[str, object]:
    (tmp_path / "edited.c").write_text(source)
    lib = device.load(tmp_path / "edited.c")
    given = device.array(np.ones(64, np.uint8))
    found = measure(lib, "clear", counters="all", memory="counters" in device.info().options)(given, 64)
    counters = {name: found.counter_per_call(name) for name in found.counters}
    return {
        "ticks": found.typical_ticks,
        **counters,
        **{f"inclusive {name}": value for name, value in found.inclusive.items()},
        "memory": found.memory,
        "bytes": found.code.function_bytes,
    }


def test_ten_unrelated_edits_change_no_figure(image: Firmware, tmp_path: Path) -> None:
    with start(image, counters=all_counters(image)) as running, connect(running) as device:
        if "code_loading" not in device.info().options:
            pytest.skip("its firmware takes no code")
        alone = figures(device, CLEAR, tmp_path)
        ticks = alone.pop("ticks")
        for number, edit in enumerate(EDITS):
            source = CLEAR + edit if number % 2 else edit + CLEAR
            changed = figures(device, source, tmp_path)
            # The clock's phase at the batch's begin is a tick, of 10 calls.
            assert changed.pop("ticks") == pytest.approx(ticks, abs=0.11), edit
            assert changed == alone, edit
