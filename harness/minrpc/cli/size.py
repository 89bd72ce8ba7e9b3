# SPDX-License-Identifier: Apache-2.0
"""`minrpc size`: a firmware's use of flash and RAM, by component, file and symbol, to the byte."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from minrpc.cli.json_output import add_json_option, write_json
from minrpc.cli.selected import require_one, selected
from minrpc.cli.source_options import add_build_options
from minrpc.cli.unused_options import refuse
from minrpc.errors import ConfigurationError
from minrpc.firmware import build
from minrpc.host.files import check_writable, write_output
from minrpc.reports.document import to_text
from minrpc.reports.markdown import table
from minrpc.reports.treemap import treemap
from minrpc.sizes import ProgramSizes, program_sizes
from minrpc.sizes.pieces import MEMORIES, Piece
from minrpc.sizes.size_report import TARGETS, size_report
from minrpc.targets.options import BUILD_OPTIONS, add_device_options

_TOP: Final = 20
_KEYS: Final = {
    "component": lambda item: item.component,
    "file": lambda item: item.file,
    "symbol": lambda item: item.symbol,
    "section": lambda item: item.section,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("program", nargs="?", type=Path, metavar="ELF", help="any program, in place of a platform's firmware")
    add(
        "--by",
        action="append",
        choices=list(_KEYS),
        default=[],
        help="tables to show (default component and symbol)",
    )
    add("--top", type=int, default=_TOP, metavar="N", help=f"rows of each table (default {_TOP})")
    add("--size-report", type=Path, metavar="DIR", help="write rom.json and ram.json as Zephyr's size_report")
    add("--treemap", type=Path, metavar="FILE.svg", help="draw flash by component and symbol")
    add_build_options(add)
    add_json_option(add)
    add_device_options(add, BUILD_OPTIONS)


def main(arguments: argparse.Namespace) -> int:
    """Build, read the program, and show its sizes."""
    if arguments.top < 1:
        raise ConfigurationError(f"--top is at least 1, not {arguments.top}", next_step="leave it out")
    if arguments.treemap:
        check_writable(arguments.treemap)
    programs = _programs(arguments)
    if arguments.treemap or arguments.size_report:
        require_one(programs, "--treemap and --size-report take")
    measured = {}
    for name, elf in programs.items():
        measured[name] = sizes = _sizes(elf)
        print("\n".join(_text(name, sizes, arguments.by or ["component", "symbol"], arguments.top)))
        if arguments.treemap:
            write_output(arguments.treemap, treemap(f"{name}, flash", sizes.grouped("flash")))
        if arguments.size_report:
            _write_reports(arguments.size_report, sizes)
    write_json(arguments, {"programs": [_json(name, sizes) for name, sizes in measured.items()]})
    return 0


def _sizes(elf: Path) -> ProgramSizes:
    sizes = program_sizes(elf)
    if not sizes.regions:
        # All sections of an object begin at 0, so the owner of an address is not known.
        message = f"{elf} has no load segments: an object file is not placed in memory yet"
        raise ConfigurationError(message, next_step="name the program that it is linked into")
    return sizes


def _programs(arguments: argparse.Namespace) -> dict[str, Path]:
    if arguments.program:
        builds = ("cmake-option", *BUILD_OPTIONS)
        refuse(arguments, builds, f"with {arguments.program}, a finished program")
        try:
            is_elf = arguments.program.open("rb").read(4) == b"\x7fELF"
        except OSError as error:
            message = f"{arguments.program} can't be read: {error.strerror}"
            raise ConfigurationError(message, next_step="name an ELF file") from error
        if not is_elf:
            raise ConfigurationError(f"{arguments.program} is no ELF file", next_step="name an ELF file")
        return {arguments.program.name: arguments.program}
    programs = {}
    for target in selected(arguments, starts=False).targets:
        print(f"{target.name}: firmware", file=sys.stderr, flush=True)
        programs[target.name] = build(target.changed(cmake_options=arguments.cmake_option)).elf
    return programs


def _text(name: str, sizes: ProgramSizes, tables: list[str], top: int) -> Iterator[str]:
    yield f"{name}: flash {sizes.flash:,} bytes, RAM {sizes.ram:,} bytes"
    yield ""
    rows = [
        [
            f"{region.address:#x}",
            f"{region.loaded_at:#x}",
            region.access,
            f"{region.size:,}",
            f"{region.stored:,}",
        ]
        for region in sizes.regions
    ]
    yield table(["load segment", "kept at", "access", "in memory", "in flash"], rows, right=(3, 4))
    for by in tables:
        yield ""
        yield _table(by, sizes, top)


def _table(by: str, sizes: ProgramSizes, top: int) -> str:
    flash, ram = (sizes.by(_KEYS[by], memory) for memory in MEMORIES)
    both = {name: (flash.get(name, 0), ram.get(name, 0)) for name in dict.fromkeys([*flash, *ram])}
    names = sorted(both, key=lambda name: (-both[name][0], -both[name][1], name))
    rows = [[name, f"{both[name][0]:,}", f"{both[name][1]:,}"] for name in names[:top]]
    rest = names[top:]
    if rest:
        left = [sum(both[name][index] for name in rest) for index in range(2)]
        rows.append([f"{len(rest)} more", f"{left[0]:,}", f"{left[1]:,}"])
    rows.append(["all", f"{sizes.flash:,}", f"{sizes.ram:,}"])
    return table([by, "flash", "RAM"], rows, right=(1, 2))


def _write_reports(directory: Path, sizes: ProgramSizes) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, memory in TARGETS.items():
            write_output(directory / f"{name}.json", to_text(size_report(sizes.pieces, memory)))
    except OSError as error:
        message = f"{directory} can't be written: {error.strerror}"
        raise ConfigurationError(message, next_step="name another directory") from error


def _json(name: str, sizes: ProgramSizes) -> dict[str, Any]:
    return {
        "program": name,
        "flash_bytes": sizes.flash,
        "ram_bytes": sizes.ram,
        "segments": [
            {
                "address": region.address,
                "loaded_at": region.loaded_at,
                "access": region.access,
                "size_bytes": region.size,
                "stored_bytes": region.stored,
            }
            for region in sizes.regions
        ],
        "pieces": [_piece(piece) for piece in sizes.pieces],
    }


def _piece(piece: Piece) -> dict[str, Any]:
    return {
        "memory": piece.memory,
        "section": piece.section,
        "address": piece.address,
        "size_bytes": piece.size,
        "component": piece.component,
        "file": piece.file,
        "symbol": piece.symbol,
    }
