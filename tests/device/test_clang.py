# SPDX-License-Identifier: Apache-2.0
"""Firmware and loaded C by Clang: the same tests as by GCC, but those of options that only GCC has."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from minrpc import ConfigurationError, open_device

from tests.device.other_firmware import require_passed

SAME = (
    "c_functions",
    "types",
    "aligned",
    "aliases",
    "flexible",
    "registers",
    "interrupts",
    "fakes",
    "partner",
    "firmware_functions",
)
# Static and inline functions, which Clang leaves out; flags in debug information; a type's name by GCC.
GCC_ALONE = "static or inline or somebody_else or that_a_parameter_sizes"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("clang") is None, reason="there is no clang")
def test_what_holds_by_gcc_holds_by_clang(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CC", "clang")
    (tmp_path / "none.toml").touch()
    files = tuple(f"test_{name}.py" for name in SAME)
    with open_device("posix") as device, pytest.raises(ConfigurationError, match="Clang has no option"):
        device.load(Path(__file__).parent / "c/twice.c", statics=True)
    require_passed(files, "posix", tmp_path / "none.toml", "-k", f"not ({GCC_ALONE})")
