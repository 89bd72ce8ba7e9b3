# SPDX-License-Identifier: Apache-2.0
"""A user's own C in a firmware, from a minrpc.toml: its identity includes included files, and not the
directory."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from minrpc import Firmware, Target, build
from minrpc.firmware import firmware_root, store
from minrpc.firmware.recipes import recipe_for

TOML = '[firmware]\nsources = ["k.c"]\ninclude_dirs = ["include"]\ndefines = { STEP = 2 }\n'


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def project(directory: Path) -> Path:
    (directory / "include").mkdir(parents=True)
    (directory / "include" / "k.h").write_text("#define K 3\n")
    (directory / "k.c").write_text("#include <k.h>\nint minrpc_users_own = K * STEP;\n")
    (directory / "minrpc.toml").write_text(TOML)
    return directory


def target(directory: Path) -> Target:
    return Target.named("posix", platforms_file=directory / "minrpc.toml")


def found(directory: Path) -> bool:
    return store.find(recipe_for(target(directory).platform, firmware_root())) is not None


@pytest.mark.slow
def test_a_header_of_the_users_counts_and_a_second_checkout_is_the_same(tmp_path: Path) -> None:
    item, two = project(tmp_path / "one"), project(tmp_path / "two" / "deeper")
    first = build(target(item))
    assert (first.cached, found(item), found(two)) == (False, True, True)
    (item / "include" / "k.h").write_text("#define K 4\n")
    assert (found(item), found(two)) == (False, True)
    shutil.rmtree(item)
    (two / "include" / "k.h").write_text("#define K 9\n")
    assert build(target(two)).source("/minrpc/project/k.c") == two / "k.c"
    (two / "minrpc.toml").write_text(TOML.replace("STEP = 2", "STEP = 5"))
    assert not found(two)
    assert debug_names(first) >= {"/minrpc/project/k.c", "/minrpc/app/zephyr-app/runtime/timer.c"}
    assert first.source("/minrpc/project/k.c") == item / "k.c"


def debug_names(firmware: Firmware) -> set[str]:
    with firmware.elf.open("rb") as stream:
        units = ELFFile(stream).get_dwarf_info().iter_CUs()
        return {unit.get_top_DIE().attributes["DW_AT_name"].value.decode() for unit in units}
