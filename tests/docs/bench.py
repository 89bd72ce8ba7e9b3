# SPDX-License-Identifier: Apache-2.0
"""A bench without hardware: boards that QEMU runs, behind terminals that Linux shows as USB serial ports.

Commands run in a sandbox of bubblewrap's, whose /dev and /sys/class have the bench's ports as an ST-Link
makes them, and nothing else that could be a board. `lab` is the bench's probe and power switch:

    lab flash ID ELF | lab reset ID | lab power ID | lab unplug ID | lab plug ID
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.docs.pages import ROOT, shell

BOARD: Final = ROOT / "tests/unit/plugin/board.py"
_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "pts", "shm")
_LAB: Final = """#!/bin/sh
set -e
what=$1 root=$(dirname "$0") board=$(dirname "$0")/$2
signal() {
	rm -f $board.$2
	kill -$1 $(cat $board.pid)
	until [ -e $board.$2 ]; do sleep 0.05; done
}
[ -e $board.pid ] || { echo "no probe $2" >&2; exit 1; }
case $what in
flash) cp $3 $board.new; mv $board.new $board.elf; signal USR1 reset; echo "$2" >> $root/flashed ;;
reset) signal USR1 reset ;;
power) signal USR2 off; signal USR1 reset ;;
unplug) rm $root/dev/ttyACM${2#066A} $root/dev/serial/by-id/*_$2-* ;;
plug)
	ln -s $(readlink $board) $root/dev/ttyACM${2#066A}
	ln -s ../../ttyACM${2#066A} $root/dev/serial/by-id/usb-STMicroelectronics_STLINK-V3_$2-if02
	;;
esac
"""


class Bench:
    """Boards with the ids 066A0, 066A1, ..., at /dev/ttyACM0, /dev/ttyACM1, ..., without firmware.

    directory: the working directory of its commands, with minrpc.toml.
    """

    def __init__(self, root: Path, directory: Path) -> None:
        self.root = root
        self.directory = directory
        self._dev, self._tty = root / "dev", root / "class/tty"
        (self._dev / "serial/by-id").mkdir(parents=True)
        self._tty.mkdir(parents=True)
        (self._dev / "fd").symlink_to("/proc/self/fd")
        (self._dev / "ptmx").symlink_to("pts/ptmx")
        self.lab = root / "lab"
        self.lab.write_text(_LAB)
        self.lab.chmod(0o755)

    @contextmanager
    def board(self, number: int, rate: int = 0) -> Iterator[str]:
        """A board with power, and its id. rate: of its UART, on a wire true to the bit; 0 for any rate."""
        name = f"066A{number}"
        path = self.root / name
        words = [str(BOARD), f"{path}.elf", str(path), *([str(rate)] if rate else [])]
        with subprocess.Popen(
            [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            Path(f"{path}.pid").write_text(process.stdout.readline())
            self._show(number, name)
            try:
                self.run_lab("plug", name)
                yield name
            finally:
                process.communicate()

    def _show(self, number: int, name: str) -> None:
        """The files of /sys that tell what is at the port; the port itself comes with `lab plug`."""
        device = self.root / f"class/usb/1-{number + 1}"
        interface = device / f"1-{number + 1}:1.2"
        interface.mkdir(parents=True)
        facts = {"bNumInterfaces": "3", "idVendor": "0483", "idProduct": "374e", "product": "STLINK-V3"}
        for file, text in (facts | {"serial": name, "manufacturer": "STMicroelectronics"}).items():
            (device / file).write_text(f"{text}\n")
        (interface / "interface").write_text("ST-Link VCP Ctrl\n")
        (interface / "subsystem").symlink_to("/sys/bus/usb")
        (self._tty / f"ttyACM{number}").mkdir()
        (self._tty / f"ttyACM{number}/device").symlink_to(f"/sys/class/usb/1-{number + 1}/{interface.name}")

    def run_lab(self, *words: str) -> None:
        subprocess.run([str(self.lab), *words], check=True)

    def flashed(self) -> list[str]:
        """The ids of the boards that were flashed, in order."""
        log = self.root / "flashed"
        return log.read_text().split() if log.exists() else []

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command on the bench."""
        words = ["bwrap", "--dev-bind", "/", "/", "--bind", str(self._dev), "/dev"]
        for name in _DEVICES:
            words += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
        words += ["--ro-bind", str(self.root / "class"), "/sys/class", "--die-with-parent", "--"]
        return shell(command, self.directory, words)
