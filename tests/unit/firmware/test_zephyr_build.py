# SPDX-License-Identifier: Apache-2.0
"""The start of firmware in a build that this package did not make."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from minrpc import ConfigurationError, Platform, Target
from minrpc.firmware import firmware_root, workspaces
from minrpc.firmware.flash import check_flashable
from minrpc.firmware.zephyr_build import board_of, firmware_in

from tests.native import need_tools

CONFIG = """# Zephyr
CONFIG_BOARD="mps2"
CONFIG_BOARD_TARGET="mps2/an385"
CONFIG_MINRPC=y
CONFIG_UART_CONSOLE=y
"""
DTS = """/dts-v1/;
/ {
	chosen { zephyr,console = &uart0; minrpc,uart = &uart1; };
	uart0: uart@1000 { compatible = "arm,cmsdk-uart"; current-speed = <115200>; };
	uart1: uart@2000 { compatible = "arm,cmsdk-uart"; current-speed = <9600>; };
};
"""
NINJA = """rule run
  command = cd {0} && /usr/bin/qemu-system-arm -machine mps2-an385 -kernel {0}/zephyr/zephyr.elf
build run_qemu: run
"""

# As Zephyr 4.2's sysbuild writes it.
DOMAINS = """default: hello
build_dir: {0}
domains:
  - name: mcuboot
    build_dir: {0}/mcuboot
  - name: hello
    build_dir: {0}/hello
flash_order:
  - mcuboot
  - hello"""


@pytest.fixture
def build_dir(tmp_path: Path) -> Path:
    found = workspaces(firmware_root())
    if not found:
        pytest.skip("no Zephyr is here, whose parser reads devicetrees")
    need_tools("ninja")
    zephyr = tmp_path / "zephyr"
    zephyr.mkdir()
    (zephyr / ".config").write_text(CONFIG)
    (zephyr / "zephyr.dts").write_text(DTS)
    (zephyr / "zephyr.elf").write_bytes(b"\x7fELF tvm.rpc.server.x")
    (tmp_path / "CMakeCache.txt").write_text(f"ZEPHYR_BASE:PATH={found[0].base}\n")
    (tmp_path / "build.ninja").write_text(NINJA.format(tmp_path))
    return tmp_path


def target(**given: str) -> Target:
    return replace(Target(Platform("theirs", port="zephyr", starts="board")), **given)  # type: ignore[arg-type]


def test_its_run_target_says_how_qemu_runs_it(build_dir: Path) -> None:
    platform = firmware_in(target(), build_dir).platform
    assert (platform.starts, platform.qemu) == ("qemu", "qemu-system-arm")
    assert (platform.link_uart, platform.console_uart, platform.baud) == (1, 0, 9600)
    assert board_of(build_dir) == "mps2/an385"
    with pytest.raises(ConfigurationError, match="it runs under QEMU"):
        check_flashable(platform)


def test_an_image_of_the_program_before_is_made_again(build_dir: Path) -> None:
    """Zephyr makes the images of a 64-bit x86 only for its run target."""
    program, image = build_dir / "zephyr" / "zephyr.elf", build_dir / "zephyr" / "image.elf"
    (build_dir / "build.ninja").write_text(
        NINJA.format(build_dir).replace(f"-kernel {build_dir}/zephyr/zephyr.elf", f"-kernel {image}")
        + f"rule copy\n  command = cp {program} {image}\nbuild qemu_kernel_target: copy\n"
    )
    for version in (b"1", b"2"):
        program.write_bytes(b"\x7fELF tvm.rpc.server.x" + version)
        firmware = firmware_in(target(), build_dir)
        assert Path(firmware.qemu_argv[-1]).read_bytes() == program.read_bytes()


def test_at_a_serial_port_it_is_a_board_that_is_flashed(build_dir: Path) -> None:
    platform = firmware_in(target(serial_port="/dev/ttyACM0"), build_dir).platform
    assert platform.starts == "board"
    check_flashable(platform)


def test_the_application_of_a_sysbuild(build_dir: Path) -> None:
    application = build_dir / "hello"
    application.mkdir()
    for name in ("zephyr", "CMakeCache.txt", "build.ninja"):
        (build_dir / name).rename(application / name)
    (build_dir / "domains.yaml").write_text(DOMAINS.format(build_dir))
    assert firmware_in(target(), build_dir).elf == application / "zephyr" / "zephyr.elf"
    assert board_of(build_dir) == "mps2/an385"


def test_a_build_without_the_module(build_dir: Path) -> None:
    (build_dir / "zephyr" / ".config").write_text("CONFIG_BOARD=x\n")
    with pytest.raises(ConfigurationError, match="has no MinRPC"):
        firmware_in(target(), build_dir)


def test_a_build_whose_application_does_not_start_the_server(build_dir: Path) -> None:
    (build_dir / "zephyr" / "zephyr.elf").write_bytes(b"\x7fELF")
    with pytest.raises(ConfigurationError, match="does not start MinRPC's server") as caught:
        firmware_in(target(), build_dir)
    assert "call minrpc_start()" in caught.value.next_step


def test_a_build_that_listens_is_not_started(build_dir: Path) -> None:
    config = build_dir / "zephyr" / ".config"
    config.write_text(f"{CONFIG}CONFIG_MINRPC_LINK_TCP=y\nCONFIG_MINRPC_LINK_TCP_PORT=9190\n")
    with pytest.raises(ConfigurationError, match="listens on TCP") as caught:
        firmware_in(target(), build_dir)
    assert "socket://HOST:9190" in caught.value.next_step
    assert firmware_in(target(serial_port="socket://rack:9190"), build_dir).platform.starts == "board"
