# SPDX-License-Identifier: Apache-2.0
"""The C files of the runtime call one another in one direction, except two: a question runs the server."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

RUNTIME = Path(__file__).parents[2] / "zephyr-app" / "runtime"
MESSAGES = {"ask", "server"}

_NO_CODE = re.compile(r'/\*.*?\*/|"(?:[^"\\]|\\.)*"', re.DOTALL)
_DEFINITION = re.compile(r"^(?!static)[a-z][\w *]*?\b(minrpc_\w+)\([^;{}]*\)\n\{", re.MULTILINE)
_CALL = re.compile(r"\b(minrpc_\w+)\(")


def test_calls_make_no_circle() -> None:
    sources = {path.stem: _NO_CODE.sub("", path.read_text()) for path in RUNTIME.glob("*.c")}
    homes = {name: stem for stem, text in sources.items() for name in _DEFINITION.findall(text)}
    calls = {
        stem: {homes[name] for name in _CALL.findall(text) if name in homes} - {stem}
        for stem, text in sources.items()
    }
    assert {"arena", "packed", "failure"} <= calls["request"]
    graph: dict[str, set[str]] = {}
    for stem, called in calls.items():
        known = graph.setdefault("messages" if stem in MESSAGES else stem, set())
        known |= {"messages" if name in MESSAGES else name for name in called}
    graph["messages"].discard("messages")
    list(TopologicalSorter(graph).static_order())
