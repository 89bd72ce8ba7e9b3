# SPDX-License-Identifier: Apache-2.0
"""Flashing: the error when it fails."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

import pytest
from minrpc import PLATFORMS, ConfigurationError, Firmware, FlashError, Platform, Target
from minrpc.cli import main
from minrpc.firmware import flash
from minrpc.firmware.flash import run_runner


def test_the_runners_last_lines_are_shown(tmp_path: Path) -> None:
    script = "for n in $(seq 20); do echo line $n; done; echo 'Error: no probe found' >&2; exit 1"
    with pytest.raises(FlashError, match="runner failed") as caught:
        run_runner(["sh", "-c", script], tmp_path / "flash.log", tmp_path)
    assert caught.value.details[-1] == "Error: no probe found"
    assert "line 1" not in caught.value.details
    assert "by hand in" in str(caught.value)


def test_a_runner_gets_zephyr_and_may_succeed(tmp_path: Path) -> None:
    log = tmp_path / "flash.log"
    run_runner(["sh", "-c", "echo $ZEPHYR_BASE"], log, tmp_path, ZEPHYR_BASE=str(tmp_path))
    assert str(tmp_path) in log.read_text().splitlines()[1:]


def test_a_process_is_not_flashed(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="posix is not flashed"):
        flash(
            Firmware(Target(PLATFORMS["posix"]), tmp_path / "elf", tmp_path, "0", cached=False, seconds=0.0)
        )


def test_a_board_with_a_command_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    target = Target(PLATFORMS["posix"]).changed(flash_command="sh -c 'cp $0 $1' '{elf}' flashed")
    (tmp_path / "elf").write_text("program")
    firmware = Firmware(target, tmp_path / "elf", tmp_path, "0", cached=False, seconds=0.0)
    flash(firmware)
    assert (tmp_path / "flashed").read_text() == "program"
    other = replace(firmware, target=target.changed(flash_command="no-such-tool"))
    with pytest.raises(FlashError, match="no-such-tool can't be run: No such file"):
        flash(other)


@pytest.mark.parametrize(("minor", "option"), [(2, "--skip-rebuild"), (3, "--no-rebuild")])
def test_west_flashes_the_directory_that_the_user_named(
    minor: int, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """West runs in Zephyr's directory, and sysbuild's directory has more images than the application."""
    (tmp_path / "VERSION").write_text(f"VERSION_MAJOR = 4\nVERSION_MINOR = {minor}\nPATCHLEVEL = 0\n")
    monkeypatch.setenv("ZEPHYR_BASE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    ran: list[str] = []
    module = importlib.import_module("minrpc.firmware.flash")
    monkeypatch.setattr(module, "run_runner", lambda argv, *_, **__: ran.extend(argv))
    board = Platform("desk", port="zephyr", starts="board", zephyr_board="acme")
    target = replace(Target(board), build_dir=Path("build"))
    application = Path("build", "hello")
    flash(Firmware(target, application / "elf", application, "0", cached=True, seconds=0.0))
    assert ran[ran.index("-d") + 1] == str(tmp_path / "build")
    assert option in ran


@pytest.mark.parametrize(
    ("name", "why"), [("posix", "it is a process of this machine"), ("qemu_x86", "it runs under QEMU")]
)
def test_what_is_not_flashed_is_refused_before_it_is_built(
    name: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["board", "flash", "--platform", name]) == 2
    assert f"{name} is not flashed: {why}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_advice_names_the_command_and_its_directory(tmp_path: Path) -> None:
    log = tmp_path / "flash.log"
    with pytest.raises(FlashError) as caught:
        run_runner(["sh", "-c", "echo no board; exit 3"], log, tmp_path)
    assert caught.value.message == "the flash runner failed: exit status 3"
    assert caught.value.details == ("no board",)
    assert f"sh -c 'echo no board; exit 3'` by hand in {tmp_path}" in caught.value.next_step
    assert str(log) in caught.value.next_step
