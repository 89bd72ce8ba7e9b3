# SPDX-License-Identifier: Apache-2.0
"""The two sides of a benchmark: a device with its client, and the same link without the protocol; a transport
that counts bytes, and can repeat the answer to a call without the device."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from minrpc.errors import DeadlineError, HarnessError
from minrpc.firmware import Firmware, build
from minrpc.host.deadline import ProcessClock
from minrpc.pipeline import Device, connect
from minrpc.running import RunningDevice, start
from minrpc.targets import Platform, Target
from minrpc.transport import MAX_READ, FdTransport, Transport

RAW_OPTIONS: Final = ("-DMINRPC_RAW=ON",)
"""CMake options that build `zephyr-app/bench` in place of the server."""

READY: Final = b"!"
"""The character that the raw firmware sends at its start, and after it has taken all bytes of a command."""

_START_S: Final = 30.0
# The longest pause of a link before the run fails.
_STALL_MS: Final = 60_000
# Seconds for all pings of one kind; a blocking read has no limit of its own.
_PINGS_S: Final = 600
# The largest count of a command.
_MOST: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Peers:
    """A target's two firmwares."""

    server: Firmware
    raw: Firmware

    @property
    def platform(self) -> Platform:
        """The platform of both."""
        return self.server.platform


def build_peers(target: Target) -> Peers:
    """Build both, or take them from the cache. Raises as `build` does."""
    return Peers(build(target), build(target.changed(cmake_options=RAW_OPTIONS)))


@contextmanager
def running_device(firmware: Firmware, *, direct: bool = False) -> Iterator[tuple[Device, RunningDevice]]:
    """The server, booted, with a session.

    direct: as a user opens it: arrays are copied through memory that the device shares with this process.
    """
    with start(firmware) as running, connect(running, direct=direct) as device:
        device.connect()
        yield device, running


@contextmanager
def running_raw(firmware: Firmware) -> Iterator[Raw]:
    """The raw firmware, booted and heard."""
    with start(firmware) as running:
        expect_ready(running)
        transport = running.transport
        assert isinstance(transport, FdTransport)
        with Raw(transport.fileno(), running) as raw:
            yield raw


def cpu_clock(*running: RunningDevice) -> Callable[[], float]:
    """Reads the CPU seconds that the processes of `running` used so far: emulators, or devices themselves."""
    clocks = [ProcessClock(device.process.pid) for device in running if device.process is not None]
    return lambda: sum(clock.sample().cpu_s for clock in clocks)


@contextmanager
def on_one_cpu(*running: RunningDevice) -> Iterator[None]:
    """Keep this thread and the processes of `running` on one CPU, so that the scheduler treats all alike.

    Emulators that are started meanwhile run on this CPU, too. With two CPUs the scheduler wakes a process on
    either, and for seconds the measured time may be the time of waking a sleeping CPU.
    """
    allowed = os.sched_getaffinity(0)
    processes = [device.process.pid for device in running if device.process is not None]
    for thread in (0, *chain.from_iterable(map(_threads, processes))):
        os.sched_setaffinity(thread, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _threads(process: int) -> list[int]:
    return [int(entry.name) for entry in Path(f"/proc/{process}/task").iterdir()]


def expect_ready(running: RunningDevice) -> None:
    """Read the raw firmware's first character. Raises HarnessError if no character comes."""
    came = running.transport.read(_START_S)
    if came != READY:
        running.check()
        raise HarnessError(f"the raw firmware on {running.name} began with {came!r}, not {READY!r}")


class Raw:
    """The host's side of a link without protocol: system calls on `fd` only, as few as possible.

    running: the device on its other side.
    """

    def __init__(self, fd: int, running: RunningDevice) -> None:
        self.running = running
        self._fd = fd
        self._both, self._readable = select.poll(), select.poll()
        self._both.register(fd, select.POLLIN | select.POLLOUT)
        self._readable.register(fd, select.POLLIN)

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        signal.alarm(0)
        os.set_blocking(self._fd, False)

    def echo_all(self) -> None:
        """Make the device echo until its end: the count is larger than the number of all bytes sent."""
        os.write(self._fd, command("e", _MOST))

    def pings(self, data: bytes) -> Callable[[], None]:
        """A function that writes `data` and reads as many bytes back, each a blocking system call.

        The device must echo: see `echo_all`. Raises HarnessError if bytes are lost, some minutes later.
        """
        signal.signal(signal.SIGALRM, self._stalled)
        signal.alarm(_PINGS_S)
        os.set_blocking(self._fd, True)
        return partial(self._ping, data)

    def takes(self, data: bytes) -> Callable[[], None]:
        """A function that writes `data` and waits until the device has all of it."""
        return self._streams(command("s", len(data)) + data, len(READY))

    def gives(self, size: int) -> Callable[[], None]:
        """A function that makes the device send `size` bytes, and reads them."""
        return self._streams(command("g", size), size)

    def _ping(self, data: bytes) -> None:
        os.write(self._fd, data)
        left = len(data)
        while left > 0:
            left -= len(os.read(self._fd, MAX_READ))

    def _stalled(self, *_: object) -> None:
        raise HarnessError(f"the raw link of {self.running.name} stopped: bytes of an echo are lost")

    def _streams(self, data: bytes, size: int) -> Callable[[], None]:
        os.set_blocking(self._fd, False)
        return partial(self._stream, data, size)

    def _stream(self, data: bytes, size: int) -> None:
        """Write `data` while reading `size` bytes."""
        unsent = memoryview(data)
        left = size
        while left > 0:
            if not (self._both if unsent else self._readable).poll(_STALL_MS):
                raise HarnessError(
                    f"the raw link stopped with {left} of {size} bytes to come, {len(unsent)} to go"
                )
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


def command(letter: str, count: int) -> bytes:
    """A command of the raw firmware: see zephyr-app/bench/raw.h."""
    return letter.encode() + count.to_bytes(4, "little")


class Traffic(NamedTuple):
    """Bytes that passed a link."""

    sent: int = 0
    received: int = 0


class MeteredTransport:
    """`inner`, with its bytes counted.

    replays: nothing is sent, and the reads after a write give the last answer again, in the same pieces, and
        then nothing. A call then makes no system call: its time is this program's own, without link, device
        and kernel.
    """

    def __init__(self, inner: Transport) -> None:
        self.name = inner.name
        self.replays = False
        self._inner = inner
        self._sent = self._received = 0
        self._answer: list[bytes] = []
        self._given = 0

    def write(self, data: bytes, timeout_s: float) -> None:
        """Does the same as `Transport.write`. Bytes that a slow far end has not taken are written again,
        and counted once."""
        self._given = 0
        if self.replays:
            return
        self._answer.clear()
        try:
            self._inner.write(data, timeout_s)
        except DeadlineError as error:
            self._sent += error.written
            raise
        self._sent += len(data)

    def read(self, timeout_s: float) -> bytes:
        """Does the same as `Transport.read`."""
        if self.replays:
            self._given += 1
            return self._answer[self._given - 1] if self._given <= len(self._answer) else b""
        data = self._inner.read(timeout_s)
        self._answer += [data] if data else []
        self._received += len(data)
        return data

    def close(self) -> None:
        """Does the same as `Transport.close`."""
        self._inner.close()

    def during(self, action: Callable[[], object]) -> Traffic:
        """The bytes that pass while `action` runs."""
        self._sent = self._received = 0
        action()
        return Traffic(self._sent, self._received)
