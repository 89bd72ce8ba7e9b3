# SPDX-License-Identifier: Apache-2.0
"""`minrpc board table`: what each board's firmware takes, or why it does not build, as rows of Markdown."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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

COMMON: Final = (
    *("nucleo_c031c6", "nucleo_f030r8", "nucleo_f103rb", "nucleo_f401re", "nucleo_f746zg", "nucleo_g071rb"),
    *("nucleo_h743zi", "nucleo_l476rg", "nucleo_u575zi_q", "nrf52840dk/nrf52840", "nrf5340dk/nrf5340/cpuapp"),
    *("nrf54l15dk/nrf54l15/cpuapp", "bbc_microbit_v2", "xiao_ble", "esp32c3_devkitm", "rpi_pico"),
    *("rpi_pico2/rp2350a/m33", "samd21_xpro", "lpcxpresso55s69/lpc55s69/cpu0", "frdm_k64f"),
)
"""Boards that many people have."""
_HEAD: Final = ("board", "entry", "link", "loads C")
_WRAPPER: Final = textwrap.TextWrapper(
    120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
)


@dataclass(frozen=True, slots=True)
class Built:
    """A board's firmware with one Zephyr. small: the reason why it loads no C; "" if it loads C."""

    entry: str
    link: str
    small: str
    flash: int
    ram: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    text = "boards, as `west boards` lists them (default: twenty that are common)"
    parser.add_argument("boards", nargs="*", metavar="BOARD", help=text)
    text = "a Zephyr to build with, as for ZEPHYR_BASE; may be repeated (default: the one that is found)"
    parser.add_argument("--zephyr", action="append", type=Path, metavar="DIR", help=text)
    add_build_options(parser.add_argument)


def main(arguments: argparse.Namespace) -> int:
    """Build each board's firmware with the entry of `board add` for each Zephyr, and print the table."""
    boards = arguments.boards or COMMON
    columns = [
        (workspace.version, [_built(workspace, name, arguments.cmake_option) for name in boards])
        for workspace in _workspaces(arguments.zephyr or [])
    ]
    print(table_text(boards, columns))
    return 0


def table_text(boards: Sequence[str], columns: Sequence[tuple[str, Sequence[Built | str]]]) -> str:
    """The table, and the reasons that its cells tell by numbers.

    columns: for each Zephyr's version what was built of each board, or why it does not build.
    """
    notes: list[str] = []
    rows = [
        _row(name, builds, notes)
        for name, *builds in zip(boards, *(builds for _, builds in columns), strict=True)
    ]
    text = table([*_HEAD, *(f"{version}: flash, RAM" for version, _ in columns)], rows, right=())
    items = [f"- ({number}): {note}" for number, note in enumerate(notes, 1)]
    return "\n".join([text, *([""] if items else []), *map(_WRAPPER.fill, items)])


def _workspaces(named: Sequence[Path]) -> Iterator[Workspace]:
    """The named Zephyrs, each while the environment names it; else the one that is found."""
    if not named:
        yield find_workspace(firmware_root())
    given = os.environ.get("ZEPHYR_BASE")
    try:
        for base in named:
            os.environ["ZEPHYR_BASE"] = str(base)
            yield find_workspace(firmware_root())
    finally:
        if given is None:
            os.environ.pop("ZEPHYR_BASE", None)
        else:
            os.environ["ZEPHYR_BASE"] = given


def _built(workspace: Workspace, name: str, options: list[str]) -> Built | str:
    """The board's firmware with that Zephyr, or the reason why it does not build."""
    try:
        board = read_board(workspace, name)
        entry = entry_text(board)
        with tempfile.TemporaryDirectory(prefix="minrpc-") as directory:
            file = Path(directory) / FILE
            file.write_text(entry, encoding="utf-8")
            target = Target.named(stem_of(board.identifier), platforms_file=file)
            print(f"Zephyr {workspace.version}, {name}: firmware", file=sys.stderr, flush=True)
            elf = build(target.changed(cmake_options=options)).elf
    except HarnessError as error:
        return (
            f"does not build with {workspace.version}: {reason_of(error, workspace.topdir or workspace.base)}"
        )
    sizes = program_sizes(elf)
    lines = sum(" = " in line and not line.startswith("#") for line in entry.splitlines())
    link = link_of(board, target.platform.starts)
    loads = f"{CODE_LOAD}\0".encode() in elf.read_bytes()
    why = f"flash has {board.flash:,} bytes, RAM {board.ram:,}" if left_out(board) else "it is off"
    return Built(
        entry=f"{lines} lines",
        link=f"{link.label if link else ''}{' (console)' if link == board.console else ''}",
        small="" if loads else f"loads no C: {why}",
        flash=sizes.flash,
        ram=sizes.ram,
    )


def _row(name: str, builds: Sequence[Built | str], notes: list[str]) -> list[str]:
    """The row of a board; `notes` gets the reasons that it tells."""
    built = [each for each in builds if isinstance(each, Built)]
    return [
        f"`{name}`",
        _joined(each.entry for each in built),
        _joined(each.link for each in built),
        _joined(f"no {_noted(each.small, notes)}" if each.small else "yes" for each in built),
        *(
            f"no {_noted(each, notes)}" if isinstance(each, str) else f"{each.flash:,}, {each.ram:,}"
            for each in builds
        ),
    ]


def _joined(texts: Iterator[str]) -> str:
    """The texts, equal ones once."""
    return " / ".join(dict.fromkeys(texts))


def _noted(note: str, notes: list[str]) -> str:
    """The number of `note` in `notes`, to which it is added."""
    if note not in notes:
        notes.append(note)
    return f"({notes.index(note) + 1})"


def reason_of(error: HarnessError, workspace: Path) -> str:
    """The first error of the build in a line; paths in `workspace` are relative, others have no directory."""
    lines = error.details or (error.message,)
    cmake = lines[0].startswith("CMake")
    ends = [line.endswith(".") if cmake else not line.endswith(":") for line in lines]
    text = " ".join(lines[: ends.index(True) + 1 if True in ends else 3]).replace(f"{workspace}/", "")
    return re.sub(r"(?<![\w.])/\S*/", "", " ".join(text.split())).replace("|", "\\|")
