# SPDX-License-Identifier: Apache-2.0
"""Finds a board's serial port by its path, USB id or serial number."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from minrpc.errors import AmbiguousBoardError, ConfigurationError, PortGoneError

BY_ID = Path("/dev/serial/by-id")
_HWGREP: Final = "hwgrep://"


def find_port(wanted: str) -> str:
    """The path of the port that `wanted` names.

    wanted: a path ("/dev/ttyACM0", the link of `minrpc serve`), a USB id "VID:PID" in hexadecimal, a USB
        serial number, the same with an interface's number ("066A:if02") if a board has several ports, or
        "hwgrep://REGEX[&n=N]" for the ports' descriptions as pyserial lists them.

    Raises PortGoneError when no port matches, AmbiguousBoardError when several do.
    """
    if wanted.startswith(_HWGREP):
        return _grep(wanted.removeprefix(_HWGREP), list_ports.comports())
    if "/" in wanted or os.path.exists(wanted):
        return wanted
    return choose(wanted, list_ports.comports())


def _grep(query: str, ports: Sequence[ListPortInfo]) -> str:
    """The port whose description matches; of several matches, number N of `&n=N`, counted from 1."""
    pattern, *options = query.split("&")
    number = next((option.removeprefix("n=") for option in options if option.startswith("n=")), "")
    try:
        matching = [port for port in sorted(ports) if any(re.search(pattern, text, re.I) for text in port)]
    except re.error as error:
        raise ConfigurationError(f"{_HWGREP}{query} is no regular expression: {error}") from error
    if number.isdigit() and 0 < int(number) <= len(matching):
        matching = [matching[int(number) - 1]]
    return _only(matching, ports, f"{_HWGREP}{query}")


def choose(wanted: str, ports: Sequence[ListPortInfo]) -> str:
    """The path of the port in `ports` that `wanted` names; see `find_port`."""
    return _only([port for port in ports if matches(port, wanted)], ports, wanted)


def _only(matching: Sequence[ListPortInfo], ports: Sequence[ListPortInfo], wanted: str) -> str:
    if not matching:
        there = ", ".join(_describe(port) for port in ports) or "none"
        message = f"no serial port matches {wanted!r}"
        raise PortGoneError(message, stage="find board", details=[f"there: {there}"])
    if len(matching) > 1:
        message = f"{len(matching)} serial ports match {wanted!r}"
        raise AmbiguousBoardError(message, candidates=[_describe(port) for port in matching])
    return str(matching[0].device)


def matches(port: ListPortInfo, wanted: str) -> bool:
    """True if `wanted`, of `find_port`'s forms without "/", names the port."""
    usb_id = re.fullmatch(r"([0-9a-fA-F]{4}):([0-9a-fA-F]{4})", wanted)
    if usb_id:
        return (port.vid, port.pid) == (int(usb_id[1], 16), int(usb_id[2], 16))
    serial_number, _, interface = wanted.rpartition(":")
    if serial_number and interface == interface_of(port):
        return bool(serial_number == port.serial_number)
    return wanted in (port.serial_number, port.name)


def interface_of(port: ListPortInfo) -> str:
    """The port's USB interface, as its name under /dev/serial/by-id ends: "if02"; "" if unknown."""
    number = re.search(r":\d+\.(\d+)$", port.location or "")
    return f"if{int(number[1]):02x}" if number else ""


def interface_in(link: str) -> str:
    """The interface in a link's name, as `interface_of` gives it; "" if it has none."""
    number = re.search(r"[-:](if[0-9a-f]{2})(-port\d+)?$", link)
    return number[1] if number else ""


def by_id(port: ListPortInfo) -> str:
    """The port's path under /dev/serial/by-id, which stays the same; "" if it has none."""
    try:
        links = [BY_ID / name for name in sorted(os.listdir(BY_ID))]
    except OSError:
        return ""
    return next((str(link) for link in links if os.path.realpath(link) == os.path.realpath(port.device)), "")


def _describe(port: ListPortInfo) -> str:
    if port.vid is None:
        return str(port.device)
    usb_id = f"{port.vid:04x}:{port.pid:04x}"
    about = [usb_id, f"serial number {port.serial_number}", port.product, interface_of(port), by_id(port)]
    return f"{port.device} ({', '.join(filter(None, about))})"
