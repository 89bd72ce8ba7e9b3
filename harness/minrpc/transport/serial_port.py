# SPDX-License-Identifier: Apache-2.0
"""A board on a serial port, with a lock that keeps a second harness out."""

from __future__ import annotations

import errno
import os
import sys
import time
from pathlib import Path
from struct import Struct
from typing import Final, Literal

import serial

from minrpc.errors import (
    ConfigurationError,
    HarnessError,
    PortBusyError,
    PortDeniedError,
    PortGoneError,
    ResetError,
)
from minrpc.transport.fd import FdTransport, set_raw

if sys.platform != "win32":
    import fcntl
    import termios

ModemLine = Literal["dtr", "rts"]

# Seconds for which a reset line is active: boards need milliseconds, and a capacitor delays the edge.
PULSE_S: Final = 0.1
_GONE = frozenset({errno.ENOENT, errno.ENXIO, errno.ENODEV, errno.EIO})
# struct serial_icounter_struct of linux/serial.h: cts, dsr, rng, dcd, rx, tx, frame, ...
_ICOUNTER = Struct("20i")
_FRAME = 6
_BUSY = frozenset({errno.EBUSY, errno.EAGAIN, errno.EWOULDBLOCK})


def processes_with_open(path: str | Path) -> list[str]:
    """The other processes that have `path` open, each as "name (pid N)"; without processes that the user may
    not see."""
    target = os.path.realpath(path)
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    return [f"{_process_name(pid)} (pid {pid})" for pid in pids if target in _open_files(pid)]


def _open_files(pid: int) -> set[str]:
    files = set()
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                files.add(os.readlink(entry.path))
    except OSError:
        # The process ended, closed the file in the meantime, or is another user's: it has no name to show.
        return files
    return files


def _process_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "a process that just ended"


class SerialTransport(FdTransport):
    """The serial port at `path`, 8N1 without flow control, locked until `close`.

    The lock is flock(2) on the device itself: it holds for every path that leads there, and it ends with
    the process.

    reset_line: the modem line that resets the board. It stays inactive while the port is open, since some
    boards stay in reset as long as it is active; the other modem line is active.
    """

    def __init__(self, path: str, baud: int, reset_line: ModemLine | Literal[""] = "") -> None:
        port = _open_port(path, baud, reset_line)
        try:
            set_raw(port.fileno())
            super().__init__(port.fileno(), path, close=port.close, gone=PortGoneError)
        except BaseException:
            port.close()
            raise
        self._port = port
        self._errors_before = _framing_errors(port.fileno())

    def framing_errors(self) -> int:
        """Bytes that came without a stop bit since the port was opened; 0 if its driver counts none."""
        return _framing_errors(self._port.fileno()) - self._errors_before if self._port.is_open else 0

    def pull(self, line: ModemLine) -> None:
        """Activate a modem line and release it, which resets a board. Raises ResetError."""
        try:
            setattr(self._port, line, True)
            time.sleep(PULSE_S)
            setattr(self._port, line, False)
        except OSError as error:
            message = f"{self.name} has no line {line.upper()}: {error.strerror}"
            raise ResetError(message, stage="reset") from error

    def send_break(self) -> None:
        """Send a BREAK (the line at 0 for a moment), which resets some firmware. Raises ResetError."""
        try:
            self._port.send_break(PULSE_S)
        except (OSError, termios.error) as error:
            raise ResetError(f"{self.name} can't send a BREAK: {error}", stage="reset") from error


def _framing_errors(fd: int) -> int:
    counts = bytearray(_ICOUNTER.size)
    try:
        fcntl.ioctl(fd, termios.TIOCGICOUNT, counts)
    except (OSError, AttributeError):  # Other systems have no such request.
        return 0
    return int(_ICOUNTER.unpack(counts)[_FRAME])


def _open_port(path: str, baud: int, reset_line: ModemLine | Literal[""]) -> serial.Serial:
    try:
        port = serial.Serial(None, baud, timeout=0, write_timeout=0, exclusive=True)
        if reset_line:
            setattr(port, reset_line, False)
        port.port = path
        port.open()
        return port
    except serial.SerialException as error:
        raise _open_error(path, error) from error
    except ValueError as error:
        step = "choose another baud rate"
        raise ConfigurationError(f"{path}: {error}", stage="open link", next_step=step) from error


def _group_step(path: str) -> str | None:
    """Advice: the command that gives the user access to the port; None if its group has no name."""
    try:
        group = Path(path).group()
    except (OSError, KeyError):
        return None
    return f"run `sudo usermod -a -G {group} $USER`, which adds you to the port's group, and log in again"


def _open_error(path: str, error: serial.SerialException) -> HarnessError:
    if error.errno in _BUSY:
        return PortBusyError(f"{path} is in use", holders=processes_with_open(path))
    if error.errno in _GONE:
        return PortGoneError(f"{path} is not there: {os.strerror(error.errno)}", stage="open link")
    if error.errno == errno.EACCES:
        message = f"{path}: no permission to open it"
        return PortDeniedError(message, stage="open link", next_step=_group_step(path))
    step = "check the port's path"
    return HarnessError(f"{path} can't be opened: {error}", stage="open link", next_step=step)
