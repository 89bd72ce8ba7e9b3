# SPDX-License-Identifier: Apache-2.0
"""The device reports its board; a board other than the named board is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from minrpc import DeadlineError, DeviceInfo, Target, WrongBoardError, build, open_device, start
from minrpc.client import RpcClient
from minrpc.firmware import Workspace, firmware_root, workspaces
from minrpc.names import same_board

from tests.native import qemu_on_stdio


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a device that reports the board nucleo_f746zg/stm32f746xx."""
    asked = RpcClient.device_info

    def told(self: RpcClient, timeout_s: float | None = None) -> DeviceInfo:
        return replace(asked(self, timeout_s), board="nucleo_f746zg/stm32f746xx")

    monkeypatch.setattr(RpcClient, "device_info", told)
    return f"exec:{build(Target.named('posix')).elf} --fd 0"


@pytest.mark.parametrize("name", [None, "nucleo_f746zg", "nucleo_f746zg/stm32f746xx"])
def test_the_board_that_was_named(link: str, name: str | None) -> None:
    with open_device(Target.named(name, serial_port=link)) as device:
        assert device.info().board == "nucleo_f746zg/stm32f746xx"


def test_the_program_that_runs_is_known_by_its_build_id(link: str, tmp_path: Path) -> None:
    """An error names the line of loaded code, though nobody has named the firmware."""
    source = tmp_path / "ticks.c"
    source.write_text("int tick(void);\nint waits(void)\n{\n\twhile (tick() == 0) {\n\t}\n\treturn 1;\n}\n")
    with open_device(Target.named(None, serial_port=link)) as device:
        lib = device.load(source, fakes={"tick": lambda: 0})
        with pytest.raises(DeadlineError) as caught:
            lib["waits"].with_timeout(0.3)()
    assert caught.value.details[0] == "it asked Python for tick, in waits at ticks.c:4"


@pytest.mark.parametrize("name", ["nucleo_h743zi", "bare_microbit"])
def test_another_board_is_refused(link: str, name: str) -> None:
    with start(Target.named(name, serial_port=link)) as running:
        with pytest.raises(WrongBoardError, match=f"is nucleo_f746zg/stm32f746xx, not {name}") as caught:
            open_device(running)
        assert "--platform nucleo_f746zg/stm32f746xx" in caught.value.next_step


def test_names_of_one_board() -> None:
    assert same_board("mps2/an385", "mps2_an385")
    assert same_board("qemu_x86/atom", "qemu_x86")
    assert not same_board("nrf5340dk/nrf5340/cpuapp", "nrf5340dk/nrf5340/cpunet")
    assert not same_board("qemu_x86", "qemu_x86_64")


@pytest.mark.slow
@pytest.mark.parametrize("workspace", workspaces(firmware_root()), ids=lambda workspace: workspace.version)
def test_zephyrs_firmware_tells_its_board(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZEPHYR_BASE", str(workspace.base))
    firmware = build(Target.named("qemu_x86"))
    with open_device(firmware) as device:
        assert same_board(device.info().board, "qemu_x86")
    link = f"exec:{qemu_on_stdio(firmware)}"
    refused = pytest.raises(WrongBoardError, match="is qemu_x86/atom, not nucleo_f746zg")
    with start(Target.named("nucleo_f746zg", serial_port=link, session_timeout_s=60)) as running, refused:
        open_device(running)
