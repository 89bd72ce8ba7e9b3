# SPDX-License-Identifier: Apache-2.0
"""A board's link by its URL: a serial port, a socket, a serial port of another machine, or a command."""

from __future__ import annotations

import re
import socket
import stat
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from minrpc.errors import ConfigurationError, HarnessError, LinkClosedError, PortGoneError
from minrpc.host.process import describe_status, exited_within, output_tail, shell_words, spawn, stop_group
from minrpc.transport.fd import FdTransport, SocketTransport
from minrpc.transport.ports import find_port
from minrpc.transport.remote_port import RemotePort
from minrpc.transport.serial_port import ModemLine, SerialTransport

BoardLink = SerialTransport | SocketTransport | RemotePort | FdTransport

_CONNECT_S: Final = 5.0
_EXEC: Final = "exec:"
_SCHEMES: Final = ("socket", "rfc2217", "hwgrep", "unix")
_URL: Final = re.compile(r"([a-z][a-z0-9]+)://")
_LAST_LINES: Final = 3


def is_local_port(url: str) -> bool:
    """True for a serial port of this machine: its path, or its USB id or description."""
    return not url.startswith((_EXEC, "socket://", "rfc2217://", "unix://", "labgrid:"))


def is_serial(url: str) -> bool:
    """True for a serial port of this machine, also if it is not there."""
    try:
        return is_local_port(url) and not _is_socket(find_port(url))
    except PortGoneError:
        return True


def has_rate(url: str) -> bool:
    """True for a serial port, of this machine or behind a server that sets its baud rate."""
    return is_serial(url) or url.startswith("rfc2217://")


def is_tcp(url: str) -> bool:
    """True for a TCP connection, whose server may serve another client."""
    return url.startswith("socket://")


def port_of(url: str) -> str:
    """`url`, or the path for a serial port of this machine. Raises as `find_port` does."""
    return find_port(url) if is_local_port(url) else url


def open_url(url: str, baud: int, reset_line: ModemLine | Literal[""] = "") -> BoardLink:
    """Open the link to a board.

    url: a serial port as `find_port` takes it, "socket://HOST:PORT" (TCP), "rfc2217://HOST:PORT",
        "unix://PATH" or a Unix socket's path, "exec:COMMAND" (its standard input and output).
    baud, reset_line: see `SerialTransport`; ignored for sockets and commands.

    Raises ConfigurationError for another URL, LinkClosedError, PortBusyError, AmbiguousBoardError.
    """
    if url.startswith(_EXEC):
        return CommandTransport(url.removeprefix(_EXEC))
    scheme = _URL.match(url)
    match scheme and scheme[1]:
        case "socket":
            return _tcp(url)
        case "rfc2217":
            return RemotePort(url, baud, reset_line)
        case "unix":
            return SocketTransport.connect(url.removeprefix("unix://"), _CONNECT_S)
        case "hwgrep" | None:
            path = find_port(url)
            if _is_socket(path):
                return SocketTransport.connect(path, _CONNECT_S)
            return SerialTransport(path, baud, reset_line)
    schemes = ", ".join(f"{name}://" for name in _SCHEMES)
    step = f"there is {schemes}, {_EXEC}COMMAND, labgrid:PLACE, and a port's path"
    raise ConfigurationError(f"{url}: no kind of link is called {scheme and scheme[1]!r}", next_step=step)


def host_and_port(url: str) -> tuple[str, int]:
    """Host and port of "socket://HOST:PORT". Raises ConfigurationError."""
    try:
        parts = urlsplit(url)
        if parts.hostname and parts.port:
            return parts.hostname, parts.port
    except ValueError:
        pass
    raise ConfigurationError(f"{url}: no host and port", next_step="write socket://HOST:PORT")


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(Path(path).stat().st_mode)
    except OSError:
        return False


def _tcp(url: str) -> SocketTransport:
    try:
        connection = socket.create_connection(host_and_port(url), _CONNECT_S)
    except OSError as error:
        raise _not_connected(url, error) from error
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return SocketTransport(connection, url)


def _not_connected(url: str, error: OSError) -> LinkClosedError:
    reason = error.strerror or str(error)
    step = "correct the host's name"
    if isinstance(error, ConnectionRefusedError):
        step = "start the server there, or correct the port's number"
    elif isinstance(error, TimeoutError):
        reason, step = (
            f"no answer within {_CONNECT_S:g} s",
            "check that the host is on and no firewall filters its port",
        )
    return LinkClosedError(f"{url} can't be reached: {reason}", stage="open link", next_step=step)


class CommandTransport(FdTransport):
    """A link over standard input and output of a command; its standard error is reported after its end."""

    def __init__(self, command: str) -> None:
        argv = shell_words(command)
        if not argv:
            raise ConfigurationError(f"{_EXEC} names no command", next_step=f"write {_EXEC}COMMAND")
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = spawn(argv, link=theirs.fileno())
            except OSError as error:
                ours.close()
                step = "correct the command, or install it"
                message = f"{argv[0]} can't be run: {error.strerror}"
                raise HarnessError(message, stage="open link", next_step=step) from error
        self._errors = output_tail(self._process, "link")
        super().__init__(ours.fileno(), f"{_EXEC}{command}", close=ours.close)

    def _explained(self, error: LinkClosedError) -> LinkClosedError:
        status = exited_within(self._process, _CONNECT_S)
        if not error.by_us and status is not None:
            self._errors.finish(_CONNECT_S)
            error.args = (f"{self.name} has ended: {describe_status(status)}",)
            error.details = tuple(self._errors.text().strip().splitlines()[-_LAST_LINES:])
        return error

    def read(self, timeout_s: float) -> bytes:
        """The arrived bytes, see `Transport.read`; the error at the end has the command's status and last
        lines."""
        try:
            return super().read(timeout_s)
        except LinkClosedError as error:
            raise self._explained(error) from error.__cause__

    def write(self, data: bytes, timeout_s: float) -> None:
        """Write all of `data`; see `Transport.write`. The error at the end is the same as of `read`."""
        try:
            super().write(data, timeout_s)
        except LinkClosedError as error:
            raise self._explained(error) from error.__cause__

    def close(self) -> None:
        """Close the command's input, and end the command with its children."""
        if self._open:
            super().close()
            stop_group(self._process)
            self._errors.close(_CONNECT_S)
