# SPDX-License-Identifier: Apache-2.0
"""Symbols that loaded code is linked with."""

from pathlib import Path

import pytest
from minrpc import Target, build
from minrpc.library import linking, toolset_of
from minrpc.library.linking import firmware_symbols


def test_symbols_of_a_firmware_are_made_once_and_by_another_version_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolset = toolset_of(build(Target.named("posix")))
    monkeypatch.setattr(linking, "cache_home", lambda: tmp_path)
    made = firmware_symbols(toolset)
    assert firmware_symbols(toolset) == made
    monkeypatch.setattr(linking, "_maker", lambda: b"a later version")
    again = firmware_symbols(toolset)
    assert again != made
    assert again.read_bytes() == made.read_bytes()
