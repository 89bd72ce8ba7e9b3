# SPDX-License-Identifier: Apache-2.0
"""Options of the sample, one test for each implementation, and the table at the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pqm4 import implementations, write_csv


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pqm4")
    group.addoption("--pqm4", type=Path, help="a checkout of pqm4 with its submodules")
    group.addoption(
        "--pqm4-rows", type=Path, default=Path("pqm4-rows"), help="directory of rows and benchmarks.csv"
    )
    group.addoption("--pqm4-seconds", type=float, default=60.0, help="limit of each call")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    checkout = metafunc.config.getoption("--pqm4")
    found = list(implementations(checkout.absolute())) if checkout else []
    metafunc.parametrize("implementation", found, ids=str)


def pytest_sessionfinish(session: pytest.Session) -> None:
    rows = session.config.getoption("--pqm4-rows")
    if rows.is_dir() and not hasattr(session.config, "workerinput"):
        write_csv(
            rows / "benchmarks.csv", [json.loads(path.read_text()) for path in sorted(rows.glob("*.json"))]
        )
