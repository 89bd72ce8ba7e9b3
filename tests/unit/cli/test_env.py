# SPDX-License-Identifier: Apache-2.0
"""`minrpc env` in one shell, for one compiler after another."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from minrpc.cli import env
from minrpc.firmware import Workspace, toolchain
from minrpc.firmware.toolchain import Toolchain, users_environment, zephyr_toolchain

Minrpc = Callable[..., tuple[int, str, str]]
COMPILERS = {
    "x86": {
        "ZEPHYR_TOOLCHAIN_VARIANT": "cross-compile",
        "CROSS_COMPILE": "/usr/bin/x-",
        "LIBRARY_PATH": "/l:/mine",
    },
    "arm": {"ZEPHYR_TOOLCHAIN_VARIANT": "gnuarmemb", "GNUARMEMB_TOOLCHAIN_PATH": "/usr"},
}


def apply(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """The result of the lines in a shell."""
    for line in script.splitlines():
        words = shlex.split(line)
        if words[0] == "unset":
            monkeypatch.delenv(words[1])
        else:
            name, value = words[1].split("=", 1)
            monkeypatch.setenv(name, value)


def test_a_second_call_takes_the_first_back(minrpc: Minrpc, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in {"ZEPHYR_TOOLCHAIN_VARIANT", "CROSS_COMPILE", "GNUARMEMB_TOOLCHAIN_PATH"}:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LIBRARY_PATH", "/mine")
    for module in (env, toolchain):
        monkeypatch.setattr(
            module, "find_workspace", lambda root: Workspace(Path("/z"), None, "4.2.0", ""), raising=False
        )
    with monkeypatch.context() as patch:
        patch.setattr(env, "zephyr_toolchain", lambda arch: Toolchain(arch, COMPILERS[arch]))
        apply(monkeypatch, minrpc("env", "--platform", "qemu_x86")[1])
        _, second, _ = minrpc("env", "--platform", "qemu_cortex_m3")
    assert "unset CROSS_COMPILE" in second
    assert "export LIBRARY_PATH=/mine" in second
    apply(monkeypatch, second)
    environ = users_environment(dict(os.environ))
    assert "ZEPHYR_TOOLCHAIN_VARIANT" not in environ
    assert environ["LIBRARY_PATH"] == "/mine"
    monkeypatch.setattr(toolchain, "find_sdk", lambda: None)
    monkeypatch.setattr(toolchain, "debian_toolchain", lambda arch: Toolchain(f"Debian's for {arch}"))
    monkeypatch.setattr(toolchain, "_check_libgcc", lambda known: None)
    assert re.match("Debian's for x86", zephyr_toolchain("x86").description)
    monkeypatch.setenv("ZEPHYR_TOOLCHAIN_VARIANT", "llvm")  # The user's own choice takes effect.
    assert "ZEPHYR_TOOLCHAIN_VARIANT=llvm" in zephyr_toolchain("x86").description


def test_a_second_call_for_the_same_compiler_changes_nothing(
    minrpc: Minrpc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("ZEPHYR_TOOLCHAIN_VARIANT", "MINRPC_ENV", "ZEPHYR_EXTRA_MODULES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LDFLAGS", "-Wl,--mine")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for module in (env, toolchain):
        monkeypatch.setattr(
            module, "find_workspace", lambda root: Workspace(Path("/z"), None, "4.2.0", ""), raising=False
        )
    monkeypatch.setattr(toolchain, "find_sdk", lambda: None)
    monkeypatch.setattr(toolchain, "debian_toolchain", lambda arch: Toolchain(f"Debian's for {arch}"))
    monkeypatch.setattr(toolchain, "_check_libgcc", lambda known: None)
    apply(monkeypatch, minrpc("env", "--platform", "qemu_cortex_m3")[1])
    first = dict(os.environ)
    assert first["LDFLAGS"] == "-Wl,--mine -Wl,-u,_stage2_boot"
    apply(monkeypatch, minrpc("env", "--platform", "qemu_cortex_m3")[1])
    assert dict(os.environ) == first
