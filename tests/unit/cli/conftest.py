# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of the command line."""

from collections.abc import Callable
from pathlib import Path

import pytest
from minrpc.check.cases import cases
from minrpc.cli import main

Result = tuple[int, str, str]


@pytest.fixture
def minrpc(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Result]:
    """Runs `minrpc` with its arguments: exit status, standard output, standard error."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(*argv: str) -> Result:
        try:
            status = main(argv)
        except SystemExit as stop:
            status = int(stop.code or 0)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def one_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one case, for tests that do not test the cases: each case takes a tenth of a second."""
    monkeypatch.setattr("minrpc.cli.check.cases", lambda: cases()[:1])
