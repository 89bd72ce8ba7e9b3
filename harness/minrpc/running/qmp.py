# SPDX-License-Identifier: Apache-2.0
"""QEMU's machine protocol (QMP): JSON objects, one a line, over a socket; docs/interop/qmp-spec in QEMU."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from minrpc.errors import QmpError
from minrpc.host.deadline import Deadline
from minrpc.transport import SocketTransport

_WRITE_S = 10.0


class Qmp:
    """A monitor connection. Events are dropped, since the link and the process report the same.

    while_asking: a context manager's function; its block lasts from a command to the answer.
    ready: True once QEMU takes commands; before, it answers each with an error.
    """

    def __init__(
        self,
        connection: socket.socket,
        while_asking: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._link = SocketTransport(connection, "QEMU's monitor")
        self._while_asking = while_asking
        self._received = b""
        self._sent = 0
        self.ready = False

    def open(self, deadline: Deadline) -> None:
        """Wait for QEMU's greeting and enter command mode. Raises LinkClosedError when QEMU ends before."""
        while "QMP" not in self._next(deadline):
            pass
        self.execute("qmp_capabilities", deadline)
        self.ready = True

    def execute(self, command: str, deadline: Deadline, **arguments: object) -> Any:  # noqa: ANN401 (JSON)
        """The answer to `command`. Raises QmpError, LinkClosedError if QEMU ends, DeadlineError."""
        with self._while_asking():
            self.send(command, **arguments)
            while (answer := self._next(deadline)).get("id") != self._sent:
                continue
        if "error" in answer:
            raise QmpError(f"QEMU refused {command}: {answer['error'].get('desc')}")
        return answer["return"]

    def send(self, command: str, **arguments: object) -> None:
        """Send `command`, such as "quit", without waiting for its answer."""
        self._sent += 1
        request: dict[str, object] = {"execute": command, "id": self._sent}
        if arguments:
            request["arguments"] = arguments
        self._link.write(json.dumps(request).encode() + b"\n", _WRITE_S)

    def go_on(self, other: Qmp) -> None:
        """Go on over the connection of `other`, to another QEMU."""
        self._link.close()
        self._link, self._received, self._sent, self.ready = other._link, b"", 0, False

    def close(self) -> None:
        """Close the connection; QEMU runs on."""
        self._link.close()

    def _next(self, deadline: Deadline) -> dict[str, Any]:
        while b"\n" not in self._received:
            left = deadline.remaining()
            data = self._link.read(left)
            if not data and left == 0.0:
                raise deadline.error("an answer on QEMU's monitor")
            self._received += data
        line, self._received = self._received.split(b"\n", 1)
        message: dict[str, Any] = json.loads(line)
        return message
