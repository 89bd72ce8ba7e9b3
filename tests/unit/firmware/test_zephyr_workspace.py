# SPDX-License-Identifier: Apache-2.0
"""The choice of a Zephyr, with simulated workspaces in a temporary directory."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from minrpc import PLATFORMS, ZephyrMissingError
from minrpc.firmware import find_workspace, workspaces
from minrpc.firmware.recipes import recipe_for
from minrpc.firmware.zephyr_workspace import read_version


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    return home


def make_tree(base: Path, version: str = "4.2.0") -> Path:
    base.mkdir(parents=True)
    names = ("VERSION_MAJOR", "VERSION_MINOR", "PATCHLEVEL")
    lines = [f"{name} = {number}" for name, number in zip(names, version.split("."), strict=True)]
    (base / "VERSION").write_text("\n".join([*lines, "VERSION_TWEAK = 0", "EXTRAVERSION =", ""]))
    return base


def make_workspace(topdir: Path, version: str = "4.2.0", base: str = "zephyr") -> Path:
    (topdir / ".west").mkdir(parents=True)
    (topdir / ".west" / "config").write_text(f"[manifest]\npath = app\n[zephyr]\nbase = {base}\n")
    return make_tree(topdir / base, version)


def register(home: Path, base: Path, name: str) -> None:
    registry = home / ".cmake" / "packages" / "Zephyr"
    registry.mkdir(parents=True, exist_ok=True)
    (registry / name).write_text(f"{base}/share/zephyr-package/cmake")


def test_zephyr_base_wins_over_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    named = make_tree(tmp_path / "named", "3.7.1")
    make_workspace(tmp_path / "ws")
    register(home, make_tree(tmp_path / "registered"), "a")
    monkeypatch.setenv("ZEPHYR_BASE", str(named))
    found = find_workspace(tmp_path / "ws" / "app", tmp_path / "ws")
    assert (found.base, found.version, found.topdir, found.found_by) == (named, "3.7.1", None, "ZEPHYR_BASE")
    register(home, named, "b")
    bases = [named, tmp_path / "ws" / "zephyr", tmp_path / "registered"]
    assert [item.base for item in workspaces(tmp_path / "ws" / "app", tmp_path / "ws")] == bases


def test_zephyr_base_in_a_workspace_has_its_topdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A symbolic link leads there, too: the relative paths of Zephyr's build would lead elsewhere from it."""
    base = make_workspace(tmp_path / "ws")
    (tmp_path / "link").symlink_to(base)
    for named in (base, tmp_path / "link"):
        monkeypatch.setenv("ZEPHYR_BASE", str(named))
        found = find_workspace(tmp_path, tmp_path)
        assert (found.base, found.topdir) == (base, tmp_path / "ws")


def test_a_build_gets_the_place_behind_a_workspaces_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = make_workspace(tmp_path / "ws", base="deps/zephyr")
    base.rename(tmp_path / "elsewhere")
    base.symlink_to(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path / "ws")
    monkeypatch.setenv("ZEPHYR_TOOLCHAIN_VARIANT", "zephyr")
    recipe = recipe_for(PLATFORMS["qemu_x86"], tmp_path / "app")
    assert recipe.environment["ZEPHYR_BASE"] == str(tmp_path / "elsewhere")


def test_the_current_directorys_before_the_projects(tmp_path: Path) -> None:
    here = make_workspace(tmp_path / "here")
    make_workspace(tmp_path / "there")
    found = find_workspace(tmp_path / "there" / "app", here / "deep" / "down")
    assert found.base == here
    assert found.found_by == "the west workspace around the current directory"


def test_the_projects_before_the_registry(tmp_path: Path, home: Path) -> None:
    base = make_workspace(tmp_path / "ws", base="deps/zephyr")
    register(home, make_tree(tmp_path / "registered", "4.9.0"), "a")
    found = find_workspace(tmp_path / "ws" / "app", tmp_path)
    assert (found.base, found.topdir) == (base, tmp_path / "ws")


def test_a_workspace_that_was_not_updated_yet_is_passed_over(tmp_path: Path, home: Path) -> None:
    (tmp_path / "ws" / ".west").mkdir(parents=True)
    (tmp_path / "ws" / ".west" / "config").write_text("[manifest]\npath = app\n")
    registered = make_tree(tmp_path / "registered")
    register(home, registered, "a")
    assert find_workspace(tmp_path / "ws" / "app", tmp_path).base == registered


def test_the_newest_in_the_registry(tmp_path: Path, home: Path) -> None:
    for name, version in (("a", "3.7.1"), ("b", "4.10.0"), ("c", "4.9.3")):
        register(home, make_tree(tmp_path / name, version), name)
    register(home, tmp_path / "removed", "d")
    assert find_workspace(tmp_path, tmp_path).version == "4.10.0"


def test_none_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(ZephyrMissingError, match="no Zephyr workspace") as caught:
        find_workspace(tmp_path, tmp_path)
    assert "west init ~/zephyrproject && cd ~/zephyrproject && west update" in str(caught.value)
    assert "ZEPHYR_BASE (not set)" in str(caught.value)
    (tmp_path / "west.yml").touch()
    with pytest.raises(ZephyrMissingError, match=re.escape("west init -l . && west update")):
        find_workspace(tmp_path, tmp_path)


def test_zephyr_base_that_holds_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZEPHYR_BASE", str(tmp_path))
    with pytest.raises(ZephyrMissingError, match=r"from ZEPHYR_BASE.* holds no Zephyr"):
        find_workspace(tmp_path, tmp_path)


def test_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZEPHYR_BASE", str(make_tree(tmp_path / "old", "3.6.0")))
    with pytest.raises(ZephyrMissingError, match=r"3\.6\.0 .*too old: 3\.7 is the oldest"):
        find_workspace(tmp_path, tmp_path)


@pytest.mark.parametrize("text", ["", "VERSION_MAJOR = 4\n", "VERSION_MAJOR = x\nVERSION_MINOR = 1\n"])
def test_a_version_file_of_something_else(tmp_path: Path, text: str) -> None:
    (tmp_path / "VERSION").write_text(text)
    assert read_version(tmp_path) is None
