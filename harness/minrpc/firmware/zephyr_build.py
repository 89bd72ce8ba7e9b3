# SPDX-License-Identifier: Apache-2.0
"""A firmware that `west build`, twister or an IDE has built. Nothing is built here."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from minrpc.errors import ConfigurationError
from minrpc.firmware.firmware import Firmware
from minrpc.firmware.inputs import ninja
from minrpc.firmware.recipes import configured_shift, make_images
from minrpc.firmware.zephyr_boards import BuiltTree, read_built_tree
from minrpc.targets import Platform, Target
from minrpc.targets.qemu_command import find_qemu
from minrpc.targets.table import Start

# Part of the names of its functions.
_SERVER: Final = b"tvm.rpc.server."


def firmware_in(target: Target, build_dir: Path) -> Firmware:
    """The firmware in Zephyr's `build_dir`, to be started as the build defines: in QEMU, as a process or on a
    board.

    Raises ConfigurationError if there is no finished build with MinRPC in it.
    """
    build_dir = _application_dir(build_dir)
    config = _read(build_dir, "zephyr/.config")
    if "\nCONFIG_MINRPC=y\n" not in config:
        step = "put CONFIG_MINRPC=y into the application's prj.conf; the module is this project's directory"
        raise ConfigurationError(f"the firmware in {build_dir} has no MinRPC", next_step=step)
    tcp_port = _value(config, r"^CONFIG_MINRPC_LINK_TCP_PORT=(\d+)$")
    if tcp_port and target.serial_port is None:
        step = f"start it, then name its address: --serial-port socket://HOST:{tcp_port}"
        raise ConfigurationError(f"the firmware in {build_dir} listens on TCP", next_step=step)
    cache = _read(build_dir, "CMakeCache.txt")
    base = Path(_value(cache, r"^ZEPHYR_BASE:\w+=(.*)$") or _value(cache, r"^Zephyr_DIR:\w+=(.*)/share/"))
    qemu_argv = _qemu_argv(build_dir)
    process = "\nCONFIG_ARCH_POSIX=y\n" in config
    starts: Start = "process" if process else "qemu" if qemu_argv else "board"
    if target.serial_port is not None:  # A real board, which is flashed, even if QEMU could run it.
        starts = "board"
    platform = _wired(target.platform, read_built_tree(base, build_dir / "zephyr" / "zephyr.dts"), config)
    elf = "zephyr/zephyr.exe" if process else "zephyr/zephyr.elf"
    if not (build_dir / elf).is_file():
        raise ConfigurationError(f"{build_dir} has no {elf}", next_step="build it: west build")
    content = (build_dir / elf).read_bytes()
    if _SERVER not in content:
        step = "call minrpc_start() in the application, see docs/boards.md; the linker has dropped the server"
        raise ConfigurationError(
            f"the firmware in {build_dir} does not start MinRPC's server", next_step=step
        )
    make_images(qemu_argv, build_dir)
    program = Path(qemu_argv[0]).name if qemu_argv else ""
    platform = replace(platform, starts=starts, elf=elf, qemu=program)
    return Firmware(
        target=replace(target, platform=platform),
        elf=build_dir / elf,
        build_dir=build_dir,
        content_hash=hashlib.sha256(content).hexdigest(),
        cached=True,
        seconds=0.0,
        qemu_argv=tuple(qemu_argv),
        icount_shift=configured_shift(config),
    )


def _qemu_argv(build_dir: Path) -> list[str]:
    """QEMU's command line of the build's run target; empty for a board or a process of this machine."""
    if "\nbuild run_qemu:" not in _read(build_dir, "build.ninja"):
        return []
    return find_qemu(ninja(build_dir, "-t", "commands", "run_qemu"))


def board_of(build_dir: Path) -> str:
    """The board that Zephyr's `build_dir` is for, with its qualifiers. Raises ConfigurationError."""
    config = _read(_application_dir(build_dir), "zephyr/.config")
    return _value(config, r'^CONFIG_BOARD_TARGET="(.*)"$') or _value(config, r'^CONFIG_BOARD="(.*)"$')


def _application_dir(build_dir: Path) -> Path:
    """The application's own build directory: sysbuild has one for each image below `build_dir`."""
    domains = build_dir / "domains.yaml"
    if not domains.is_file():
        return build_dir
    import yaml  # Zephyr's own scripts need PyYAML; other ports don't.

    images = yaml.safe_load(domains.read_text())
    return next(Path(image["build_dir"]) for image in images["domains"] if image["name"] == images["default"])


def _wired(platform: Platform, tree: BuiltTree, config: str) -> Platform:
    """`platform` with the UARTs of the build's devicetree."""
    text = "\nCONFIG_UART_CONSOLE=y\n" in config and tree.console is not None and tree.console != tree.link
    return replace(
        platform,
        port="zephyr",
        zephyr_board=platform.zephyr_board or _value(config, r'^CONFIG_BOARD="(.*)"$'),
        link_uart=tree.link.index,
        console_uart=tree.console.index if text and tree.console else None,
        baud=tree.link.baud,
        clock=platform.clock or tree.clock,
        # The simulator's option for the terminal of a UART is named after its node.
        arguments=(f"--{tree.link.path.rpartition('/')[2]}_port={{path}}",),
    )


def _read(build_dir: Path, name: str) -> str:
    try:
        return (build_dir / name).read_text()
    except OSError as error:
        step = "name the directory that `west build -d` was given, with a finished build"
        raise ConfigurationError(f"{build_dir} is no build of Zephyr: no {name}", next_step=step) from error


def _value(text: str, pattern: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else ""
