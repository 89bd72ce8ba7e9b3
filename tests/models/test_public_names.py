# SPDX-License-Identifier: Apache-2.0
"""The package of models uses names only that the core exports, and its modules make no circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import minrpc_models
import pytest

PACKAGE = Path(minrpc_models.__file__).parent
PUBLIC = {"minrpc", "minrpc.errors", "minrpc.extension", "minrpc.library", "minrpc.tvm"}
MODULES = {
    ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): file
    for file in PACKAGE.rglob("*.py")
}


def imports_of(module: str) -> Iterator[tuple[str, str]]:
    """Module and name of each import of this project's, also in functions and for types."""
    for statement in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(statement, ast.ImportFrom):
            assert statement.level == 0
            home = statement.module or ""
            yield from ((home, alias.name) for alias in statement.names if home.startswith("minrpc"))
        elif isinstance(statement, ast.Import):
            yield from ((alias.name, "") for alias in statement.names if alias.name.startswith("minrpc"))


@pytest.mark.parametrize("module", sorted(MODULES))
def test_it_uses_the_public_names_of_the_core(module: str) -> None:
    of_the_core = [(home, name) for home, name in imports_of(module) if home.split(".")[0] == "minrpc"]
    assert {home for home, _ in of_the_core} <= PUBLIC
    for home, name in of_the_core:
        exported = getattr(import_module(home), "__all__", None)
        assert exported is None or name in exported, f"{home} does not export {name}"


def test_its_modules_make_no_circle() -> None:
    graph = {
        module: {
            inner if (inner := f"{home}.{name}") in MODULES else home
            for home, name in imports_of(module)
            if home in MODULES
        }
        for module in MODULES
        if module != "minrpc_models"
    }
    assert len(list(TopologicalSorter(graph).static_order())) >= len(graph)
