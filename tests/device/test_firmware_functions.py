# SPDX-License-Identifier: Apache-2.0
"""The functions of the firmware itself, by name; and a program that the harness did not build."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import minrpc
import numpy as np
import pytest
from minrpc import ConfigurationError, Device, Firmware, LoadedLibrary, LoadError, build, connect, start
from minrpc.library import toolset_of
from minrpc.library.loading import firmware_from
from minrpc.program import read_program

from tests.native import of_another_build

pytestmark = pytest.mark.once

Load = Callable[..., LoadedLibrary]


@pytest.fixture(autouse=True)
def can_load(load: Load) -> None:
    """Calls of the firmware's functions are compiled and loaded."""


def test_by_name_with_their_types(device: Device) -> None:
    crc = device.firmware.minrpc_crc32
    assert crc.prototype == "uint32_t minrpc_crc32(uint32_t crc, const void *data, uint32_t size)"
    data = np.arange(100, dtype=np.uint8)
    assert crc(0, data, 100) == zlib.crc32(data.tobytes())
    assert crc(0, b"123456789", 9) == 0xCBF43926
    assert crc is device.firmware["minrpc_crc32"]
    firmware = minrpc.library_of(device.firmware)
    assert firmware["minrpc_crc32"].size == firmware.symbols.sizes["minrpc_crc32"] > 8
    assert {"minrpc_crc32", "minrpc_server_receive"} <= set(dir(device.firmware))


def test_they_are_not_the_build(device: Device, tmp_path: Path) -> None:
    (tmp_path / "one.c").write_text("int one(void) { return 1; }")
    with pytest.raises(
        ConfigurationError, match=r"firmware= takes a build, minrpc\.Firmware, not a CFunctions"
    ):
        device.load(tmp_path / "one.c", firmware=device.firmware)  # type: ignore[arg-type]
    assert device.load(tmp_path / "one.c").one() == 1


def test_timed_like_any_other(device: Device) -> None:
    timed = minrpc.measure(device.firmware, "minrpc_crc32", number=5)
    assert timed(0, b"1234", 4).summary.median > 0


def test_a_name_that_is_not_there(device: Device) -> None:
    with pytest.raises(AttributeError, match=r"has no function 'minrpc_crc' .*did you mean minrpc_crc32"):
        _ = device.firmware.minrpc_crc
    with pytest.raises(AttributeError, match="did you mean minrpc_crc32"):
        minrpc.measure(device.firmware, "minrpc_crc")
    with pytest.raises(KeyError, match="did you mean minrpc_crc32"):
        _ = device.firmware["minrpc_crc"]


@pytest.mark.once
def test_its_types_and_variables(device: Device) -> None:
    config = minrpc.types(device.firmware).minrpc_config
    assert config(receive_size=5).receive_size == 5
    with pytest.raises(AttributeError, match="has no variable 'no_such'"):
        _ = minrpc.variables(device.firmware).no_such


def test_in_the_next_session_too(device: Device) -> None:
    assert device.firmware.minrpc_crc32(0, b"123456789", 9) == 0xCBF43926
    device.rpc.restart()
    assert device.firmware.minrpc_crc32(0, b"123456789", 9) == 0xCBF43926


def test_a_program_of_somebody_else(
    device: Device, firmware: Firmware | None, tmp_path: Path, load: Load
) -> None:
    """Without compile_commands.json, the program's debug information gives its compiler and flags."""
    if firmware is None:
        pytest.skip("the program of a board is its own")
    elf = tmp_path / "theirs.elf"
    shutil.copy2(firmware.elf, elf)
    theirs = firmware_from(firmware.target, elf)
    (tmp_path / "twice.c").write_text("double twice(double x) { return 2 * x; }\n")
    if firmware.platform.port == "zephyr":
        assert set(toolset_of(theirs).flags) & set(toolset_of(firmware).flags)
        return
    assert device.load(tmp_path / "twice.c", firmware=theirs).twice(1.25) == 2.5


def test_a_firmware_that_was_built_again_in_its_place(firmware: Firmware | None, tmp_path: Path) -> None:
    """Code that was linked against the first build is not loaded with the second build."""
    if firmware is None or firmware.platform.port == "zephyr" or firmware.platform.starts == "rtl":
        pytest.skip("built in a few seconds: the firmware of bare machines and of this machine")
    options = (*firmware.platform.cmake_options, "-DMINRPC_ABANDON=OFF")
    (tmp_path / "check.c").write_text(
        "unsigned minrpc_crc32(unsigned crc, const void *data, unsigned size);\n"
        'unsigned check(void) { return minrpc_crc32(0, "123456789", 9); }\n'
    )
    elf, addresses = tmp_path / "firmware.elf", set()
    for built in (firmware, build(firmware.target.changed(cmake_options=options))):
        shutil.copy2(built.elf, elf)
        shutil.copy2(built.build_dir / "compile_commands.json", tmp_path)
        addresses.add(read_program(elf).symbols.addresses["minrpc_crc32"])
        with start(firmware_from(firmware.target, elf)) as running, connect(running) as device:
            assert device.load(tmp_path / "check.c").check() == 0xCBF43926
    assert len(addresses) == 2


@pytest.mark.parametrize(
    ("port", "step"),
    [
        (None, "it was built again: open the device again, which starts it"),
        ("/dev/ttyACM0", "flash this build: --flash auto"),
    ],
)
def test_a_build_directory_that_was_built_again_while_the_first_build_runs(
    device: Device,
    firmware: Firmware | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    port: str | None,
    step: str,
) -> None:
    if firmware is None or not device.info().build_id:
        pytest.skip("the device does not know its build")
    (tmp_path / "one.c").write_text("int one(void) { return 1; }")
    theirs = replace(
        firmware,
        elf=of_another_build(firmware.elf, tmp_path / "zephyr.elf"),
        target=replace(firmware.target, build_dir=tmp_path, serial_port=port),
    )
    monkeypatch.setattr(device.owner, "firmware", theirs)
    with pytest.raises(LoadError, match=r"runs build [0-9a-f]{16}, zephyr.elf is build") as told:
        device.load(tmp_path / "one.c")
    assert told.value.next_step == step
    monkeypatch.undo()
    assert device.load(tmp_path / "one.c").one() == 1


def test_a_file_that_is_no_program(firmware: Firmware | None, tmp_path: Path) -> None:
    if firmware is None:
        pytest.skip("there is no target to give it to")
    with pytest.raises(LoadError, match="is no program"):
        firmware_from(firmware.target, tmp_path)
    (tmp_path / "text").write_text("no")
    with pytest.raises(LoadError, match="is no program"):
        firmware_from(firmware.target, tmp_path / "text")
