# SPDX-License-Identifier: Apache-2.0
"""The selected devices, and the reasons for omitted devices."""

from pathlib import Path

import pytest
from minrpc import PLATFORMS, ConfigurationError, Platform
from minrpc.pipeline import Requirement, Selection, select
from minrpc.targets import Options, TargetFields

GCC = Requirement(
    "compiler", problem="arm-none-eabi-gcc is not installed", command="sudo apt-get install gcc-arm"
)
QEMU = Requirement("qemu-system-arm", problem="not installed", command="sudo apt-get install qemu")


def nothing_missing(platform: Platform) -> list[Requirement]:
    """A machine with all tools."""
    return []


def no_arm(platform: Platform) -> list[Requirement]:
    """A machine without tools for Arm."""
    return [GCC, QEMU] if platform.arch == "arm" else []


@pytest.fixture(autouse=True)
def _no_user_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def names(selection: Selection) -> list[str]:
    """The tests' own platforms."""
    return [target.name for target in selection.targets]


def test_all_defaults_that_can_run() -> None:
    selection = select(Options(), nothing_missing)
    assert names(selection) == [name for name, platform in PLATFORMS.items() if platform.default]
    assert not selection.left_out


def test_a_default_that_cannot_run_is_left_out_with_its_reason() -> None:
    selection = select(Options(), no_arm)
    assert "bare_mps2_an385" not in names(selection)
    assert selection.left_out["bare_mps2_an385"] == (
        "compiler: arm-none-eabi-gcc is not installed; qemu-system-arm: not installed "
        "(sudo apt-get install gcc-arm qemu)"
    )


def test_a_platform_that_was_named_and_cannot_run_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="bare_mps2_an385 can't run here") as caught:
        select(Options(platforms=("posix", "bare_mps2_an385")), no_arm)
    assert "arm-none-eabi-gcc is not installed" in str(caught.value)
    assert caught.value.next_step == "sudo apt-get install gcc-arm qemu"


def test_a_group_is_those_of_it_that_can_run() -> None:
    fast = [name for name, platform in PLATFORMS.items() if platform.starts != "rtl"]
    bare = [name for name in fast if PLATFORMS[name].port == "baremetal"]
    assert names(select(Options(platforms=("bare",)), nothing_missing)) == bare
    assert names(select(Options(platforms=("all",)), nothing_missing)) == fast
    selection = select(Options(platforms=("bare",)), no_arm)
    assert names(selection) == [name for name in bare if PLATFORMS[name].arch != "arm"]
    assert "arm-none-eabi-gcc is not installed" in selection.left_out["bare_mps2_an385"]


def test_a_platform_that_is_named_beside_its_group_is_tested_once_and_must_run() -> None:
    selection = select(Options(platforms=("bare_rv32", "bare")), no_arm)
    assert names(selection).count("bare_rv32") == 1
    with pytest.raises(ConfigurationError, match="bare_mps2_an385 can't run here"):
        select(Options(platforms=("bare", "bare_mps2_an385")), no_arm)


def test_an_unknown_name_proposes_one() -> None:
    with pytest.raises(ConfigurationError, match="did you mean posix"):
        select(Options(platforms=("posxi",)), nothing_missing)


def test_exact_time_is_for_emulators() -> None:
    with pytest.raises(ConfigurationError, match="posix: it does not run under QEMU"):
        select(Options(("posix",), given={"timing": "exact"}), nothing_missing)
    selection = select(Options(given={"timing": "exact"}), nothing_missing)
    assert "posix" not in names(selection)
    assert "does not run under QEMU" in selection.left_out["posix"]


def test_a_port_needs_no_platform_and_nothing_installed() -> None:
    (target,) = select(Options(given={"serial_port": "/dev/ttyUSB0"}), no_arm).targets
    assert (target.name, target.serial_port, target.platform.baud) == ("board", "/dev/ttyUSB0", 115200)


def test_a_board_need_not_be_in_the_table() -> None:
    options = Options(("nucleo_f746zg",), given={"serial_port": "/dev/ttyACM0", "baud": 9600})
    (target,) = select(options, no_arm).targets
    assert (target.name, target.platform.zephyr_board, target.platform.baud) == ("nucleo_f746zg", "", 9600)


def test_a_board_of_the_users_file_has_its_own_rate(tmp_path: Path) -> None:
    file = tmp_path / "boards.toml"
    file.write_text('[platforms.mine]\nzephyr_board = "x"\nbaud = 57600\n')
    options = Options(("mine",), file, {"serial_port": "/dev/ttyACM0"})
    (target,) = select(options, no_arm).targets
    assert (target.platform.baud, target.platform.zephyr_board) == (57600, "x")


@pytest.mark.parametrize(("name", "limits"), [("build", (7.0, 60.0)), ("mine", (7.0, 8.0))])
def test_a_finished_build_has_the_options_of_minrpc_toml(
    tmp_path: Path, name: str, limits: tuple[float, float]
) -> None:
    """It has the options of all platforms, and the options of an entry with its name."""
    file = tmp_path / "other.toml"
    file.write_text(
        "[device]\nsession_timeout_s = 7\n[platforms.mine]\nzephyr_board = 'm'\ncall_timeout_s = 8\n"
    )
    named = () if name == "build" else (name,)
    (target,) = select(Options(named, file, {"build_dir": tmp_path / "build"})).targets
    assert (target.name, target.build_dir) == (name, tmp_path / "build")
    assert (target.session_timeout_s, target.call_timeout_s) == limits


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"baud": 9600}, "--baud"),
        ({"timing": "board"}, "--timing board"),
        ({"wait_board_s": 3.0}, "--wait-board"),
        ({"flash": "auto"}, "--flash auto"),
    ],
)
def test_an_option_of_boards_needs_one(given: TargetFields, option: str) -> None:
    for options in (Options(("posix",), given=given), Options(given={"build_dir": Path("b"), **given})):
        with pytest.raises(ConfigurationError, match=f"^{option} is for a board: (posix|b) is started anew"):
            select(options, nothing_missing)
    select(Options(given={"serial_port": "/dev/ttyACM0", **given}), nothing_missing)


def test_an_elf_file_needs_a_port() -> None:
    with pytest.raises(ConfigurationError, match="names the program at a serial port, which is not started"):
        select(Options(("posix",), given={"elf": Path("a.elf")}), nothing_missing)
