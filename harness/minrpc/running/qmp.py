# SPDX-License-Identifier: Apache-2.0
"""QEMU's machine protocol (QMP): JSON objects, one a line, over a socket; docs/interop/qmp-spec in QEMU."""

from __future__ import annotations

import json
import socket
from typing import Any

from minrpc.errors import QmpError
from minrpc.host.deadline import Deadline
from minrpc.transport import SocketTransport

_WRITE_S = 10.0


class Qmp:
    """A monitor connection. Events are dropped, since the link and the process report the same."""

    def __init__(self, connection: socket.socket) -> None:
        self._link = SocketTransport(connection, "QEMU's monitor")
        self._received = b""

    def open(self, deadline: Deadline) -> None:
        """Wait for QEMU's greeting and enter command mode. Raises LinkClosedError when QEMU ends before."""
        while "QMP" not in self._next(deadline):
            pass
        self.execute("qmp_capabilities", deadline)

    def execute(self, command: str, deadline: Deadline, **arguments: object) -> Any:  # noqa: ANN401 (JSON)
        """The answer to `command`. Raises QmpError, LinkClosedError if QEMU ends, DeadlineError."""
        self.send(command, **arguments)
        while True:
            answer = self._next(deadline)
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise QmpError(f"QEMU refused {command}: {answer['error'].get('desc')}")

    def send(self, command: str, **arguments: object) -> None:
        """Send `command`, such as "quit", without waiting for its answer."""
        request = {"execute": command, "arguments": arguments} if arguments else {"execute": command}
        self._link.write(json.dumps(request).encode() + b"\n", _WRITE_S)

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
