# SPDX-License-Identifier: Apache-2.0
"""Limits of clients that may be hostile."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Final

from minrpc.library.archives import UNPACKED


@dataclass(frozen=True)
class Limits:
    """Limits of the clients of a `Server`; the fields' names are those of `minrpc serve`.

    session_bytes: of a client's uploaded files together, and of one request. files: number of its files.
    unpacked: bytes of an archive's content.
    hello_s: time from the connection to the whole handshake. idle_s: time without a whole request.
    keep_alive_s: time without a byte after which the client's machine is asked if it is there.
    waiting: clients that wait while one is served.
    """

    session_bytes: int = 256 << 20
    files: int = 64
    unpacked: int = UNPACKED
    hello_s: float = 10.0
    idle_s: float = 600.0
    keep_alive_s: int = 30
    waiting: int = 16

    def keep_alive(self, connection: socket.socket) -> None:
        """Let the kernel end the connection once the client's machine has not answered for twice the time."""
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, self.keep_alive_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, self.keep_alive_s // 3))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 2000 * self.keep_alive_s)


DEFAULT: Final = Limits()
