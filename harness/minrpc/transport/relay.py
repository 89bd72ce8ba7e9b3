# SPDX-License-Identifier: Apache-2.0
"""Carries bytes between a device's link and a pseudo-terminal that clients come to and leave."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from typing import Final

from minrpc.transport.base import MAX_READ
from minrpc.transport.fd import FdTransport
from minrpc.transport.public_pty import PublicPty

_CLOSED: Final = select.POLLHUP | select.POLLERR | select.POLLNVAL
# A device that takes nothing for so long is not one that any client could use.
_WRITE_S: Final = 60.0


class Relay:
    """`device` on one side, clients of `pty` on the other.

    say: told when a client comes or leaves.

    What one side does not take at once is kept, and the other is not read meanwhile, so that a slow reader
    slows the writer as a wire with flow control would. Without a client the device's bytes are dropped.
    """

    def __init__(self, device: FdTransport, pty: PublicPty, say: Callable[[str], None]) -> None:
        self._device = device
        self._pty = pty
        self._say = say
        self._to_client = b""
        self._client = False

    def run(self, stop_fd: int, ended_fd: int | None) -> bool:
        """Carry until `stop_fd` is readable (True), or the device is gone (False).

        ended_fd: readable when the device's process has ended; None when it has none.
        """
        while True:
            ready = self._wait([stop_fd] + ([] if ended_fd is None else [ended_fd]))
            if stop_fd in ready:
                return True
            if ended_fd in ready or ready.get(self._device.fileno(), 0) & _CLOSED:
                return False
            self._carry(ready)

    def _wait(self, others: list[int]) -> dict[int, int]:
        poll = select.poll()
        for descriptor in (*others, self._pty.news):
            poll.register(descriptor, select.POLLIN)
        poll.register(self._device.fileno(), 0 if self._to_client else select.POLLIN)
        if self._client:
            poll.register(self._pty.master, select.POLLIN | (select.POLLOUT if self._to_client else 0))
        return dict(poll.poll())

    def _carry(self, ready: dict[int, int]) -> None:
        if self._pty.news in ready:
            self._pty.read_news()
        if ready.get(self._pty.master, 0) & select.POLLIN:
            self._from_client()
        self._notice()
        self._flush()
        while not self._to_client and (data := self._device.read(0.0)):
            self._to_client = data
            self._flush()

    def _notice(self) -> None:
        """Whether a client came, or left."""
        present = self._pty.is_open()
        if present == self._client:
            return
        (self._arrival if present else self._departure)()
        self._client = present
        self._say("client came" if present else "client left")

    def _arrival(self) -> None:
        """What the device said before is not for this client."""
        while self._device.read(0.0):
            pass

    def _departure(self) -> None:
        """What the client has sent is carried, what it left unread is not for the next."""
        while self._from_client():
            pass
        self._to_client = b""
        self._pty.clean()

    def _from_client(self) -> bool:
        """Carry what is there; False when nothing is."""
        try:
            data = os.read(self._pty.master, MAX_READ)
        except OSError:
            return False  # Empty, or the hang-up that reads as an error.
        self._device.write(data, _WRITE_S)
        return bool(data)

    def _flush(self) -> None:
        if not self._client:
            self._to_client = b""
        if self._to_client:
            try:
                self._to_client = self._to_client[os.write(self._pty.master, self._to_client) :]
            except BlockingIOError:
                return
