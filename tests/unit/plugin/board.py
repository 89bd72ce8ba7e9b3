# SPDX-License-Identifier: Apache-2.0
"""A board on a terminal, as a process: the posix firmware behind it; SIGUSR1 is its reset button.

Its arguments: the firmware, the path of its terminal, and the baud rate of its UART, if the wire is to be
true to the bit. It prints its process id when it is ready.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

from minrpc.transport import set_raw

sys.path.append(str(Path(__file__).parents[3]))  # It is run by its path.
from tests.uart import carried

_SPEED = 5


class Board:
    """The firmware and the socket that is its link."""

    def __init__(self, elf: str) -> None:
        self._elf = elf
        self.start()

    def start(self) -> None:
        self.link, theirs = socket.socketpair()
        with theirs:
            argv = [self._elf, "--fd", str(theirs.fileno())]
            self._process = subprocess.Popen(argv, pass_fds=(theirs.fileno(),), stdout=subprocess.DEVNULL)

    def receive(self) -> bytes:
        with suppress(ConnectionResetError):
            return self.link.recv(65536)
        return b""

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self.link.close()


def host_rate(terminal: int) -> int:
    """The baud rate that the user of the terminal has set."""
    speed = termios.tcgetattr(terminal)[_SPEED]
    names = (name for name, value in vars(termios).items() if name[:1] == "B" and value == speed)
    return int(next(name for name in names if name[1:].isdigit())[1:])


def main(elf: str, path: Path, rate: int = 0) -> None:
    board = Board(elf)
    master, slave = os.openpty()
    set_raw(slave)
    path.symlink_to(os.ttyname(slave))
    button, pressed = os.pipe2(os.O_NONBLOCK)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.set_wakeup_fd(pressed)
    print(os.getpid(), flush=True)
    dead = False  # The firmware has crashed: bytes sent to it are lost.
    while True:
        heard = [] if dead else [board.link]
        ready, _, _ = select.select([master, *heard, button, sys.stdin], [], [])
        if sys.stdin in ready:
            break
        if button in ready:
            os.read(button, 100)
            board.stop()
            board.start()
            dead = False
            Path(f"{path}.reset").touch()
        elif master in ready:
            sent = os.read(master, 65536)
            if rate:
                sent = carried(sent, host_rate(master), rate)
            with suppress(BrokenPipeError, ConnectionResetError):
                board.link.sendall(sent)
        elif board.link in ready:
            said = board.receive()
            dead = not said
            os.write(master, carried(said, rate, host_rate(master)) if rate else said)
    board.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:]))
