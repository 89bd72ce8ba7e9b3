# SPDX-License-Identifier: Apache-2.0
"""The user's directories, by the environment."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
from minrpc.host.system import home_directory, user_directory


@pytest.mark.parametrize("home", ["", "relative", None])
def test_a_home_that_is_no_path_is_the_password_databases(
    home: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if home is None:
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", home)
    assert home_directory() == Path(pwd.getpwuid(os.getuid()).pw_dir)


def test_a_user_directory_is_the_variables_or_below_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/a")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert user_directory("XDG_CACHE_HOME", ".cache") == Path("/cache")
    for unset in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert user_directory("XDG_CACHE_HOME", ".cache") == Path("/home/a/.cache")
