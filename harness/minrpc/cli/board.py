# SPDX-License-Identifier: Apache-2.0
"""`minrpc board`: adds a Zephyr board to minrpc.toml; flashes, lists, maps and tabulates boards."""

from __future__ import annotations

import argparse
from pathlib import Path

from minrpc.cli import board_flash, board_list, board_table
from minrpc.errors import ConfigurationError
from minrpc.firmware.board_entry import entry_text, left_out, overlay_text, stem_of, uart_named, uarts_text
from minrpc.firmware.sources import firmware_root
from minrpc.firmware.zephyr_boards import Board, completed, read_board
from minrpc.firmware.zephyr_workspace import find_workspace
from minrpc.host.files import check_writable, write_output
from minrpc.pipeline.requirements import lacking
from minrpc.targets import Platform, load_platforms
from minrpc.targets.project import FILE, find_project_file
from minrpc.targets.table import PLATFORMS
from minrpc.timing.units import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    add = actions.add_parser("add", help="write its entry into minrpc.toml").add_argument
    add("name", metavar="NAME", help="the board's name, as `west boards` lists it")
    add(
        "--uart",
        metavar="LABEL",
        help="the UART for RPC, which an overlay then chooses (default: the console's)",
    )
    text = f"TOML file to write to (default: the nearest {FILE}, or a new one here)"
    add("--platforms-file", type=Path, metavar="FILE", help=text)
    board_flash.add_arguments(actions.add_parser("flash", help="build the firmware and flash it"))
    board_list.add_list_arguments(actions.add_parser("list", help="connected ports, and their users"))
    text = "build boards, and print what each takes or lacks, in Markdown"
    board_table.add_arguments(actions.add_parser("table", help=text))
    text = "write twister's hardware map of the connected boards"
    board_list.add_scan_arguments(actions.add_parser("scan", help=text))
    board_list.add_release_arguments(actions.add_parser("release", help="end a board's quarantine"))


def main(arguments: argparse.Namespace) -> int:
    """Run the action."""
    actions = {
        "add": _add,
        "flash": board_flash.main,
        "table": board_table.main,
        "list": board_list.list_main,
        "scan": board_list.scan_main,
        "release": board_list.release_main,
    }
    return actions[arguments.action](arguments)


def _add(arguments: argparse.Namespace) -> int:
    """Write the entry, and the overlay if requested. Raises before anything is written."""
    workspace = find_workspace(firmware_root())
    board = read_board(workspace, arguments.name)
    uart = uart_named(board, arguments.uart) if arguments.uart else None
    name = stem_of(board.identifier)
    file = arguments.platforms_file or find_project_file(Path.cwd()) or Path.cwd() / FILE
    known = load_platforms(file) if file.is_file() else load_platforms()
    if name in known:
        own = "" if name in PLATFORMS else f", or change its entry in {file}"
        raise ConfigurationError(
            f"there is a platform {name} already",
            next_step=f"use that platform: `minrpc check --platform {name}`{own}",
        )
    overlay = file.parent / "boards" / f"{name}.overlay"
    if uart is not None and overlay.exists():
        raise ConfigurationError(f"{overlay} is there already", next_step="edit it, or leave --uart out")
    check_writable(file)
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    write_output(file, (f"{text.rstrip()}\n\n" if text.strip() else "") + entry_text(board))
    print(f"{board.identifier}: in {file} as platform {name}")
    if uart is not None:
        overlay.parent.mkdir(exist_ok=True)
        write_output(overlay, overlay_text(board, uart))
        print(f"  overlay   {overlay}: RPC over {uart.label}")
    _tell(board, name, overlay, chosen=uart is not None)
    return 0


def _tell(board: Board, name: str, overlay: Path, *, chosen: bool) -> None:
    """Print the board's facts, the missing parts, and the next command."""
    platform = completed(Platform(name, "zephyr", "board", zephyr_board=board.identifier), board, None, None)
    print(f"  core      {board.arch}, clock {board.clock or 'not known'}")
    if board.ram:
        flash = f"flash {count(board.flash)} bytes, " if board.flash else ""
        print(f"  memory    {flash}RAM {count(board.ram)} bytes")
    for part in left_out(board):
        print(f"  left out  {part}")
    print(f"  uarts     {uarts_text(board)}")
    if platform.starts == "qemu":
        print(f"  runs in   {platform.qemu}")
    for requirement in lacking(platform):
        if requirement.name != "board":
            print(f"  lacks     {requirement.name}: {requirement.problem} ({requirement.command})")
    other = next((uart for uart in (*board.uarts, *board.resting) if uart != board.console), None)
    if not chosen and other is not None and platform.starts == "board":
        print(
            f"  link      the console's UART, which carries its text, too; for another UART write {overlay}:"
        )
        print("\n".join(f"            {line}".rstrip() for line in overlay_text(board, other).splitlines()))
    if platform.starts == "board":
        print(f"  next      minrpc board flash --platform {name}")
        print(f"            minrpc check --platform {name} --serial-port PATH")
    else:
        print(f"  next      minrpc check --platform {name}")
