# SPDX-License-Identifier: Apache-2.0
"""A process that serves its parent's device: `python -m minrpc.tvm.child_server FD RESEND SECONDS OWNER`.

It inherits the link's descriptor, prints the TCP port, and ends when its standard input does. It is a
separate process because TVM's client holds Python's lock while it frees an object: no thread could serve it.
"""

from __future__ import annotations

import pickle
import socket
import sys

from minrpc.pipeline import Device
from minrpc.transport import FdTransport
from minrpc.tvm.server import Server


class _Lent:
    """The parent's device: this process never stops it."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def open(self) -> Device:
        """A new session on the device."""
        self._device.rpc.restart()
        return self._device

    def interrupt(self) -> None:
        """No-op: the running call goes on to its end, or its deadline, since the device is the parent's."""

    def discard(self) -> None:
        """No-op: the device is the parent's."""


def main(arguments: list[str]) -> None:
    """Serve until standard input ends."""
    descriptor, resend, call_timeout_s, owner = arguments
    link = FdTransport(int(descriptor), f"descriptor {descriptor}")
    known = pickle.loads(bytes.fromhex(owner))
    device = Device(link, known, resend=resend == "1", call_timeout_s=float(call_timeout_s))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        server = Server(listener, _Lent(device), lambda _: None)
        server.serve(sys.stdin.fileno())


if __name__ == "__main__":
    main(sys.argv[1:])
