# SPDX-License-Identifier: Apache-2.0
"""A server for a client of TVM's TCP door, and that client's names."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from minrpc import Device
from minrpc.tvm.served import serving
from minrpc.wire.values import Argument
from minrpc_bench.tvm_client import LIMIT_S as LIMIT_S, RefusedError as RefusedError, TvmClient as TvmClient


@dataclass
class LentDevice:
    """A `DeviceSource` over the test's device. Its clients also find the function `test.wait`, which returns
    when the source must interrupt.
    """

    device: Device
    waits: threading.Event = field(default_factory=threading.Event)
    interrupted: threading.Event = field(default_factory=threading.Event)
    discarded: int = 0

    def wait(self, _: Sequence[Argument]) -> None:
        self.waits.set()
        if not self.interrupted.wait(LIMIT_S):
            raise ValueError("nobody interrupted")

    def open(self) -> Device:
        self.device.rpc.restart()
        return self.device

    def interrupt(self) -> None:
        self.interrupted.set()

    def discard(self) -> None:
        self.discarded += 1


@contextmanager
def served(source: LentDevice, said: list[str]) -> Iterator[int]:
    """The port where clients are served, in a thread that ends with the block."""
    functions = {"test.wait": source.wait}
    with serving(source, said.append, lambda _: functions) as port:
        yield port
