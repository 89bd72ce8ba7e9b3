# SPDX-License-Identifier: Apache-2.0
"""The best candidate as text of a build: paths in minrpc.toml, values for CMake's cache."""

from __future__ import annotations

import tomllib
from pathlib import Path

from minrpc.tuning import Kernel
from minrpc.tuning.applying import applied
from minrpc.tuning.candidates import Candidate

BEST = Candidate(0, (("UNROLL", "4"),), ("-O2",))
KERNEL = Kernel(Path("src/dot.c"), "dot", (), include=(Path("inc"),))


def test_paths_of_an_entry_begin_at_its_file() -> None:
    entry = tomllib.loads(applied(BEST, KERNEL, Path("board/minrpc.toml")))["libraries"]["dot"]
    assert entry == {
        "sources": ["../src/dot.c"],
        "include": ["../inc"],
        "flags": ["-O2"],
        "defines": {"UNROLL": "4"},
    }


def test_values_replace_those_of_an_earlier_cache() -> None:
    assert applied(BEST, KERNEL, Path("best.cmake")).splitlines() == [
        'set(UNROLL "4" CACHE STRING "of dot" FORCE)',
        'set(DOT_FLAGS "-O2" CACHE STRING "of dot" FORCE)',
    ]
