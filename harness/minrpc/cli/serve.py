# SPDX-License-Identifier: Apache-2.0
"""`minrpc serve`: keeps a device running for other clients until a signal.

The device's link is a terminal for clients of microTVM's wire, or a TCP port for today's TVM, which a tracker
can list, or the two pipes of a program that TVM's PopenSession starts.
"""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from minrpc.errors import ConfigurationError, LinkClosedError
from minrpc.firmware import Firmware, build
from minrpc.running import RunningDevice, start
from minrpc.targets import Target
from minrpc.targets.options import add_device_options, options_from
from minrpc.transport import FdTransport
from minrpc.transport.public_pty import PublicPty, PublishedLink
from minrpc.transport.relay import Relay

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
say = partial(print, flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--platform", default="posix", metavar="NAME", help="the platform to run (default %(default)s)")
    add(
        "--pty",
        type=Path,
        metavar="PATH",
        help="link to the device's terminal, for clients of microTVM's wire",
    )
    add(
        "--tvm-port",
        type=int,
        metavar="N",
        help="serve clients of today's TVM at this TCP port; 0 for a free port",
    )
    add("--bind", default="127.0.0.1", metavar="ADDRESS", help="address of --tvm-port (default %(default)s)")
    add("--pipe", type=Path, metavar="FILE", help="write a program that is a device, for TVM's PopenSession")
    add("--tracker", metavar="HOST:PORT", help="register with this tracker of TVM's")
    add("--key", metavar="NAME", help="name in the tracker (default: the platform's)")
    add_device_options(add, ["call-timeout", "platforms-file", "timing", "link"])


def main(arguments: argparse.Namespace) -> int:
    """Serves until a signal, then returns 0. Raises EmulatorExitedError if the device ends by itself."""
    _check(arguments)
    if arguments.pipe is not None:
        return _write_pipe(arguments)
    options = options_from({**vars(arguments), "platform": []})
    target = Target.named(arguments.platform, platforms_file=options.platforms_file, **options.given)
    say(f"{target.name}: firmware")
    firmware = build(target)
    if arguments.tvm_port is not None:
        serve_tvm(firmware, arguments)
        return 0
    with ExitStack() as stack:
        running = stack.enter_context(start(firmware))
        stop_fd = stack.enter_context(stop_signals())
        pty = stack.enter_context(PublicPty())
        # Once the link exists, the device is ready: waiting programs may start.
        stack.enter_context(PublishedLink(arguments.pty, pty.path))
        say(f"{target.name}: runs{_process(running)}, {running.timing} time")
        say(f"{arguments.pty} -> {pty.path}")
        say(f"try: pytest tests/ --serial-port {arguments.pty}   (Ctrl-C ends the device)")
        serve(running, pty, stop_fd)
    say(f"{target.name}: stopped")
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Raise ConfigurationError if the options contradict each other."""
    ways = [arguments.pty, arguments.tvm_port, arguments.pipe]
    if sum(way is not None for way in ways) != 1:
        raise ConfigurationError(
            "serve takes one of --pty, --tvm-port and --pipe",
            next_step="--pty PATH for microTVM's wire, --tvm-port N or --pipe FILE for today's TVM",
        )
    for option in ("tracker", "call_timeout"):
        if arguments.tvm_port is None and getattr(arguments, option):
            name = f"--{option.replace('_', '-')}"
            raise ConfigurationError(
                f"{name} is for --tvm-port", next_step=f"name both: --tvm-port 0 {name} ..."
            )
    if arguments.key is not None and (not arguments.key or any(map(str.isspace, arguments.key))):
        raise ConfigurationError(
            f"--key {arguments.key!r}: a key is one word", next_step="e.g. --key cortex-m3"
        )


def _write_pipe(arguments: argparse.Namespace) -> int:
    """Writes the program of --pipe. Raises ConfigurationError for an unusable platform or file."""
    from minrpc.tvm.rpc.pipe import pipe_program

    file: Path = arguments.pipe
    text = pipe_program(arguments.platform, platforms_file=arguments.platforms_file, timing=arguments.timing)
    try:
        file.write_bytes(text)
        file.chmod(0o755)
    except OSError as error:
        raise ConfigurationError(
            f"{file} can't be written: {error.strerror}", next_step="name another file"
        ) from error
    print(f'try: tvm.rpc.client.PopenSession("{file.absolute()}")')
    return 0


def serve_tvm(firmware: Firmware, arguments: argparse.Namespace) -> None:
    """Serves clients of TVM until a signal. Raises ConfigurationError for a port in use, or no tracker."""
    from minrpc.tvm.rpc.served import OwnedDevice
    from minrpc.tvm.rpc.server import Server, listen
    from minrpc.tvm.rpc.tracker import tracker_at

    name = firmware.target.name
    with ExitStack() as stack:
        stop_fd = stack.enter_context(stop_signals())
        listener = stack.enter_context(listen(arguments.bind, arguments.tvm_port))
        source = stack.enter_context(OwnedDevice(firmware))
        host, port = listener.getsockname()[:2]
        tracker = None
        if arguments.tracker:
            tracker = stack.enter_context(tracker_at(arguments.tracker, arguments.key or name, port))
            say(f"{name}: in the tracker at {arguments.tracker} as {tracker.key}")
        say(f'{name}: try tvm.rpc.connect("{host}", {port})   (Ctrl-C ends the device)')
        Server(listener, source, say).serve(stop_fd, tracker)
    say(f"{name}: stopped")


def serve(running: RunningDevice, pty: PublicPty, stop_fd: int) -> None:
    """Relays bytes until `stop_fd` is readable. Raises an error if the device ends before."""
    link = running.transport
    assert isinstance(link, FdTransport)
    with _exit_fd(running) as exit_fd:
        try:
            stopped = Relay(link, pty, say).run(stop_fd, exit_fd)
        except LinkClosedError as error:
            raise running.diagnose(error) from error
    if not stopped:
        raise running.diagnose(LinkClosedError(f"{running.name} has ended", stage="serve"))


@contextmanager
def stop_signals() -> Iterator[int]:
    """A descriptor that becomes readable on a stop signal, which has no other effect inside the block."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
    wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reader)
        os.close(writer)


@contextmanager
def _exit_fd(running: RunningDevice) -> Iterator[int | None]:
    """A descriptor that becomes readable at the end of the device's process; None without a process."""
    if running.process is None:
        yield None
        return
    descriptor = os.pidfd_open(running.process.pid)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _process(running: RunningDevice) -> str:
    return f" (pid {running.process.pid})" if running.process else ""
