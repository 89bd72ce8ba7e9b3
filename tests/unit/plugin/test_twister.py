# SPDX-License-Identifier: Apache-2.0
"""twister's own options as the fixture `device` takes them, and a board behind a program's terminal."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from minrpc import ConfigurationError, Target, build, open_device
from minrpc.pipeline import select
from minrpc.plugin.twister import as_twister_says, runs_here
from minrpc.targets import Options

BUILD = Path("/out/mps2_an385/sample")
BOARD = {"--twister-harness": True, "--build-dir": str(BUILD), "--device-type": "hardware"}


class Twister:
    """The options of twister's pytest plugin, in the form of pytest's configuration."""

    def __init__(self, ends: ExitStack) -> None:
        self.given: dict[str, Any] = {}
        self._ends = ends

    def getoption(self, name: str, default: object) -> object:
        return self.given.get(name, default)

    def add_cleanup(self, end: Callable[[], None]) -> None:
        self._ends.callback(end)

    def says(self, **given: object) -> Options:
        options = {f"--{name.replace('_', '-')}": value for name, value in given.items()}
        self.given = {**BOARD, "--platform": "acme", **options}
        return as_twister_says(cast("pytest.Config", self), Options())


@pytest.fixture
def twister() -> Iterator[Twister]:
    with ExitStack() as ends:
        yield Twister(ends)


def test_elsewhere_nothing_changes(twister: Twister) -> None:
    assert not runs_here(cast("pytest.Config", twister))
    assert as_twister_says(cast("pytest.Config", twister), Options()) == Options()


def test_qemu_and_processes_are_started_from_the_build(twister: Twister) -> None:
    for kind in ("qemu", "native", "custom"):
        said = twister.says(device_type=kind)
        assert said == Options(("acme",), given={"build_dir": BUILD})


def test_a_build_without_a_platform_names_its_own(twister: Twister, tmp_path: Path) -> None:
    (tmp_path / "zephyr").mkdir()
    (tmp_path / "zephyr" / ".config").write_text('CONFIG_BOARD="mps2"\nCONFIG_BOARD_TARGET="mps2/an385"\n')
    said = twister.says(device_type="qemu", build_dir=str(tmp_path), platform=None)
    assert said.platforms == ("mps2/an385",)
    with pytest.raises(ConfigurationError, match="is no build of Zephyr"):
        twister.says(device_type="qemu", platform=None)


def test_a_board_is_flashed_as_twister_would(twister: Twister) -> None:
    said = twister.says(
        device_serial="/dev/ttyACM0",
        runner="pyocd",
        device_id="066A",
        west_flash_extra_args="--erase,--speed=4000",
    )
    assert said.given.get("serial_port") == "/dev/ttyACM0"
    words = ("--runner", "pyocd", "--dev-id", "066A", "--", "--erase", "--speed=4000")
    assert said.given.get("flash_arguments") == words
    assert (said.given.get("flash"), said.given.get("flash_command")) == ("always", None)
    select(replace(said, given={**said.given, "timing": "board", "wait_board_s": 3.0}))
    said = twister.says(device_serial="/dev/ttyACM0", device_id="066A", flash_command='./f.sh,"a, b"')
    assert said.given.get("flash_command") == "./f.sh --build-dir '{build}' --board-id 066A 'a, b'"


def test_a_board_without_a_port(twister: Twister) -> None:
    with pytest.raises(ConfigurationError, match="names no serial port for RPC"):
        twister.says()


def test_a_board_behind_a_program(twister: Twister) -> None:
    """With --device-serial-pty the program's input and output are the board's serial port."""
    program = str(build(Target.named("posix")).elf)
    said = twister.says(device_serial_pty=f"{shlex.quote(program)},--fd,0")
    with open_device(serial_port=said.given["serial_port"]) as device:
        assert device.system_lib()["inc"](41) == 42
    with pytest.raises(ConfigurationError, match="/no/such/program can't be run"):
        twister.says(device_serial_pty="/no/such/program")
