# SPDX-License-Identifier: Apache-2.0
"""A board at a serial port: opened, and reset by a command or by a modem line of its port."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from typing import Final

from minrpc.errors import ConfigurationError, LinkClosedError, PortBusyError, PortDeniedError, ResetError
from minrpc.firmware.flash import filled_words
from minrpc.host.deadline import Deadline
from minrpc.host.process import run_command
from minrpc.targets import Target
from minrpc.transport import (
    BoardLink,
    RemotePort,
    SerialTransport,
    Transport,
    is_serial,
    open_url,
)

# A USB board's port disappears with the reset and comes back later, with new paths. No event reports its
# return.
_LOOK_AGAIN_S: Final = 0.05
# Seconds to wait for a port that was unplugged: a person plugs it in again.
_PLUG_IN_S: Final = 30.0
# A port that comes back is not at once open to all: udev sets its owner, and other programs probe it.
_AWAY: Final = (LinkClosedError, PortBusyError, PortDeniedError)
_OUTPUT_LINES: Final = 6


def open_port(target: Target) -> BoardLink:
    """The link to the board. Raises as `start` does."""
    assert target.serial_port is not None
    platform = target.platform
    line = platform.reset_line
    return open_url(target.serial_port, platform.baud, "" if line == "break" else line)


def can_reset(target: Target) -> bool:
    """True if the target has a command or line that resets it."""
    return bool(target.platform.reset_command or target.platform.reset_line)


def reset_board(target: Target, link: Transport, deadline: Deadline) -> Transport:
    """Reset the board; returns the link to it, a new one if its port has disappeared with the reset.

    Bytes sent before are dropped. Raises ResetError, and PortGoneError when the port does not come back.
    """
    platform = target.platform
    if platform.reset_command:
        _run("reset", platform.reset_command, target, deadline)
    elif platform.reset_line == "break" and isinstance(link, SerialTransport | RemotePort):
        link.send_break()
    elif (
        platform.reset_line
        and platform.reset_line != "break"
        and isinstance(link, SerialTransport | RemotePort)
    ):
        link.pull(platform.reset_line)
    else:
        raise ResetError(f"{target.name} has no reset line, and no reset_command", stage="reset")
    try:
        while link.read(0.0):
            continue
    except LinkClosedError:
        link.close()
        return come_back(target, deadline)
    return link


def power_cycle(target: Target, deadline: Deadline) -> None:
    """Switch the board off and on by its power_command. Raises ResetError."""
    _run("power", target.platform.power_command, target, deadline)


def _run(kind: str, command: str, target: Target, deadline: Deadline) -> None:
    try:
        argv = filled_words(command, target)
    except ConfigurationError as error:
        raise ResetError(f"no {kind}: {error.message}", stage="reset", next_step=error.next_step) from error
    try:
        status, output = run_command(argv, deadline.remaining())
    except OSError as error:
        raise ResetError(f"{argv[0]} can't be run: {error.strerror}", stage="reset") from error
    if status != 0:
        how = "did not end in time" if status is None else f"failed with status {status}"
        details = output.strip().splitlines()[-_OUTPUT_LINES:]
        raise ResetError(f"the {kind} command {how}: {shlex.join(argv)}", stage="reset", details=details)


def come_back(target: Target, deadline: Deadline, wait_s: float = _LOOK_AGAIN_S) -> BoardLink:
    """Opens the board's link, tried every `wait_s` seconds. Raises LinkClosedError, PortBusyError or
    PortDeniedError if the port is not back in time."""
    while True:
        time.sleep(min(wait_s, deadline.remaining()))
        try:
            return open_port(target)
        except _AWAY:
            if deadline.expired():
                raise


def await_port(target: Target, total: Deadline, say: Callable[[str], None]) -> None:
    """Wait until the serial port of a board that has answered can be opened: it may have been unplugged.

    Other links are not waited for. say: shows a line for the person who has to plug it in.
    Raises as `come_back` does.
    """
    if target.serial_port is None or not is_serial(target.serial_port):
        return
    try:
        open_port(target).close()
        return
    except _AWAY as error:
        say(f"{target.name}: waits up to {_PLUG_IN_S:g} s for its port: {error.message}")
    try:
        come_back(target, Deadline("plug in", _PLUG_IN_S, total=total)).close()
    except _AWAY as error:
        error.args = (f"{error.message}; waited {_PLUG_IN_S:g} s for it to come back",)
        raise
