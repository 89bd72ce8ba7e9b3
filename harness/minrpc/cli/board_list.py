# SPDX-License-Identifier: Apache-2.0
"""`minrpc board list`, `scan` and `release`: the connected boards, their users, and their map."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from minrpc.cli.json_output import add_json_option, write_json
from minrpc.errors import ConfigurationError, HarnessError, PortGoneError
from minrpc.host.owned_lock import holder_of
from minrpc.pipeline import probing
from minrpc.running.lease import end_quarantine, key_of, quarantine_of
from minrpc.targets.hardware_map import HardwareBoard, load_hardware_map
from minrpc.targets.map_file import read_map
from minrpc.targets.map_scan import UNKNOWN, scan
from minrpc.transport import has_rate
from minrpc.transport.ports import by_id, interface_of


def add_scan_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `scan`."""
    text = "write this map again: its boards at their ports of now, new boards, and all else as it is"
    parser.add_argument("--hardware-map", type=Path, metavar="FILE", help=text)
    text = (
        "start a session with each connected board, at its baud rate, else at other rates, and write the "
        "rate, and the board that its firmware names; LINK: one more port, as --serial-port has it"
    )
    parser.add_argument("--probe", nargs="?", const="", metavar="LINK", help=text)


def add_list_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `list`."""
    text = "also list the boards of this map"
    parser.add_argument("--hardware-map", type=Path, metavar="FILE", help=text)
    add_json_option(parser.add_argument)


def add_release_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `release`."""
    parser.add_argument("id", metavar="ID", help="the board's id in the map")
    parser.add_argument("--hardware-map", type=Path, metavar="FILE", required=True, help="the map")


def list_main(arguments: argparse.Namespace) -> int:
    """Show every port with all known facts; always 0."""
    boards = load_hardware_map(arguments.hardware_map) if arguments.hardware_map else ()
    entries = list(_entries(sorted(list_ports.comports()), boards))
    for entry in entries:
        print(entry["link"])
        for name in ("usb", "product", "serial_number", "interface", "platform", "in_use", "quarantine"):
            if entry[name]:
                print(f"  {name.replace('_', ' '):<14} {entry[name]}")
    if not entries:
        print(
            "no serial port is connected" + (", and the map has no board" if arguments.hardware_map else "")
        )
    write_json(arguments, {"boards": entries})
    return 0


def scan_main(arguments: argparse.Namespace) -> int:
    """Write a hardware map of the connected boards to standard output; always 0. Raises PortGoneError if
    the port named by --probe is not there."""
    text, entries = read_map(arguments.hardware_map) if arguments.hardware_map else ("", [])
    link = arguments.probe
    asks = {} if link is None else {"link": link, "probe": partial(_answer, link)}
    scanned = scan(list_ports.comports(), text, entries, **asks)
    print(scanned.text, end="")
    notes = list(scanned.notes)
    if scanned.unnamed:
        notes.append(f"write the board's name for platform: of {', '.join(scanned.unnamed)}")
    for note in notes:
        _tell(note)
    return 0


def _answer(named: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The rate at which the entry's board answers, and its name, if the entry has none; tells the answer."""
    link = str(entry.get("serial") or "")
    if not link or not has_rate(link):
        return {}
    try:
        answer = probing.probe(link, entry.get("baud"))
    except HarnessError as error:
        if link == named and isinstance(error, PortGoneError):
            raise
        _tell(f"{link}: {error.message}")
        return {}
    if answer is None:
        _tell(f"{link}: no answer at {', '.join(map(str, sorted(probing.RATES)))} baud")
        return {}
    board = answer.info.board
    _tell(f"{link}: {board or 'a board'} answers at {answer.baud} baud, build {answer.info.build_id}")
    return {"baud": answer.baud} | ({"platform": board} if board and entry["platform"] == UNKNOWN else {})


def _tell(line: str) -> None:
    print(f"minrpc: {line}", file=sys.stderr)


def release_main(arguments: argparse.Namespace) -> int:
    """End the quarantine of a board. Raises ConfigurationError for an unknown board."""
    boards = load_hardware_map(arguments.hardware_map)
    named = [board for board in boards if board.id == arguments.id]
    if not named:
        known = ", ".join(board.id for board in boards)
        message = f"{arguments.hardware_map} has no board {arguments.id}"
        raise ConfigurationError(message, next_step=f"it has {known}")
    ended = [end_quarantine(board) for board in named]
    print(f"{arguments.id}: {'may be used again' if any(ended) else 'was not in quarantine'}")
    return 0


def _entries(ports: Sequence[ListPortInfo], boards: Sequence[HardwareBoard]) -> Iterator[dict[str, Any]]:
    """Every port, with the map's board there; then the map's other boards."""
    of_link = {key_of(board.link): board for board in boards}
    for port in ports:
        link = by_id(port) or port.device
        board = of_link.pop(key_of(port.device), None)
        usb = f"{port.vid:04x}:{port.pid:04x}" if port.vid is not None else ""
        about = {"usb": usb, "product": port.product or "", "serial_number": port.serial_number or ""}
        yield {"link": link, **about, "interface": interface_of(port), **_use(link, board)}
    for board in of_link.values():
        about = {"usb": "", "product": board.product, "serial_number": board.id, "interface": ""}
        yield {"link": board.link, **about, **_use(board.link, board)}


def _use(link: str, board: HardwareBoard | None) -> dict[str, Any]:
    holder = holder_of(key_of(link))
    return {
        "platform": " ".join(board.platforms) if board else "",
        "in_use": str(holder) if holder else "",
        "holder": asdict(holder) if holder else None,
        "quarantine": quarantine_of(board) if board else "",
    }
