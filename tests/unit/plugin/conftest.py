# SPDX-License-Identifier: Apache-2.0
"""The cache of firmware, and the modules that load once, for all runs of pytest inside a test."""

from pathlib import Path

import numpy as np  # noqa: F401 - pytester removes modules that a run inside a test has loaded
import pytest
import yaml  # noqa: F401 - loaded twice: "could not determine a constructor for the tag None"
from minrpc.firmware.cache import cache_home


@pytest.fixture(autouse=True)
def _own_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The tests do not read the user's files, but use the user's cache of firmware, so that nothing is built
    twice: pytester gives them another home."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_home().parent))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
