# SPDX-License-Identifier: Apache-2.0
"""How much of the stack a function needs at the most, by the call graph of GCC (-fcallgraph-info=su).

Known only where all below a function is: no frame of a size that is known when it runs, no call through
a pointer, of what was not compiled here, or round in a circle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

FLAG: Final = "-fcallgraph-info=su"

_NODE: Final = re.compile(r'^node: \{ title: "([^"]*)" label: "([^"]*)"', re.MULTILINE)
_EDGE: Final = re.compile(r'^edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"', re.MULTILINE)
_FRAME: Final = re.compile(r"\\n(\d+) bytes \((static|dynamic,bounded|dynamic)\)")


@dataclass(frozen=True)
class CallGraph:
    """frames: bytes of each function's own, None where that is not bounded. calls: whom each calls."""

    frames: Mapping[str, int | None] = field(default_factory=dict)
    calls: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def bound(self, name: str) -> int | None:
        """Bytes for the function and all that it calls; None where that is not known."""
        return self._bound(name, frozenset())

    def _bound(self, name: str, above: frozenset[str]) -> int | None:
        frame = self.frames.get(name)
        if frame is None or name in above:
            return None
        below = [self._bound(callee, above | {name}) for callee in self.calls.get(name, ())]
        known = [callee for callee in below if callee is not None]
        return frame + max(known, default=0) if len(known) == len(below) else None


def parse_graphs(texts: Iterable[str]) -> CallGraph:
    """The graph of several sources: what one calls another may have."""
    frames: dict[str, int | None] = {}
    calls: dict[str, frozenset[str]] = {}
    for text in texts:
        for name, label in _NODE.findall(text):
            found = _FRAME.search(label)
            if found:
                frames[name] = None if found[2] == "dynamic" else int(found[1])
        for caller, callee in _EDGE.findall(text):
            calls[caller] = calls.get(caller, frozenset()) | {callee}
    return CallGraph(frames, calls)
