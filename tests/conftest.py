# SPDX-License-Identifier: Apache-2.0
"""For all tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture(scope="session")
def native_build(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Gives build directories by name. pytest's cache keeps them: a second run builds what changed."""
    cache = getattr(request.config, "cache", None)
    return tmp_path_factory.mktemp if cache is None else cache.mkdir


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--load", action="store_true", help="the whole of what tests/device does to load the link, not a part"
    )
