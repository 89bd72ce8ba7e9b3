# SPDX-License-Identifier: Apache-2.0
"""A board on a terminal, as a process: the firmware behind it, of posix or, in QEMU, of bare_mps2_an385.

Its arguments: the firmware, the path of its terminal, and the baud rate of its UART, if the wire is to be
true to the bit. It prints its process id when it is ready. SIGUSR1 is its reset button, and switches its
power on; SIGUSR2 switches its power off: PATH.reset and PATH.off tell that it was done. A board whose
firmware is not there says nothing.
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
_MACHINE = slice(18, 20)  # of an ELF file
_ARM = b"\x28\x00"


def command(elf: str, fd: int) -> list[str]:
    """The command that runs a firmware whose link is the descriptor."""
    if Path(elf).read_bytes()[_MACHINE] != _ARM:
        return [elf, "--fd", str(fd)]
    # By counted instructions: on a busy host the machine's clocks would differ, as no board's do.
    machine = "-icount shift=5,sleep=on -machine mps2-an385 -net none -display none -monitor none"
    serial = f"-chardev socket,id=link,fd={fd} -serial null -serial chardev:link"
    return ["qemu-system-arm", *machine.split(), *serial.split(), "-kernel", elf]


class Board:
    """The firmware and the socket that is its link."""

    def __init__(self, elf: str) -> None:
        self._elf = elf
        self.link = socket.socket()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> bool:
        """Start the firmware anew; False if there is none."""
        self.stop()
        if not Path(self._elf).exists():
            return False
        self.link, theirs = socket.socketpair()
        with theirs:
            fd = theirs.fileno()
            argv = command(self._elf, fd)
            self._process = subprocess.Popen(argv, pass_fds=(fd,), stdout=subprocess.DEVNULL)
        return True

    def receive(self) -> bytes:
        with suppress(ConnectionResetError):
            return self.link.recv(65536)
        return b""

    def stop(self) -> bool:
        """End the firmware; False, since none runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        self.link.close()
        return False


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
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(pressed)
    alive = board.start()  # False, too, after a crash of the firmware: bytes sent to it are lost.
    print(os.getpid(), flush=True)
    while True:
        heard = [board.link] if alive else []
        ready, _, _ = select.select([master, *heard, button, sys.stdin], [], [])
        if sys.stdin in ready:
            break
        if button in ready:
            off = signal.SIGUSR2 in os.read(button, 100)
            alive = (board.stop if off else board.start)()
            Path(f"{path}.{'off' if off else 'reset'}").touch()
        elif master in ready:
            sent = os.read(master, 65536)
            if rate:
                sent = carried(sent, host_rate(master), rate)
            if alive:
                with suppress(BrokenPipeError, ConnectionResetError):
                    board.link.sendall(sent)
        elif board.link in ready:
            said = board.receive()
            alive = bool(said)
            os.write(master, carried(said, rate, host_rate(master)) if rate else said)
    board.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:]))
