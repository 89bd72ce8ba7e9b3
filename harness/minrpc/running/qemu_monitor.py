# SPDX-License-Identifier: Apache-2.0
"""QEMU's monitor for people, over a socket: a command a line, its output up to the next prompt.

QEMU serves its other monitor, the machine protocol QMP, in a thread of its own. With counted instructions it
wakes this thread twice for each byte on the link; DESIGN.md has the cost.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from minrpc.errors import MonitorError
from minrpc.host.deadline import Deadline
from minrpc.transport import SocketTransport

_WRITE_S: Final = 10.0
_PROMPT: Final = b"(qemu) "


class QemuMonitor:
    """A monitor connection.

    while_asking: a context manager's function; its block lasts from a command to the answer.
    ready: True once QEMU takes commands.
    """

    def __init__(
        self,
        connection: socket.socket,
        while_asking: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._link = SocketTransport(connection, "QEMU's monitor")
        self._while_asking = while_asking
        self._begin()

    def _begin(self) -> None:
        self._received = b""
        # Prompts that QEMU has yet to print: one after its greeting, and one after each command.
        self._prompts = 1
        self.ready = False

    def open(self, deadline: Deadline) -> None:
        """Wait until QEMU takes commands. Raises LinkClosedError when QEMU ends before, DeadlineError."""
        self.ask("info status", deadline)
        self.ready = True

    def ask(self, command: str, deadline: Deadline) -> str:
        """The output of `command`. Raises LinkClosedError if QEMU ends, DeadlineError."""
        with self._while_asking():
            self.send(command)
            while self._prompts:
                output = self._up_to_prompt(deadline)
        # The first line is the command's echo.
        return output.decode("ascii", "replace").partition("\n")[2]

    def order(self, command: str, deadline: Deadline) -> None:
        """Execute a command without output. Raises MonitorError if QEMU refuses it, and as `ask`."""
        if said := self.ask(command, deadline).strip():
            raise MonitorError(f"QEMU refused {command}: {said}")

    def send(self, command: str) -> None:
        """Send `command`, such as "quit", without waiting for its output."""
        self._prompts += 1
        self._link.write(command.encode() + b"\n", _WRITE_S)

    def go_on(self, other: QemuMonitor) -> None:
        """Go on over the connection of `other`, to another QEMU."""
        self._link.close()
        self._link = other._link
        self._begin()

    def close(self) -> None:
        """Close the connection; QEMU runs on."""
        self._link.close()

    def _up_to_prompt(self, deadline: Deadline) -> bytes:
        while _PROMPT not in self._received:
            left = deadline.remaining()
            data = self._link.read(left)
            if not data and left == 0.0:
                raise deadline.error("an answer on QEMU's monitor")
            self._received += data
        self._prompts -= 1
        output, _, self._received = self._received.partition(_PROMPT)
        return output
