# SPDX-License-Identifier: Apache-2.0
"""Largest stack use of a function, by GCC's call graph (-fcallgraph-info=su).

A bound exists only if all callees are known: no frame of dynamic size, no call through a pointer, no call of
code that was compiled elsewhere, no recursion.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from minrpc.firmware.build import LIBRARY

FLAG: Final = "-fcallgraph-info=su"

_NODE: Final = re.compile(r'^node: \{ title: "([^"]*)" label: "([^"]*)"', re.MULTILINE)
_EDGE: Final = re.compile(r'^edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"', re.MULTILINE)
_FRAME: Final = re.compile(r"\\n(\d+) bytes \((static|dynamic,bounded|dynamic)\)")


@dataclass(frozen=True)
class CallGraph:
    """frames: each function's own stack in bytes, None if unbounded. calls: each function's callees."""

    frames: Mapping[str, int | None] = field(default_factory=dict)
    calls: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def bound(self, name: str) -> int | None:
        """Stack of the function and all its callees, in bytes; None if unknown."""
        return self._bound(name, frozenset())

    def _bound(self, name: str, above: frozenset[str]) -> int | None:
        frame = self.frames.get(name)
        if frame is None or name in above:
            return None
        below = [self._bound(callee, above | {name}) for callee in self.calls.get(name, ())]
        known = [callee for callee in below if callee is not None]
        return frame + max(known, default=0) if len(known) == len(below) else None


def static_places(text: str) -> Mapping[str, Path]:
    """The file that defines each function with internal linkage, by name."""
    files: dict[str, Path] = {}
    for title, label in _NODE.findall(text):
        name, _, place = label.partition("\\n")
        if title.endswith(f":{name}"):
            files[name] = Path(place.partition("\\n")[0].rsplit(":", 2)[0])
    return files


def parse_graphs(texts: Iterable[str]) -> CallGraph:
    """The graph of several sources, which may call each other's functions."""
    frames: dict[str, int | None] = {}
    calls: dict[str, frozenset[str]] = {}
    for text in texts:
        for name, label in _NODE.findall(text):
            match = _FRAME.search(label)
            if match:
                frames[name] = None if match[2] == "dynamic" else int(match[1])
        for caller, callee in _EDGE.findall(text):
            calls[caller] = calls.get(caller, frozenset()) | {callee}
    return CallGraph(frames, calls)


def linked_graph(build_dir: Path, library: str = "*") -> CallGraph:
    """The graph of a library that a firmware's build has linked in, of all for "*"; empty without reports."""
    reports = sorted(build_dir.rglob(f"{LIBRARY}{library}.dir/**/*.ci"))
    return parse_graphs(path.read_text(errors="replace") for path in reports)


def stack_frames(path: Path) -> dict[str, int]:
    """Bytes of each function's frame, read from GCC's -fstack-usage file; {} without it."""
    if not path.is_file():
        return {}
    frames = {}
    for line in path.read_text().splitlines():
        place, size, *_ = line.split("\t")
        frames[place.rsplit(":", 1)[-1]] = int(size)
    return frames
