# SPDX-License-Identifier: Apache-2.0
"""Serves one client over pipes: `python -m minrpc.tvm.piped --platform NAME READ WRITE`.

The program from `minrpc.tvm.pipe_program` runs it. TVM ends this process by SIGKILL, and then the kernel ends
the device.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, cast, get_args

from minrpc.errors import ConfigurationError
from minrpc.pipeline import Device
from minrpc.targets import Target, Timing
from minrpc.tvm.reception import events_of
from minrpc.tvm.served import OwnedDevice
from minrpc.tvm.server import DeviceSource, Service
from minrpc.wire.tcp_door import Door
from minrpc.wire.values import MalformedError


class PipeStream:
    """Two descriptors as one `Stream`."""

    def __init__(self, reader: int, writer: int) -> None:
        self._reader = reader
        self._writer = writer

    def fileno(self) -> int:
        """The descriptor to read from; it hangs up when the client has gone."""
        return self._reader

    def recv(self, size: int, /) -> bytes:
        """See `Stream`."""
        return os.read(self._reader, size)

    def sendall(self, data: bytes, /) -> None:
        """See `Stream`."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._writer, rest) :]

    def settimeout(self, seconds: float | None, /) -> None:
        """No-op: the client started this process, and may wait as long as it likes."""

    def shutdown(self, how: int, /) -> None:
        """No-op: the server shuts a stream down only at a session's time limit, and this session has none."""


def main(argv: Sequence[str]) -> int:
    """Serve the one client until it leaves: returns 0, or 1 if the peer is no TVM client."""
    options = _options(argv)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the client that started this process.
    stream = PipeStream(options.reader, options.writer)
    try:
        with _source(options) as source:
            Service(source, lambda _: None).serve(stream, events_of(stream, Door(greets=False)))
    except ConnectionError:
        return 0
    except (MalformedError, OSError) as error:
        print(f"minrpc: {error}", file=sys.stderr)
        return 1
    return 0


class NoDevice:
    """A `DeviceSource` for an unavailable platform; its client gets the reason."""

    def __init__(self, why: ConfigurationError) -> None:
        self._why = why

    def open(self) -> Device:
        """Raises ConfigurationError."""
        raise self._why

    def interrupt(self) -> None:
        """No-op: no request can be running here."""

    def discard(self) -> None:
        """No-op: there is no device."""


@contextmanager
def _source(options: argparse.Namespace) -> Iterator[DeviceSource]:
    timing = cast(Timing | None, options.timing)
    try:
        target = Target.named(options.platform, platforms_file=options.platforms_file, timing=timing)
    except ConfigurationError as error:
        yield NoDevice(error)
        return
    with OwnedDevice(target) as source:
        yield source


_TIMINGS: Final = [mode for mode in get_args(Timing) if mode != "board"]


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("minrpc.tvm.piped")
    parser.add_argument("--platform", required=True)
    parser.add_argument("--platforms-file", type=Path)
    parser.add_argument("--timing", choices=_TIMINGS)
    parser.add_argument("reader", type=int)
    parser.add_argument("writer", type=int)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
