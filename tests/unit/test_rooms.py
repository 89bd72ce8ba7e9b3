# SPDX-License-Identifier: Apache-2.0
"""Dependencies point one way: modules have no circle, and each room uses only rooms before it.

All imports count: at the top of a module, in a function, and for types.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import minrpc
import pytest

PACKAGE = Path(minrpc.__file__).parent
DESIGN = Path(__file__).parents[2] / "DESIGN.md"
# These packages export names of other rooms, on first use.
FACADES = {"minrpc", "minrpc.extension", "minrpc.tvm"}
# Every room may use these modules, which use no room.
SHARED = {"errors", "names"}
STARTS = {"__main__"}


def name_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(file): file for file in PACKAGE.rglob("*.py")}


def room_of(module: str) -> str:
    """The room's directory below minrpc/, as in DESIGN.md."""
    return module.split(".")[1]


def imports_in(source: str) -> Iterator[str]:
    for statement in ast.walk(ast.parse(source)):
        if isinstance(statement, ast.ImportFrom) and statement.module in MODULES:
            for alias in statement.names:
                inner = f"{statement.module}.{alias.name}"
                yield inner if inner in MODULES else statement.module
        elif isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names if alias.name in MODULES)


@cache
def imports() -> dict[str, set[str]]:
    """The modules of the package that each of its modules imports."""
    return {module: set(imports_in(file.read_text())) for module, file in MODULES.items()}


def order_in_design() -> list[str]:
    """The rooms of the package, lowest first, in the order of DESIGN.md's table."""
    table = DESIGN.read_text().partition("<!-- rooms -->")[2].partition("<!-- end of rooms -->")[0]
    return re.findall(r"^\| `([a-z_/]+)/` ", table, re.MULTILINE)


def arrows() -> Iterator[tuple[str, str]]:
    for module, imported in imports().items():
        yield from ((module, other) for other in imported if {module, other}.isdisjoint(FACADES))


def test_modules_make_no_circle() -> None:
    loaded = {module: imports()[module] for module in MODULES if module not in FACADES}
    assert len(list(TopologicalSorter(loaded).static_order())) == len(loaded)


def test_design_names_each_room_once() -> None:
    rooms = {room_of(module) for module in MODULES if module not in FACADES}
    assert sorted(order_in_design()) == sorted(rooms - SHARED - STARTS)


def test_designs_map_names_files_that_are_there() -> None:
    here = DESIGN.parent
    named = re.findall(r"`([a-z_/-]+(?:/|\.(?:py|c|txt)))`", DESIGN.read_text().partition("## The goals")[0])
    places = (here, PACKAGE, PACKAGE.parent)
    assert len(named) > 50
    assert not [path for path in named if not any((place / path).exists() for place in places)]


def test_each_room_uses_the_rooms_before_it() -> None:
    order = [*sorted(SHARED), *order_in_design(), *STARTS]
    upward = [
        f"{module} imports {other}"
        for module, other in arrows()
        if order.index(room_of(module)) < order.index(room_of(other))
    ]
    assert upward == []


def test_no_module_hides_an_arrow_behind_an_export() -> None:
    """Packages that only export import from all rooms: modules name the room they use."""
    assert not [module for module in imports() if module not in FACADES and imports()[module] & FACADES]


@pytest.mark.parametrize("module", sorted(f"minrpc.{name}" for name in SHARED))
def test_what_all_rooms_share_uses_no_room(module: str) -> None:
    assert not imports()[module]


def test_what_a_room_may_know() -> None:
    known: dict[str, set[str]] = {}
    for module, other in arrows():
        known.setdefault(room_of(module), set()).add(room_of(other))
    assert known["wire"] <= {"wire", "errors"}
    # A session's owner names the running firmware and target; the client passes these values on.
    types_only = {"firmware", "targets"}
    assert (
        known["client"] <= {"client", "wire", "transport", "timing", "host", "errors", "names"} | types_only
    )
    assert not known["library"] & {"counters", "running"}
    skins = {"cli", "plugin", "check"}
    assert not {room for room in known.keys() - skins - STARTS if known[room] & skins}


def test_the_core_and_its_tests_do_not_know_the_package_of_models() -> None:
    root = DESIGN.parent
    files = [*root.glob("harness/minrpc*/**/*.py"), *root.glob("tests/**/*.py")]
    beside = (root / "harness/minrpc_models", root / "tests/models")
    known = re.compile(r"^\s*(?:from|import) (?:minrpc_models|tests\.models)\b", re.MULTILINE)
    core = [file for file in files if not any(file.is_relative_to(place) for place in beside)]
    assert len(core) > 400
    assert not [file for file in core if known.search(file.read_text())]


@pytest.mark.slow
def test_the_core_is_tested_without_the_package_of_models() -> None:
    """pytest collects all other tests where the package can't be imported."""
    program = (
        "import sys, pytest; sys.modules['minrpc_models'] = None; "
        "sys.exit(pytest.main([*'--collect-only -q -p no:cacheprovider --ignore=tests/models'.split()]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=DESIGN.parent, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout[-2000:]
    assert "tests/models" not in ran.stdout


@pytest.mark.parametrize(
    "source", ["def f():\n    from minrpc.cli import main", "if X:\n    import minrpc.cli"]
)
def test_an_import_in_a_function_or_for_types_counts(source: str) -> None:
    assert list(imports_in(source)) == ["minrpc.cli"]
