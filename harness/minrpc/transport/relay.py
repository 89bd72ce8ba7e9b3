# SPDX-License-Identifier: Apache-2.0
"""Carries bytes between a device's link and a pseudo-terminal that clients open and close."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from typing import Final

from minrpc.transport.base import MAX_READ
from minrpc.transport.fd import FdTransport
from minrpc.transport.public_pty import PublicPty
from minrpc.wire.gate import SessionGate

_CLOSED: Final = select.POLLHUP | select.POLLERR | select.POLLNVAL


class Relay:
    """`device` on one side, clients of `pty` on the other.

    say: called when a client comes or leaves.

    Bytes that one side does not accept at once are kept, and the other side is not read until they are
    written. So a slow reader slows the writer, as a wire with flow control does; the relay waits for nothing
    else. A client's bytes reach the device, also when the client has left. Without a client the device's
    bytes are dropped, and answers to an earlier client are withheld from the next; see `SessionGate`.
    """

    def __init__(self, device: FdTransport, pty: PublicPty, say: Callable[[str], None]) -> None:
        self._device = device
        self._pty = pty
        self._say = say
        self._to_client = b""
        self._to_device = b""
        self._gate = SessionGate()
        self._client = False

    def run(self, stop_fd: int, ended_fd: int | None) -> bool:
        """Carry bytes until `stop_fd` is readable (True) or the device is gone (False).

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
        to_device = select.POLLOUT if self._to_device else 0
        poll.register(self._device.fileno(), to_device | (0 if self._to_client else select.POLLIN))
        if self._client:
            from_client = 0 if self._to_device else select.POLLIN
            poll.register(self._pty.master, from_client | (select.POLLOUT if self._to_client else 0))
        return dict(poll.poll())

    def _carry(self, ready: dict[int, int]) -> None:
        if self._pty.news in ready:
            self._notice(self._pty.read_news())
        if not self._to_device and ready.get(self._pty.master, 0) & select.POLLIN:
            self._from_client()
        self._flush()
        while not self._to_client and (data := self._device.read(0.0)):
            self._to_client = self._gate.from_device(data)
            self._flush()

    def _notice(self, left: bool) -> None:
        """Handles a client that left, or came, or both."""
        present = self._pty.is_open()
        if self._client and (left or not present):
            self._departure(followed=present)
        if present and not self._client:
            self._become(present=True)

    def _departure(self, *, followed: bool) -> None:
        """Carries the bytes that the client has sent, and drops the bytes that it left unread.

        followed: True if another client is there already; the bytes of both are read in order.

        Each start of a session that is read after this call is the next client's, which may come at any time.
        """
        self._gate.new_client()
        while not followed and self._from_client():
            pass
        self._to_client = b""
        self._pty.clean()
        self._become(present=False)

    def _become(self, *, present: bool) -> None:
        self._client = present
        self._say("client came" if present else "client left")

    def _from_client(self) -> bool:
        """Reads the client's bytes; False when there are none."""
        try:
            data = os.read(self._pty.master, MAX_READ)
        except OSError:
            return False  # Empty, or the hang-up that reads as an error.
        self._gate.from_client(data)
        self._to_device += data
        return bool(data)

    def _flush(self) -> None:
        """Writes to each side as many bytes as it accepts."""
        if self._to_device:
            self._to_device = self._to_device[self._device.write_now(self._to_device) :]
        if not self._client:
            self._to_client = b""
        if self._to_client:
            try:
                self._to_client = self._to_client[os.write(self._pty.master, self._to_client) :]
            except BlockingIOError:
                return
