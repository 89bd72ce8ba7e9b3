# SPDX-License-Identifier: Apache-2.0
"""A device of the server's own, whose client leaves while its request runs."""

from __future__ import annotations

import os

from minrpc import RunningDevice, Target
from minrpc.transport import FdTransport
from minrpc.tvm.served import OwnedDevice

from tests.device.test_session import add_works
from tests.native import need_tools


def test_an_interrupted_request_keeps_its_link() -> None:
    """The request's thread still uses the descriptor, whose number a new client would get."""
    need_tools("gcc", "cmake", "ninja")
    with OwnedDevice(Target.named("posix")) as source:
        running = source.open().owner
        assert isinstance(running, RunningDevice)
        assert running.process is not None
        assert isinstance(running.transport, FdTransport)
        link = os.fstat(running.transport.fileno())
        source.interrupt()
        running.process.wait()
        assert os.fstat(running.transport.fileno()) == link
        assert add_works(source.open())
        assert source.open().owner is not running
