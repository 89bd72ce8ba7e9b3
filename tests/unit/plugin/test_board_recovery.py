# SPDX-License-Identifier: Apache-2.0
"""Flashing a board by its build id, and recovering it; a program of this machine is the board."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from minrpc import (
    ConfigurationError,
    DeadlineError,
    FlashError,
    HarnessError,
    ResetError,
    Target,
    build,
    connect,
    open_device,
    start,
)
from minrpc.firmware.flash import flash
from minrpc.host import Deadline
from minrpc.host.owned_lock import DIRECTORY_VARIABLE
from minrpc.plugin.board_pool import PooledBoard
from minrpc.program import read_program
from minrpc.running.lease import quarantine_of
from minrpc.targets import load_hardware_map

from tests.native import of_another_build

BOARD = Path(__file__).with_name("board.py")
PRESSED = "rm -f $0.reset; kill -USR1 $(cat $0.pid); until [ -e $0.reset ]; do sleep 0.05; done"
INSTALL = f"cp $1 $0.new; mv $0.new $0.elf; {PRESSED}"
FLASH = f"echo flashed >> $0.log; {INSTALL}"
TOTAL_S = 120.0


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The terminal of a board whose flash is PORT.elf, and a map of it."""
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "locks"))
    path = tmp_path / "port"
    elf = shutil.copy(build(Target.named("posix")).elf, f"{path}.elf")
    (tmp_path / "map.yml").write_text(
        f"- {{connected: true, id: B1, platform: desk, product: x, runner: unknown, serial: {path}}}\n"
    )
    argv = [sys.executable, str(BOARD), elf, str(path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as board:
        assert board.stdout is not None
        Path(f"{path}.pid").write_text(board.stdout.readline())
        yield path
        board.communicate()  # The end of its input makes the board end the firmware, which may hang.


def target(port: Path, entry: str, **given: object) -> Target:
    file = port.parent / "minrpc.toml"
    file.write_text(f'[platforms.desk]\nextends = "posix"\n{entry}\n')
    return Target.named("desk", platforms_file=file, **given)  # type: ignore[arg-type]


def flashed(port: Path) -> int:
    log = Path(f"{port}.log")
    return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture
def other(port: Path) -> Path:
    """The board, with another build of the firmware in its flash."""
    elf = of_another_build(build(Target.named("posix")).elf, port.parent / "other")
    subprocess.run(["sh", "-c", INSTALL, port, elf], check=True)
    return port


def test_a_board_that_runs_another_build_is_flashed_once(other: Path) -> None:
    port = other
    flash = f"sh -c '{FLASH}' {{port}} {{elf}}"
    boards = port.parent / "map.yml"
    boards.write_text(boards.read_text().replace("platform: desk", "platform: posix"))
    (port.parent / "f.c").write_text("int f(int x) { return x + 1; }\n")
    desk = Target.named("posix", hardware_map=boards, flash_command=flash, flash="auto")
    wanted = read_program(build(desk).elf).build_id
    for _ in range(2):
        with open_device(desk) as device:
            assert device.load(port.parent / "f.c").f(2) == 3
            assert device.info().build_id == wanted
        assert flashed(port) == 1
    with start(desk.changed(flash="always")):
        assert flashed(port) == 2


def test_a_board_without_a_map_is_flashed_at_its_port(other: Path) -> None:
    """The command's {port} is the port that was named; its {id} is in a map only."""
    desk = Target.named("posix", serial_port=str(other), flash_command=f"sh -c '{FLASH}' {{port}} {{elf}}")
    with start(desk.changed(flash="auto")):
        assert flashed(other) == 1
    for command, message, step in (
        (
            "st-flash {id}",
            "`st-flash {id}` takes the board's id, and none is known",
            "a hardware map names it",
        ),
        ("bossac {port}", "takes the board's port, and none is known", "--serial-port or a hardware map"),
    ):
        with pytest.raises(ConfigurationError, match=message) as caught:
            flash(build(Target.named("posix", flash_command=command)))
        assert step in caught.value.next_step
    no_reset = "no reset: `openocd {id}` takes the board's id"
    desk = desk.changed(reset_command="openocd {id}")
    with start(desk) as running, pytest.raises(ResetError, match=no_reset):
        running.reset(Deadline("reset", TOTAL_S))


@pytest.mark.parametrize(
    ("command", "message", "detail"),
    [
        ("sh -c 'echo no probe found; exit 3'", "the flash runner failed: exit status 3", "no probe found"),
        ("true", "runs build .* after flashing, not", "belong to the same board"),
    ],
)
def test_a_flash_that_fails_says_why_and_the_command(
    other: Path, command: str, message: str, detail: str
) -> None:
    port = other
    desk = target(port, f'flash_command = "{command}"', serial_port=str(port), flash="auto")
    with pytest.raises(FlashError, match=message) as caught:
        open_device(desk)
    assert detail in str(caught.value)
    with open_device(serial_port=str(port)) as device:  # The port and its lock are free again.
        assert device.system_lib()["inc"](1) == 2


def hang(pool: PooledBoard) -> None:
    running, _ = pool.start()
    with connect(running, call_timeout_s=0.3) as device, pytest.raises(DeadlineError):
        device.system_lib()["testing.hang"]()
    running.stop()


@pytest.mark.parametrize(("key", "step"), [("reset_command", "reset"), ("power_command", "power")])
def test_a_board_that_hangs_is_recovered(port: Path, key: str, step: str) -> None:
    said: list[str] = []
    entry = f"{key} = \"sh -c '{PRESSED}' {{port}}\""
    desk = target(port, entry, hardware_map=port.parent / "map.yml", session_timeout_s=1.0)
    pool = PooledBoard(desk, Deadline("run", TOTAL_S), said.append)
    hang(pool)
    running, _ = pool.start()
    assert f"recovered by {step}" in said[-1]
    running.stop()
    pool.release()


def on_posix(port: Path, script: str = "") -> tuple[Target, Path]:
    """A target of a map whose board is flashed by a command, and the map."""
    boards = port.parent / "map.yml"
    boards.write_text(boards.read_text().replace("platform: desk", f"{script}platform: posix"))
    flash = f"sh -c '{FLASH}' {{port}} {{elf}}"
    return Target.named("posix", hardware_map=boards, flash_command=flash, flash="auto"), boards


def test_a_board_that_nothing_resets_is_flashed(port: Path) -> None:
    """It is flashed only after a session was tried; then the device knows its firmware again."""
    said: list[str] = []
    desk, _ = on_posix(port)
    pool = PooledBoard(desk.changed(session_timeout_s=1.0), Deadline("run", TOTAL_S), said.append)
    hang(pool)
    assert flashed(port) == 0
    running, firmware = pool.start()
    assert flashed(port) == 1
    assert "recovered by flash" in said[-1]
    assert firmware is not None
    running.stop()
    again, firmware = pool.start()
    assert flashed(port) == 1
    assert firmware is again.firmware is not None
    again.stop()
    pool.release()


def test_a_script_runs_after_a_flash_only(port: Path) -> None:
    log = port.parent / "scripts"
    desk, boards = on_posix(port, f"post_flash_script: \"sh -c 'echo flashed >> {log}'\", ")
    with start(desk):
        assert not log.exists()
    with start(desk.changed(flash="always")):
        assert log.read_text() == "flashed\n"
    boards.write_text(boards.read_text().replace("echo flashed >", "echo no relay; exit 7; echo >"))
    with pytest.raises(HarnessError, match="post_flash_script of B1 failed with status 7") as caught:
        start(desk.changed(flash="always"))
    assert "no relay" in str(caught.value)


def test_a_board_that_can_not_be_recovered_is_in_quarantine(port: Path) -> None:
    desk = target(port, "", hardware_map=port.parent / "map.yml", session_timeout_s=1.0)
    pool = PooledBoard(desk, Deadline("run", TOTAL_S), lambda text: None)
    hang(pool)
    with pytest.raises(HarnessError, match="every desk of the hardware map is in quarantine"):
        pool.start()
    (board,) = load_hardware_map(port.parent / "map.yml")
    assert "session: " in quarantine_of(board)


def test_scripts_of_the_map_run_before_and_after(port: Path) -> None:
    log = port.parent / "scripts"
    scripts = f"pre_script: \"sh -c 'echo pre >> {log}'\", post_script: \"sh -c 'echo post >> {log}'\""
    file = port.parent / "map.yml"
    file.write_text(file.read_text().replace("runner:", f"{scripts}, runner:"))
    desk = target(port, "", hardware_map=file)
    with start(desk):
        assert log.read_text() == "pre\n"
    assert log.read_text() == "pre\npost\n"
    file.write_text(file.read_text().replace("echo pre", "echo no relay; exit 7; echo pre"))
    with pytest.raises(HarnessError, match="pre_script of B1 failed with status 7") as caught:
        start(desk)
    assert "no relay" in str(caught.value)
