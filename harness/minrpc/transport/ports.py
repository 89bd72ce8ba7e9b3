# SPDX-License-Identifier: Apache-2.0
"""Finds a board's serial port by its path, USB id or serial number."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from minrpc.errors import AmbiguousBoardError, PortGoneError


def find_port(wanted: str) -> str:
    """The path of the port that `wanted` names.

    wanted: a path ("/dev/ttyACM0", the link of `minrpc serve`), a USB id "VID:PID" in hexadecimal, or a USB
        serial number.

    Raises PortGoneError when no port matches, AmbiguousBoardError when several do.
    """
    if "/" in wanted or os.path.exists(wanted):
        return wanted
    return choose(wanted, list_ports.comports())


def choose(wanted: str, ports: Sequence[ListPortInfo]) -> str:
    """The path of the one among `ports` that `wanted` names; see `find_port`."""
    found = [port for port in ports if _matches(port, wanted)]
    if not found:
        there = ", ".join(_describe(port) for port in ports) or "none"
        message = f"no serial port matches {wanted!r}"
        raise PortGoneError(message, stage="find board", details=[f"there: {there}"])
    if len(found) > 1:
        message = f"{len(found)} serial ports match {wanted!r}"
        raise AmbiguousBoardError(message, candidates=[_describe(port) for port in found])
    return str(found[0].device)


def _matches(port: ListPortInfo, wanted: str) -> bool:
    usb_id = re.fullmatch(r"([0-9a-fA-F]{4}):([0-9a-fA-F]{4})", wanted)
    if usb_id:
        return (port.vid, port.pid) == (int(usb_id[1], 16), int(usb_id[2], 16))
    return wanted in (port.serial_number, port.name)


def _describe(port: ListPortInfo) -> str:
    if port.vid is None:
        return str(port.device)
    usb_id = f"{port.vid:04x}:{port.pid:04x}"
    return f"{port.device} ({usb_id}, serial number {port.serial_number}, {port.product})"
