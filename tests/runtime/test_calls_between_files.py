# SPDX-License-Identifier: Apache-2.0
"""C files call one another in one direction, in the runtime and in each port."""

from __future__ import annotations

import re
from collections.abc import Iterable
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

APP = Path(__file__).parents[2] / "zephyr-app"
PORTS = APP / "ports"
# A question of the running function runs the server.
MESSAGES = {"ask", "server"}

_NO_CODE = re.compile(r'/\*.*?\*/|"(?:[^"\\]|\\.)*"', re.DOTALL)
_DEFINITION = re.compile(r"^(?!static)[a-z][\w *]*?\b(\w+)\([^;{}]*\)\n\{", re.MULTILINE)
_CALL = re.compile(r"\b(\w+)\(")


def calls(files: Iterable[Path]) -> dict[str, set[str]]:
    """The files whose functions each file calls, by their names without ".c"."""
    sources = {path.stem: _NO_CODE.sub("", path.read_text()) for path in files}
    homes = {name: stem for stem, text in sources.items() for name in _DEFINITION.findall(text)}
    return {
        stem: {homes[name] for name in _CALL.findall(text) if name in homes} - {stem}
        for stem, text in sources.items()
    }


def test_calls_of_the_runtime_make_no_circle() -> None:
    found = calls((APP / "runtime").glob("*.c"))
    assert {"arena", "packed", "failure"} <= found["request"]
    graph: dict[str, set[str]] = {}
    for stem, called in found.items():
        known = graph.setdefault("messages" if stem in MESSAGES else stem, set())
        known |= {"messages" if name in MESSAGES else name for name in called}
    graph["messages"].discard("messages")
    list(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("port", ["posix", "baremetal", "zephyr"])
def test_calls_of_a_port_make_no_circle(port: str) -> None:
    found = calls([*PORTS.glob("*.c"), *(PORTS / "host").glob("*.c"), *(PORTS / port).glob("*.c")])
    assert len(found["device"]) > 3
    # The processor enters the handlers of faults, which report them; other files call the rest of cpu_*.c.
    list(
        TopologicalSorter(
            {stem: called for stem, called in found.items() if stem[:4] != "cpu_"}
        ).static_order()
    )
