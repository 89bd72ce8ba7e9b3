# SPDX-License-Identifier: Apache-2.0
"""Devices that serve TVM's clients, and a TVM session on an open device."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from minrpc.client import Unowned
from minrpc.errors import ConfigurationError, HarnessError, LinkError
from minrpc.library.tvm_targets import tvm_package
from minrpc.pipeline import Device, open_device
from minrpc.running import RunningDevice
from minrpc.targets import Target
from minrpc.tvm.bridge import OwnFunction
from minrpc.tvm.client_limits import DEFAULT, Limits
from minrpc.tvm.server import DeviceSource, Server

if TYPE_CHECKING:
    from minrpc.firmware import Firmware


class OwnedDevice:
    """A `server.DeviceSource` with a device of one target; a device that fails is replaced.

    The device starts with the first client; each client gets a fresh session. A call that a client left
    running is ended by killing the device; a board on a serial port can't be killed, so the next client
    waits.
    """

    def __init__(self, what: Target | Firmware) -> None:
        self._what = what
        self._device: Device | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def open(self) -> Device:
        """See `DeviceSource`. Raises as `open_device` does."""
        if self._device is not None:
            try:
                self._device.rpc.restart()
                return self._device
            except HarnessError:
                self.discard()
        self._device = open_device(self._what)
        return self._device

    def interrupt(self) -> None:
        """See `DeviceSource`. The request's thread closes the link: a descriptor that is closed while it is
        used may be another client's."""
        running = self._device.owner if self._device is not None else None
        if isinstance(running, RunningDevice) and running.process is not None:
            running.process.kill()

    def discard(self) -> None:
        """See `DeviceSource`."""
        device, self._device = self._device, None
        if device is not None:
            device.close()


@contextmanager
def session(device: Device) -> Iterator[Any]:
    """A `tvm.rpc.RPCSession` on `device`, for the block; after it the device gets a new session of its own.

    Within the block `device` itself can't be used: that raises ConfigurationError.

    with minrpc.tvm.session(device) as remote:
        remote.system_lib()["add"](a, b, c)

    Raises ConfigurationError if TVM is not installed or the link has no descriptor; else as `Device.connect`
    does.
    """
    connect = tvm_package().rpc.connect
    with lent(device) as port:
        yield connect("127.0.0.1", port)


@contextmanager
def lent(device: Device) -> Iterator[int]:
    """Serve `device` by another process, `minrpc.tvm.child_server`; yields the TCP port on the loopback."""
    device.connect()
    fileno = getattr(device.link, "fileno", None)
    if fileno is None:
        raise ConfigurationError(f"{device.name} is no link that another process could use")
    owner = pickle.dumps(Unowned(firmware=device.owner.firmware, target=device.owner.target)).hex()
    command = [sys.executable, "-P", "-m", "minrpc.tvm.child_server", str(fileno()), str(int(device.resend))]
    with subprocess.Popen(
        [*command, str(device.call_timeout_s), owner],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=[fileno()],
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        # The process opens its session with its first client.
        device.rpc.link.lend("a session of TVM's")
        try:
            port = process.stdout.readline()
            if not port:
                raise LinkError(f"the process that was to serve {device.name} has ended")
            yield int(port)
        finally:
            try:
                process.stdin.close()
                process.wait()
            finally:
                device.rpc.link.take_back()
            device.rpc.restart()


@contextmanager
def serving(
    source: DeviceSource,
    say: Callable[[str], None] = lambda _: None,
    functions: Callable[[Device], Mapping[str, OwnFunction]] = lambda _: {},
    limits: Limits = DEFAULT,
) -> Iterator[int]:
    """Serve `source` on a free loopback port, in a thread that ends with the block; yields the port.

    say, functions, limits: as for `Server`.
    """
    reader, writer = os.pipe()
    try:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            server = Server(listener, source, say, functions, limits=limits)
            thread = threading.Thread(target=server.serve, args=(reader,))
            thread.start()
            try:
                yield listener.getsockname()[1]
            finally:
                os.write(writer, b"x")
                thread.join()
    finally:
        os.close(writer)
        os.close(reader)
