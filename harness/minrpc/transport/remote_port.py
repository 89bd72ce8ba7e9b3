# SPDX-License-Identifier: Apache-2.0
"""A serial port of another machine by RFC 2217, as ser2net serves it, over pyserial's client."""

from __future__ import annotations

import time
from typing import Any, Final, Literal

import serial

from minrpc.errors import HarnessError, PortBusyError, PortGoneError, ResetError
from minrpc.transport.base import MAX_READ
from minrpc.transport.serial_port import PULSE_S, ModemLine

# The time-out that pyserial gets, in seconds. Setting another time-out for each read would send the port's
# settings again.
_READ_S: Final = 0.02
_BUSY: Final = ("port already in use", "busy", "in use")


class RemotePort:
    """The port at `url`, "rfc2217://HOST:PORT", 8N1 at `baud`; reset_line as `SerialTransport` has it."""

    def __init__(self, url: str, baud: int, reset_line: ModemLine | Literal[""] = "") -> None:
        self.name = url
        self._open = True
        try:
            self._port: Any = _opened(url, baud, reset_line)
        except (serial.SerialException, ValueError, OSError) as error:
            if reset_line or "'control'" not in str(error):
                raise _not_opened(url, error) from error
            # A server whose port has no modem lines does not answer requests that set them.
            self._port = _opened(f"{url}{'&' if '?' in url else '?'}ign_set_control", baud, reset_line)

    def write(self, data: bytes, timeout_s: float) -> None:
        """Write all of `data`; see `Transport.write`. The socket's buffer takes it."""
        self._check()
        try:
            self._port.write(data)
        except (serial.SerialException, OSError) as error:
            raise self._gone(error) from error

    def read(self, timeout_s: float) -> bytes:
        """The bytes that have arrived; see `Transport.read`."""
        self._check()
        try:
            end = time.monotonic() + timeout_s
            while True:
                data = bytes(self._port.read(min(max(1, self._port.in_waiting), MAX_READ)))
                if data or time.monotonic() >= end:
                    return data
        except (serial.SerialException, OSError) as error:
            raise self._gone(error) from error

    def pull(self, line: ModemLine) -> None:
        """Does the same as `SerialTransport.pull`. Raises ResetError."""
        self._pulse(line, up=True)

    def send_break(self) -> None:
        """Does the same as `SerialTransport.send_break`. Raises ResetError."""
        self._pulse("break_condition", up=True)

    def close(self) -> None:
        """Close the connection, which frees the port there. A second call does nothing."""
        if self._open:
            self._open = False
            self._port.close()

    def _pulse(self, name: str, *, up: bool) -> None:
        try:
            setattr(self._port, name, up)
            time.sleep(PULSE_S)
            setattr(self._port, name, not up)
        except (serial.SerialException, ValueError) as error:
            raise ResetError(f"{self.name}: {name} can't be set: {error}", stage="reset") from error

    def _check(self) -> None:
        if not self._open:
            error = PortGoneError(f"{self.name}: the link is closed", next_step="open the device again")
            error.by_us = True
            raise error

    def _gone(self, error: Exception) -> PortGoneError:
        return PortGoneError(f"{self.name}: the server has closed the connection ({error})")


def _opened(url: str, baud: int, reset_line: ModemLine | Literal[""]) -> Any:  # noqa: ANN401 - no types
    port = serial.serial_for_url(url, baud, timeout=_READ_S, do_not_open=True)
    if reset_line:
        setattr(port, reset_line, False)
    port.open()
    return port


def _not_opened(url: str, error: Exception) -> HarnessError:
    text = str(error)
    if any(word in text.lower() for word in _BUSY):
        return PortBusyError(f"{url} is in use", holders=[text])
    step = "check that ser2net serves RFC 2217 there (telnet(rfc2217)) and that no other client has the port"
    if "refused" in text:
        step = "start the server there, or correct the port's number"
    return PortGoneError(f"{url} can't be opened: {text}", stage="open link", next_step=step)
