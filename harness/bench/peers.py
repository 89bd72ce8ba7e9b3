# SPDX-License-Identifier: Apache-2.0
"""What is measured: a device with its client, and the same link with an echo and no protocol."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from harness.client import Device, LinkOwner
from harness.deadline import ProcessClock
from harness.errors import HarnessError
from harness.platforms import Firmware, Platform, RunningDevice, build, launch
from harness.transport import MAX_READ, FdTransport, Transport

RAW_OPTIONS: Final = ("-DMINRPC_RAW=ON",)
"""CMake options that build the echo in place of the server."""

READY: Final = b"!"
"""What the echo says at its start."""

_START_S: Final = 30.0
# An echo that stops in the middle would be waited for without end.
_STALL_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Peers:
    """A platform's two firmwares."""

    platform: Platform
    server: Firmware
    raw: Firmware


def build_peers(platform: Platform) -> Peers:
    """Build both, or take them from the cache. Raises as `build` does."""
    return Peers(platform, build(platform), build(platform, options=RAW_OPTIONS))


@contextmanager
def running_device(firmware: Firmware, *, resend: bool = False) -> Iterator[tuple[Device, RunningDevice]]:
    """The server, booted, with a session; `resend` as in `Device`."""
    with launch(firmware) as running, connect(running, running.transport, resend=resend) as device:
        yield device, running


@contextmanager
def connect(running: RunningDevice, transport: Transport, *, resend: bool = False) -> Iterator[Device]:
    """A session with what runs already, over `transport`."""
    owner = LinkOwner(running.clock, None, running.diagnose, lambda: running.console)
    with Device(transport, owner, resend=resend) as device:
        device.connect()
        yield device


@contextmanager
def running_echo(firmware: Firmware) -> Iterator[Echo]:
    """The echo, booted and heard."""
    with launch(firmware) as running:
        expect_ready(running)
        transport = running.transport
        assert isinstance(transport, FdTransport)
        with Echo(transport.fileno(), running) as echo:
            yield echo


def cpu_clock(*running: RunningDevice) -> Callable[[], float]:
    """Reads the CPU seconds that the processes of `running` used so far: emulators, or devices themselves."""
    clocks = [ProcessClock(one.process.pid) for one in running if one.process is not None]
    return lambda: sum(clock.sample().cpu_s for clock in clocks)


@contextmanager
def on_one_cpu(*running: RunningDevice) -> Iterator[None]:
    """Keep this thread and the processes of `running` on one CPU, so that the scheduler treats all alike.

    With two, a process is woken now on this, now on that, and for seconds on end what is measured is how long
    a sleeping CPU takes to wake.
    """
    allowed = os.sched_getaffinity(0)
    processes = [one.process.pid for one in running if one.process is not None]
    for process in (0, *processes):
        os.sched_setaffinity(process, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def expect_ready(running: RunningDevice) -> None:
    """Read the one character that the echo starts with. Raises HarnessError when another, or none, comes."""
    came = running.transport.read(_START_S)
    if came != READY:
        running.check()
        raise HarnessError(f"the echo on {running.name} began with {came!r}, not {READY!r}")


class Echo:
    """The host's side of an echo: nothing but system calls on `fd`, as few as there can be.

    running: what echoes.
    """

    def __init__(self, fd: int, running: RunningDevice) -> None:
        self.running = running
        self._fd = fd
        self._both, self._readable = select.poll(), select.poll()
        self._both.register(fd, select.POLLIN | select.POLLOUT)
        self._readable.register(fd, select.POLLIN)

    def __enter__(self) -> Echo:
        return self

    def __exit__(self, *_: object) -> None:
        os.set_blocking(self._fd, False)

    def pings(self, data: bytes) -> Callable[[], None]:
        """A function that writes `data` and reads as many bytes back, each a blocking system call."""
        os.set_blocking(self._fd, True)
        return partial(self._ping, data)

    def _ping(self, data: bytes) -> None:
        os.write(self._fd, data)
        left = len(data)
        while left > 0:
            left -= len(os.read(self._fd, MAX_READ))

    def stream(self, data: bytes) -> None:
        """Write `data` while reading it back, as fast as the link takes and gives it."""
        os.set_blocking(self._fd, False)
        unsent = memoryview(data)
        left = len(data)
        while left > 0:
            if not (self._both if unsent else self._readable).poll(_STALL_MS):
                raise HarnessError(f"the echo stopped with {left} of {len(data)} bytes to come")
            unsent = unsent[self._write(unsent) :]
            left -= self._read()

    def _write(self, data: memoryview) -> int:
        try:
            return os.write(self._fd, data) if data else 0
        except BlockingIOError:
            return 0

    def _read(self) -> int:
        try:
            return len(os.read(self._fd, MAX_READ))
        except BlockingIOError:
            return 0
