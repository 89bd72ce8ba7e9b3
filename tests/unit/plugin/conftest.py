# SPDX-License-Identifier: Apache-2.0
"""The cache of firmware, and the modules that load once, for all runs of pytest inside a test."""

from pathlib import Path

import numpy as np  # noqa: F401 - pytester removes modules that a run inside a test has loaded
import pytest
import yaml  # noqa: F401 - loaded twice: "could not determine a constructor for the tag None"


@pytest.fixture(autouse=True)
def _own_configuration(users_cache: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The tests do not read the user's files, but use the user's cache of firmware."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
