# SPDX-License-Identifier: Apache-2.0
"""`minrpc board table`: what each board's firmware takes, or why it does not build, as a row of Markdown."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path
from typing import Final

from minrpc.cli.source_options import add_build_options
from minrpc.errors import HarnessError
from minrpc.firmware import build
from minrpc.firmware.board_entry import entry_text, left_out, stem_of
from minrpc.firmware.sources import firmware_root
from minrpc.firmware.zephyr_boards import link_of, read_board
from minrpc.firmware.zephyr_workspace import Workspace, find_workspace
from minrpc.library.loading import CODE_LOAD
from minrpc.reports.markdown import table
from minrpc.sizes import program_sizes
from minrpc.targets import Target
from minrpc.targets.project import FILE

_COMMON: Final = (
    *("nucleo_c031c6", "nucleo_f030r8", "nucleo_f103rb", "nucleo_f401re", "nucleo_f746zg", "nucleo_g071rb"),
    *("nucleo_h743zi", "nucleo_l476rg", "nucleo_u575zi_q", "nrf52840dk/nrf52840", "nrf5340dk/nrf5340/cpuapp"),
    *("nrf54l15dk/nrf54l15/cpuapp", "bbc_microbit_v2", "xiao_ble", "esp32c3_devkitm", "rpi_pico"),
    *("rpi_pico2/rp2350a/m33", "samd21_xpro", "lpcxpresso55s69/lpc55s69/cpu0", "frdm_k64f"),
)
_HEAD: Final = ("board", "entry", "flash", "RAM", "link", "loads C functions")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    text = "boards, as `west boards` lists them (default: twenty that are common)"
    parser.add_argument("boards", nargs="*", metavar="BOARD", help=text)
    add_build_options(parser.add_argument)


def main(arguments: argparse.Namespace) -> int:
    """Build each board's firmware with the entry of `board add`, and print the table."""
    workspace = find_workspace(firmware_root())
    rows = [_row(workspace, name, arguments.cmake_option) for name in arguments.boards or _COMMON]
    print(f"Zephyr {workspace.version}\n\n{table(_HEAD, rows, right=(2, 3))}")
    return 0


def _row(workspace: Workspace, name: str, options: list[str]) -> list[str]:
    try:
        board = read_board(workspace, name)
        entry = entry_text(board)
        with tempfile.TemporaryDirectory(prefix="minrpc-") as directory:
            file = Path(directory) / FILE
            file.write_text(entry, encoding="utf-8")
            target = Target.named(stem_of(board.identifier), platforms_file=file)
            print(f"{name}: firmware", file=sys.stderr, flush=True)
            elf = build(target.changed(cmake_options=options)).elf
    except HarnessError as error:
        return [f"`{name}`", "", "", "", "", f"does not build: {_reason(error)}"]
    sizes = program_sizes(elf)
    lines = sum(" = " in line and not line.startswith("#") for line in entry.splitlines())
    link = link_of(board, target.platform.starts)
    loads = "yes" if f"{CODE_LOAD}\0".encode() in elf.read_bytes() else "no"
    reason = f": flash has {board.flash:,}, RAM {board.ram:,}" if loads == "no" and left_out(board) else ""
    return [
        f"`{name}`",
        f"{lines} lines",
        f"{sizes.flash:,}",
        f"{sizes.ram:,}",
        f"{link.label if link else ''}{' (console)' if link == board.console else ''}",
        loads + reason,
    ]


def _reason(error: HarnessError) -> str:
    """The first error of the build in a line, without directories."""
    lines = error.details or (error.message,)
    text = " ".join(lines[: 3 if lines[0].startswith("CMake") else 1])
    return re.sub(r"(?<![\w.])/\S*/", "", " ".join(text.split())).replace("|", "\\|")
