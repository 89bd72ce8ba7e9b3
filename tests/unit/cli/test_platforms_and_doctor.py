# SPDX-License-Identifier: Apache-2.0
"""`minrpc platforms` and `minrpc doctor`, on this machine and on a machine without tools."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from minrpc import PLATFORMS

Minrpc = Callable[..., tuple[int, str, str]]


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No program on the path, no Zephyr."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("ZEPHYR_BASE", "ZEPHYR_TOOLCHAIN_VARIANT", "ZEPHYR_SDK_INSTALL_DIR"):
        monkeypatch.delenv(name, raising=False)


def test_every_platform_is_listed(minrpc: Minrpc) -> None:
    status, out, _ = minrpc("platforms")
    assert status == 0
    assert all(f" {name} " in out for name in PLATFORMS)
    assert max(map(len, out.splitlines())) <= 80


def test_posix_can_run_where_tests_run(minrpc: Minrpc) -> None:
    (line,) = [line for line in minrpc("platforms")[1].splitlines() if line.startswith("* posix ")]
    assert line.split()[2] == "yes"


@pytest.mark.usefixtures("nothing_installed")
def test_what_each_platform_lacks(minrpc: Minrpc) -> None:
    out = minrpc("platforms")[1]
    parts = {part.split()[0]: " ".join(part.split()) for part in re.split(r"\n[* ] (?=\S)", out)}
    assert parts["posix"].startswith(
        "posix no the firmware as a process of this machine; compiler: gcc is not"
    )
    assert "qemu-system-arm: not installed" in parts["bare_mps2_an385"]
    assert "Zephyr: no Zephyr workspace was found" in parts["qemu_x86"]
    assert max(map(len, out.splitlines())) <= 80


def test_a_board_of_the_users_is_listed(minrpc: Minrpc, tmp_path: Path) -> None:
    file = tmp_path / "boards.toml"
    file.write_text('[platforms.mine]\nzephyr_board = "nucleo_f746zg"\ndescription = "on my desk"\n')
    assert "on my desk" in minrpc("platforms", "--platforms-file", str(file))[1]


def test_doctor_shows_versions(minrpc: Minrpc) -> None:
    out = minrpc("doctor")[1]
    assert "Python 3." in out
    assert "pytest " in out
    assert "gcc" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.usefixtures("nothing_installed")
def test_doctor_says_the_command_that_gets_what_is_missing(minrpc: Minrpc) -> None:
    status, out, _ = minrpc("doctor")
    assert status == 1
    assert "MISSING: gcc is not installed" in out
    assert "\n  sudo apt-get install cmake\n      for posix, bare_mps2_an385" in out
    assert "\n  sudo apt-get install picolibc-arm-none-eabi\n      for bare_mps2_an385" in out
    assert "\n  west init ~/zephyrproject && cd ~/zephyrproject && west update\n      for " in out


@pytest.mark.usefixtures("nothing_installed")
def test_doctor_proposes_names_for_one_that_nothing_has(minrpc: Minrpc) -> None:
    status, out, _ = minrpc("doctor", "--platform", "posxi")
    assert status == 1
    assert "MISSING: there is no platform 'posxi'; did you mean posix" in " ".join(out.split())
    assert "\n  minrpc platforms; west boards\n      for posxi" in out


@pytest.mark.parametrize("command", ["platforms", "doctor"])
def test_a_cache_that_can_not_be_made_is_what_all_lack(
    minrpc: Minrpc, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    status, out, err = minrpc(command)
    assert (status, err) == (0 if command == "platforms" else 1, "")
    assert "the cache directory /dev/null/minrpc can't be made: Not a directory" in " ".join(out.split())
    assert (command == "platforms") or "set XDG_CACHE_HOME to a directory that you may write to" in out


@pytest.mark.parametrize("command", ["check", "time", "info", "cache"])
def test_a_cache_that_can_not_be_made_says_what_to_set(
    minrpc: Minrpc, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    words = [] if command == "cache" else [*(["inc"] if command == "time" else []), "--platform", "posix"]
    status, _, err = minrpc(command, *words)
    assert status == 2
    assert "the cache directory /dev/null/minrpc can't be made" in err
    assert "set XDG_CACHE_HOME" in err
