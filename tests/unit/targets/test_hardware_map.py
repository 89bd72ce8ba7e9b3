# SPDX-License-Identifier: Apache-2.0
"""Twister's hardware maps, read unchanged, and the boards that they name."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from minrpc import ConfigurationError
from minrpc.firmware import Workspace, firmware_root, workspaces
from minrpc.targets import load_hardware_map
from minrpc.targets.hardware_map import HardwareBoard, boards_for, runner_of

MAP = """
- connected: true
  id: 000683759358
  platform: nrf52840dk/nrf52840 nrf52840dk/nrf52811
  product: J-Link
  runner: nrfjprog
  serial: /dev/ttyACM0
  baud: 9600
  fixtures: [gpio_loopback]
  pre_script: /bin/true
  script_param: {pre_script_timeout: 7}
- connected: true
  id: 066A
  platform: [nucleo_f746zg]
  product: STM32 STLink
  runner: openocd
  runner_params: [--cmd-pre-load, init]
  serial: rfc2217://rack:4000
- connected: false
  id: away
  platform: reel_board
  product: x
  runner: pyocd
  serial: null
- connected: true
  id: None
  platform: intel_adsp/cavs25
  product: None
  runner: intel_adsp
  serial_pty: path/to/script.py
"""


@pytest.fixture
def boards(tmp_path: Path) -> tuple[HardwareBoard, ...]:
    (tmp_path / "map.yml").write_text(MAP)
    return load_hardware_map(tmp_path / "map.yml")


def test_the_fields_of_an_entry(boards: tuple[HardwareBoard, ...]) -> None:
    first, second, third = boards
    assert (first.id, first.link, first.baud) == ("000683759358", "/dev/ttyACM0", 9600)
    assert first.platforms == ("nrf52840dk/nrf52840", "nrf52840dk/nrf52811")
    assert first.script_timeout("pre_script") == 7
    assert first.script_timeout("post_flash_script") == 60
    assert second.flash_arguments == (
        "--runner",
        "openocd",
        "--cmd-pre-init",
        "hla_serial 066A",
        "--cmd-pre-load",
        "init",
    )
    assert (third.link, third.flash_arguments) == ("exec:path/to/script.py", ("--runner", "intel_adsp"))


@pytest.mark.parametrize(
    ("facts", "arguments"),
    [
        ("id: 1, runner: pyocd", ("--runner", "pyocd", "--dev-id", "1")),
        ("id: 1, probe_id: 0011, runner: pyocd", ("--runner", "pyocd", "--dev-id", "0011")),
        ("id: 1, runner: unknown, runner_params: [--x]", ("--x",)),
        (
            "id: 1, runner: openocd, product: LPC-LINK2 CMSIS-DAP",
            ("--runner", "openocd", "--cmd-pre-init", "adapter serial 1"),
        ),
        ("id: 1, runner: openocd, product: FT2232", ("--runner", "openocd")),
        (
            "id: 1, probe_id: 2, runner: openocd, product: FT2232",
            ("--runner", "openocd", "--cmd-pre-init", "adapter serial 2"),
        ),
        ("id: 1, runner: dediprog", ("--runner", "dediprog")),
        (
            "id: 1, runner: stm32cubeprogrammer, product: BOOT-SERIAL",
            ("--runner", "stm32cubeprogrammer"),
        ),
    ],
)
def test_the_probe_as_its_runner_takes_it(facts: str, arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "map.yml").write_text(f"- {{connected: true, platform: x, serial: /dev/ttyACM0, {facts}}}\n")
    assert load_hardware_map(tmp_path / "map.yml")[0].flash_arguments == arguments


@pytest.mark.parametrize(
    "product", ["STM32 STLink", "STLINK-V3", "ST-Link V2-1", "STLink", "XDS110 (03.00.00)"]
)
def test_openocd_takes_the_probe_of_each_product_that_scan_gives_it(product: str) -> None:
    assert runner_of(product) == "openocd"
    board = HardwareBoard("066A", ("x",), product=product, runner="openocd", serial="/dev/ttyACM0")
    command = "xds110_serial" if "XDS" in product else "hla_serial"
    assert board.flash_arguments == ("--runner", "openocd", "--cmd-pre-init", f"{command} 066A")


@pytest.mark.parametrize("workspace", workspaces(firmware_root()), ids=lambda workspace: workspace.version)
def test_wests_runners_take_the_arguments(workspace: Workspace) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from runners.core import ZephyrBinaryRunner as R\nimport runners\n"
        "print(*((c.name(), c.capabilities().dev_id) for c in R.get_runners()), sep='\\n')"
    )
    scripts = workspace.base / "scripts" / "west_commands"
    text = subprocess.check_output([sys.executable, "-c", program, str(scripts)], text=True)
    runners = dict(map(ast.literal_eval, text.splitlines()))
    assert len(runners) > 20
    for name, takes in runners.items():
        board = HardwareBoard("066A", ("x",), runner=name, serial="/dev/ttyACM0")
        assert takes or "--dev-id" not in board.flash_arguments, name


def test_a_board_by_each_of_its_names(boards: tuple[HardwareBoard, ...]) -> None:
    for name in ("nucleo_f746zg", "nucleo_f746zg/stm32f746xx"):
        assert [board.id for board in boards_for(boards, name)] == ["066A"]
    assert boards_for(boards, "nrf52840dk_nrf52811")[0].baud == 9600
    assert not boards[1].is_a("nucleo_f746")
    with pytest.raises(ConfigurationError, match="the hardware map has no nucleo_f746zh") as caught:
        boards_for(boards, "nucleo_f746zh")
    assert caught.value.next_step == "did you mean nucleo_f746zg"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "is no list of boards"),
        ("- 1", "entry 1 is no table"),
        (
            "- {connected: true, serial: /dev/a}",
            "entry 1: platform: must be a board's name, or a list, not None",
        ),
        ("- {connected: true, platform: x}", "entry 1 is connected, without serial: or serial_pty:"),
        ("- {serial: /dev/a, platform: x, runer: y}", "entry 1: runer: unknown key"),
        ("- {serial: /dev/a, platform: x, script_param: 3}", "script_param: must give seconds"),
        (
            "- {id: 1, serial: /dev/a, platform: x}\n- {id: 2, serial: /dev/a, platform: x}",
            "1 and 2 are both at",
        ),
        ("- [", "is no YAML"),
    ],
)
def test_a_map_that_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "map.yml").write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        load_hardware_map(tmp_path / "map.yml")


def test_a_map_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="can't be read: No such file"):
        load_hardware_map(tmp_path / "map.yml")


@pytest.mark.parametrize("workspace", workspaces(firmware_root()), ids=lambda workspace: workspace.version)
def test_every_map_of_zephyrs_own_documentation(workspace: Workspace, tmp_path: Path) -> None:
    page = (workspace.base / "doc" / "develop" / "test" / "twister.rst").read_text()
    blocks = re.findall(r"(?m)^( *)\.\. code-block:: yaml\n\n((?:\1 +\S.*\n|\n)+)", page)
    maps = [textwrap.dedent(block) for _, block in blocks if "connected:" in block]
    assert len(maps) >= 6
    for text in maps:
        (tmp_path / "map.yml").write_text(text)
        connected = len(re.findall(r"(?m)^ *-? *connected: true", text))
        assert len(load_hardware_map(tmp_path / "map.yml")) == connected
