# SPDX-License-Identifier: Apache-2.0
"""Writes a profile for viewers: callgrind's format (KCachegrind), speedscope's, and a flame graph as SVG."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any, Final

from minrpc.counters.call_tree import CallTree
from minrpc.counters.profile import Profile, unit_title
from minrpc.program.lines import Line
from minrpc.reports.colors import warm

_SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"


def callgrind(profile: Profile, source: Callable[[str], Path] = Path) -> str:
    """The profile in the format of valgrind's manual: costs by line, and calls with their inclusive cost.

    source: gives the path of a file named by the debug information. A call stands at the first line of its
    caller: the counts have the caller, not the calling line.
    """
    text = ["# callgrind format", "version: 1", "creator: minrpc", f"cmd: {profile.name}"]
    text += ["positions: line", f"events: {profile.unit.capitalize()}", f"summary: {profile.total}", ""]
    places = _places(profile)
    arcs = _arcs(profile.tree)
    costs = profile.lines_by_function
    for function in sorted(costs.keys() | arcs.keys()):
        file, first = places.get(function, _NOWHERE)
        text += [f"fl={_path(file, source)}", f"fn={function}"]
        for callee, (calls, inclusive) in sorted(arcs.get(function, {}).items()):
            to, line = places.get(callee, _NOWHERE)
            text += [f"cfi={_path(to, source)}", f"cfn={callee}", f"calls={max(calls, 1)} {line}"]
            text.append(f"{first} {inclusive}")
        for here, number, count in _lines_of(costs.get(function, {}), file):
            if here != file:
                text.append(f"fi={_path(here, source)}")
                file = here
            text.append(f"{number} {count}")
        text.append("")
    return "\n".join(text) + "\n"


_NOWHERE: Final = Line("", 0)


def _path(file: str, source: Callable[[str], Path]) -> str:
    """The file's path if it is on this machine; else its name in the debug information."""
    path = source(file) if file else Path()
    return str(path.absolute()) if path.is_file() else file or "???"


def _lines_of(costs: Mapping[Line | None, int], file: str) -> list[tuple[str, int, int]]:
    """File, line and count of each line, the lines of the function's own `file` first."""
    rows = [(*(line or Line(file, 0)), count) for line, count in costs.items()]
    return sorted(rows, key=lambda row: (row[0] != file, row))


def _places(profile: Profile) -> dict[str, Line]:
    """File and first line of each executed function."""
    places: dict[str, Line] = {}
    for address in profile.counts.by_address:
        function = profile.image.function_at(address)
        line = profile.image.line_at(function.start) if function else None
        if function is not None and line is not None:
            places.setdefault(profile.image.name_of(function), line)
    return places


def _arcs(tree: CallTree) -> dict[str, dict[str, tuple[int, int]]]:
    """Calls by caller and callee: number and cost; calls from the root are left out."""
    arcs: dict[str, dict[str, tuple[int, int]]] = {}
    for node in range(1, len(tree.names)):
        parent = tree.parents[node]
        if parent == 0 or not tree.inclusive[node]:
            continue
        callees = arcs.setdefault(tree.names[parent], {})
        calls, inclusive = callees.get(tree.names[node], (0, 0))
        callees[tree.names[node]] = (calls + tree.calls[node], inclusive + tree.inclusive[node])
    return arcs


def speedscope(profile: Profile) -> str:
    """JSON for https://www.speedscope.app: a sample for each stack, weighted by its instructions or
    cycles."""
    stacks = list(profile.settled.stacks())
    names = sorted({name for stack, _ in stacks for name in stack})
    index = {name: number for number, name in enumerate(names)}
    document: dict[str, Any] = {
        "$schema": _SCHEMA,
        "name": profile.name,
        "exporter": "minrpc",
        "shared": {"frames": [{"name": name} for name in names]},
        "profiles": [
            {
                "type": "sampled",
                "name": f"{profile.name}: {unit_title(profile.unit)}",
                "unit": "none",
                "startValue": 0,
                "endValue": profile.total,
                "samples": [[index[name] for name in stack] for stack, _ in stacks],
                "weights": [count for _, count in stacks],
            }
        ],
    }
    return json.dumps(document, indent=1) + "\n"


_WIDTH: Final = 1200.0
_ROW: Final = 18
_LETTER: Final = 6.6
_LEAST: Final = 0.3


def flame_graph(name: str, tree: CallTree, unit: str) -> str:
    """An SVG of the tree: a box's width is the count of a function and its callees, in `unit`.

    Callers lie above. Pointing at a box shows its name; the SVG has no script.
    """
    total = tree.total
    boxes = list(flame_boxes(tree))
    depth = 1 + max((level for _, level, _, _ in boxes), default=0)
    height = (depth + 1) * _ROW + 8
    text = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {height}" font-size="11" '
        'font-family="ui-monospace, monospace">',
        f"<title>{escape(name)}: {total:,} {unit}</title>",
        f'<text x="4" y="13" fill="currentColor">{escape(name)}: {total:,} {unit}</text>',
    ]
    for function, level, left, count in boxes:
        width = count / total * _WIDTH
        if width < _LEAST:
            continue
        x, y = left / total * _WIDTH, (level + 1) * _ROW
        share = f"{function}: {count:,} {unit} ({count / total:.1%})"
        letters = int((width - 4) / _LETTER)
        shown = function if len(function) <= letters else function[: letters - 1] + "…" if letters > 3 else ""
        text.append(
            f'<g><title>{escape(share)}</title><rect x="{x:.2f}" y="{y}" width="{width:.2f}" '
            f'height="{_ROW - 1}" fill="{warm(function)}"/>'
            f'<text x="{x + 3:.2f}" y="{y + 12}">{escape(shown)}</text></g>'
        )
    return "\n".join([*text, "</svg>"]) + "\n"


def flame_boxes(tree: CallTree) -> Iterator[tuple[str, int, int, int]]:
    """Name, level, begin and width of each box, the last two as counts."""
    children: dict[int, list[int]] = {}
    for node in range(1, len(tree.names)):
        children.setdefault(tree.parents[node], []).append(node)
    todo = [(0, -1, 0)]
    while todo:
        node, level, left = todo.pop()
        if node and tree.inclusive[node]:
            yield tree.names[node], level, left, tree.inclusive[node]
        for child in sorted(children.get(node, []), key=lambda item: -tree.inclusive[item]):
            todo.append((child, level + 1, left))
            left += tree.inclusive[child]
