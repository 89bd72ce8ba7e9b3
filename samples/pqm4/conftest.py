# SPDX-License-Identifier: Apache-2.0
"""Options of the sample, one test for each implementation, and the table at the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pqm4 import DEFAULT_COMPILER, comparison, implementations, summary, write_csv


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pqm4")
    group.addoption("--pqm4", type=Path, help="a checkout of pqm4 with its submodules")
    group.addoption(
        "--pqm4-rows", type=Path, default=Path("pqm4-rows"), help="directory of rows and benchmarks.csv"
    )
    group.addoption(
        "--pqm4-link",
        type=Path,
        action="append",
        default=[],
        help="an object with memcpy, memset, ..., or more",
    )
    group.addoption(
        "--pqm4-cc", default=DEFAULT_COMPILER, help="another compiler of the implementations, by name or path"
    )
    group.addoption("--pqm4-seconds", type=float, default=60.0, help="limit of each call")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    checkout = metafunc.config.getoption("--pqm4")
    found = list(implementations(checkout.absolute())) if checkout else []
    metafunc.parametrize("implementation", found, ids=str)


def pytest_sessionfinish(session: pytest.Session) -> None:
    rows = session.config.getoption("--pqm4-rows")
    if rows.is_dir() and not hasattr(session.config, "workerinput"):
        known = [json.loads(path.read_text()) for path in sorted(rows.glob("*.json"))]
        write_csv(rows / "benchmarks.csv", known)
        table = (session.config.getoption("--pqm4") or rows) / "benchmarks.csv"
        if table.parent != rows and table.is_file():
            compared = comparison(table.read_text(), known)
            lines = [f"{item.error:+6.1f} % {' '.join(map(str, item[:5]))}" for item in compared]
            chosen = summary([item for item in compared if item.chosen])
            judged = summary([item for item in compared if not item.chosen])
            lines += [f"every third: {chosen}", f"the others: {judged}", f"all: {summary(compared)}"]
            (rows / "errors.txt").write_text("\n".join([*lines, ""]))
