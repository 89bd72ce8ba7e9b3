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
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from getpass import getuser
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from minrpc.cli.unused_options import refuse
from minrpc.errors import ConfigurationError, LinkClosedError
from minrpc.firmware import Firmware, build
from minrpc.host.sandbox import sandboxed
from minrpc.running import RunningDevice, start
from minrpc.targets import Target
from minrpc.targets.options import add_device_options, options_from
from minrpc.transport import FdTransport
from minrpc.transport.public_pty import PublicPty, PublishedLink
from minrpc.transport.relay import Relay
from minrpc.tvm.client_limits import DEFAULT, Limits

_LIMITS: Final = {
    "session-bytes": ("session_bytes", "bytes of its files together, and of a request"),
    "session-files": ("files", "number of its files"),
    "unpacked-bytes": ("unpacked", "bytes of an archive's content"),
    "hello-timeout": ("hello_s", "seconds for the whole handshake"),
    "idle-timeout": ("idle_s", "seconds without a whole request"),
    "keep-alive": ("keep_alive_s", "seconds after which a silent client's machine is asked if it is there"),
    "waiting": ("waiting", "clients that wait while one is served"),
}
_FOR_TVM: Final = ("bind", "tracker", "key", "call-timeout", "token-file", "unsafe", *_LIMITS)
# Letters of the shortest token: at a guess a millisecond, 16 hexadecimal digits take ages.
_SHORTEST: Final = 16
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def say(text: str) -> None:
    """Print a line; a client's text can't control the terminal."""
    print("".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text), flush=True)


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
    add(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="serve only clients whose key is the word in FILE; in a tracker the name is NAME:WORD",
    )
    add(
        "--unsafe", action="store_true", help="serve --tvm-port without a sandbox: clients run code as you do"
    )
    add("--tracker", metavar="HOST:PORT", help="register with this tracker of TVM's")
    add("--key", metavar="NAME", help="name in the tracker (default: the platform's)")
    limits = parser.add_argument_group("limits of each client of --tvm-port")
    for name, (field, text) in _LIMITS.items():
        default = getattr(DEFAULT, field)
        limits.add_argument(
            f"--{name}",
            type=partial(_above_zero, type(default)),
            default=default,
            metavar="N",
            help=f"{text} (default %(default)s)",
        )
    add_device_options(add, ["call-timeout", "platforms-file", "timing", "link"])


def _above_zero(kind: type[int] | type[float], text: str) -> float:
    with suppress(ValueError):
        number = kind(text)
        if 0 < number < float("inf"):
            return number
    raise argparse.ArgumentTypeError(f"{text!r} is no {'whole ' if kind is int else ''}number above 0")


def main(arguments: argparse.Namespace) -> int:
    """Serves until a signal, then returns 0. Raises EmulatorExitedError if the device ends by itself."""
    _check(arguments)
    if arguments.pipe is not None:
        return _write_pipe(arguments)
    options = options_from({**vars(arguments), "platform": []})
    target = Target.named(arguments.platform, platforms_file=options.platforms_file, **options.given)
    if arguments.unsafe:
        say(f"UNSAFE: a client can read and change all that {getuser()} can, here and on the network")
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
        process = f" (pid {running.process.pid})" if running.process else ""
        say(f"{target.name}: runs{process}, {running.timing} time")
        say(f"{arguments.pty} -> {pty.path}")
        say(f"try: pytest tests/ --serial-port={arguments.pty}   (Ctrl-C ends the device)")
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
    if arguments.tvm_port is None:
        refuse(arguments, _FOR_TVM, "without --tvm-port", "add --tvm-port 0")
    if arguments.key is not None and (not arguments.key or any(map(str.isspace, arguments.key))):
        raise ConfigurationError(
            f"--key {arguments.key!r}: a key is one word", next_step="e.g. --key cortex-m3"
        )


def _token(arguments: argparse.Namespace) -> str:
    """The word that clients need; "" for none. Raises ConfigurationError for a server that all may reach."""
    if arguments.token_file is None:
        if not is_loopback(arguments.bind):
            raise ConfigurationError(
                f"--bind {arguments.bind}: other machines may reach it, and a client can run any code",
                next_step="name a file with a secret word: --token-file FILE (docs/serve.md)",
            )
        return ""
    try:
        token: str = arguments.token_file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{arguments.token_file} can't be read: {error}", next_step="name another file"
        ) from error
    if len(token) < _SHORTEST or not token.isascii() or any(map(str.isspace, token)):
        raise ConfigurationError(
            f"{arguments.token_file} has no word of {_SHORTEST} or more letters",
            next_step=f"python3 -c 'import secrets; print(secrets.token_hex())' > {arguments.token_file}",
        )
    return token


def _write_pipe(arguments: argparse.Namespace) -> int:
    """Writes the program of --pipe. Raises ConfigurationError for an unusable platform or file."""
    from minrpc.tvm.pipe import pipe_program

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


def is_loopback(address: str) -> bool:
    """True if only programs of this machine can connect to `address`."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def serve_tvm(firmware: Firmware, arguments: argparse.Namespace) -> None:
    """Serves clients of TVM until a signal. Raises ConfigurationError for a port in use, or no tracker."""
    from minrpc.tvm.served import OwnedDevice
    from minrpc.tvm.server import Server, has_token, listen
    from minrpc.tvm.tracker import tracker_at

    name, token = firmware.target.name, _token(arguments)
    with ExitStack() as stack:
        otherwise = "or say --unsafe: clients run code as you do"
        stack.enter_context(sandboxed(otherwise, wanted=not arguments.unsafe))
        stop_fd = stack.enter_context(stop_signals())
        listener = stack.enter_context(listen(arguments.bind, arguments.tvm_port))
        source = stack.enter_context(OwnedDevice(firmware))
        host, port = listener.getsockname()[:2]
        tracker = None
        key = ":".join(filter(None, (arguments.key or name, token)))
        if arguments.tracker:
            tracker = stack.enter_context(tracker_at(arguments.tracker, key, port))
            say(f"{name}: in the tracker at {arguments.tracker} as {arguments.key or name}")
        say(f'{name}: try tvm.rpc.connect("{host}", {port})   (Ctrl-C ends the device)')
        limits = Limits(
            **{field: getattr(arguments, name.replace("-", "_")) for name, (field, _) in _LIMITS.items()}
        )
        server = Server(listener, source, say, accepts=has_token(token), limits=limits)
        server.serve(stop_fd, tracker)
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
