# SPDX-License-Identifier: Apache-2.0
"""Dependencies point one way: between modules, and between the rooms of the package, there is no circle.

What counts is loaded at the top of a module. What is imported later, or for types only, is a loan from above.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import minrpc

PACKAGE = Path(minrpc.__file__).parent


def name_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(file): file for file in PACKAGE.rglob("*.py")}


def room_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


def loaded_by(module: str) -> Iterator[str]:
    for statement in ast.parse(MODULES[module].read_text()).body:
        if isinstance(statement, ast.ImportFrom) and statement.module in MODULES:
            for alias in statement.names:
                inner = f"{statement.module}.{alias.name}"
                yield inner if inner in MODULES else statement.module
        elif isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names if alias.name in MODULES)


LOADED = {module: set(loaded_by(module)) for module in MODULES}
ROOMS: dict[str, set[str]] = {}
for one, others in LOADED.items():
    ROOMS.setdefault(room_of(one), set()).update(map(room_of, others) if one != "minrpc" else ())


def test_modules_make_no_circle() -> None:
    assert len(list(TopologicalSorter(LOADED).static_order())) == len(MODULES)


def test_rooms_make_no_circle() -> None:
    outward = {room: {other for other in others if other != room} for room, others in ROOMS.items()}
    order = list(TopologicalSorter(outward).static_order())
    assert order.index("minrpc.client") < order.index("minrpc.pipeline") < order.index("minrpc.cli")


def test_what_a_room_may_know() -> None:
    assert ROOMS["minrpc.wire"] <= {"minrpc.wire", "minrpc.errors"}
    below_client = {"client", "wire", "transport", "timing", "host", "errors"}
    assert ROOMS["minrpc.client"] <= {f"minrpc.{room}" for room in below_client}
    skins = {f"minrpc.{room}" for room in ("cli", "plugin", "check", "bench")}
    lower = {room for room in ROOMS if room not in skins and room != "minrpc.__main__"}
    assert not {room for room in lower if ROOMS[room] & skins}
