# SPDX-License-Identifier: Apache-2.0
"""QEMU's own clocks, read from outside the guest: the instructions it executed, and its virtual time.

They are read by QMP, QEMU's machine protocol: a monitor beside the harness's.

QEMU is stopped for a reading, so the counters stand still. Virtual time comes from counters of the emulated
machine that QEMU derives from it and the guest does not touch:

- q35: the ACPI power management timer (3.579545 MHz, 24 bits), its wraps by the RTC, which follows virtual
  time when started with `-rtc clock=vm`, as Zephyr starts it.
- mps2, mps3: the FPGA's free-running counter (32 bits), its wraps by the 100 Hz counter beside it.
- virt of RISC-V: its real-time clock, which counts nanoseconds of virtual time when started with
  `-rtc clock=vm`.
"""

from __future__ import annotations

import calendar
import json
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TextIO

import pytest
from minrpc.running import qemu
from minrpc.targets.qemu_command import wire

_MONITOR_S = 60.0


class QemuReading(NamedTuple):
    """instructions: executed since QEMU started.

    virtual_s: virtual time; None if the machine has no counter for it.
    resolution_s: resolution of that counter.
    """

    instructions: int
    virtual_s: float | None
    resolution_s: float


class Qmp:
    """QEMU's machine protocol: JSON objects, one a line; docs/interop/qmp-spec in QEMU."""

    def __init__(self, lines: TextIO) -> None:
        self._lines = lines
        assert "QMP" in self._next()
        self.execute("qmp_capabilities")

    def execute(self, command: str, **arguments: object) -> Any:  # noqa: ANN401 (JSON)
        """The answer to `command`."""
        self._lines.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._lines.flush()
        while "event" in (answer := self._next()):
            continue
        assert "return" in answer, answer
        return answer["return"]

    def _next(self) -> Any:  # noqa: ANN401 (JSON)
        return json.loads(self._lines.readline())


@contextmanager
def served_by_qmp() -> Iterator[Callable[[], Qmp]]:
    """Devices that start in the block have QMP, too; gives a function that connects to the last."""
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch, ExitStack() as end:
        path = f"{directory}/qmp"
        patch.setattr(qemu, "wire", lambda *given: [*wire(*given), "-qmp", f"unix:{path},server=on,wait=off"])

        def connect() -> Qmp:
            connection = end.enter_context(socket.socket(socket.AF_UNIX))
            connection.settimeout(_MONITOR_S)
            connection.connect(path)
            return Qmp(end.enter_context(connection.makefile("rw", encoding="utf-8")))

        yield connect


@dataclass
class QemuClock:
    """Reads QEMU's clocks over QMP. Only readings by the same object can be compared.

    epoch_s: the slower counter's value when the fast counter stood at zero.
    """

    qmp: Qmp
    epoch_s: float | None = None

    def read(self) -> QemuReading:
        """Stop the guest, read the clocks, and let the guest go on."""
        self.qmp.execute("stop")
        try:
            instructions: int = self.qmp.execute("query-replay")["icount"]
            virtual = self._virtual()
        finally:
            self.qmp.execute("cont")
        return QemuReading(instructions, *virtual)

    def _virtual(self) -> tuple[float | None, float]:
        machine: str = self.qmp.execute("qom-get", path="/machine", property="type")
        machine = f"{self.qmp.execute('query-target')['arch']} {machine}"
        for pattern, read, resolution_s in _READERS:
            if re.search(pattern, machine):
                return read(self), resolution_s
        return None, 0.0

    def monitor(self, line: str) -> int:
        """The number that a command of the human monitor prints last."""
        return int(self.monitor_text(line).split()[-1], 16)

    def monitor_text(self, line: str) -> str:
        """Output of a command of the human monitor."""
        return str(self.qmp.execute("human-monitor-command", **{"command-line": line}))

    def rtc_s(self) -> int:
        """Seconds of the machine's RTC."""
        now = self.qmp.execute("qom-get", path="/machine", property="rtc-time")
        fields = ("tm_year", "tm_mon", "tm_mday", "tm_hour", "tm_min", "tm_sec")
        year, month, *rest = (now[field] for field in fields)
        return calendar.timegm((year + 1900, month + 1, *rest))

    def unwrapped(self, count: int, bits: int, hz: float, slow_s: float) -> float:
        """Seconds of a counter of `bits` bits; a slower counter gives its wraps."""
        if self.epoch_s is None:
            self.epoch_s = slow_s - count / hz
        period = (1 << bits) / hz
        return count / hz + round((slow_s - self.epoch_s - count / hz) / period) * period


def _q35(clock: QemuClock) -> float:
    # The address that the firmware has given it.
    port = re.search(r"([0-9a-f]+)-[0-9a-f]+ [^\n]*acpi-tmr", clock.monitor_text("info mtree"))
    assert port is not None, "the machine has no power management timer"
    return clock.unwrapped(clock.monitor(f"i /w 0x{port[1]}") & 0xFFFFFF, 24, 3579545, clock.rtc_s())


def _fpga(base: int, hz: float) -> Callable[[QemuClock], float]:
    """The counters of an FPGA image whose I/O registers lie at `base`.

    They are read as the processor reads them: in some images only the secure state has access.
    """

    def read(clock: QemuClock) -> float:
        hundredths = clock.monitor(f"x /1xw {base + 0x14:#x}")
        return clock.unwrapped(clock.monitor(f"x /1xw {base + 0x18:#x}"), 32, hz, hundredths / 100)

    return read


def _goldfish(clock: QemuClock) -> float:
    # Reading the low half keeps the high half that belongs to it.
    low = clock.monitor("xp /1xw 0x101000")
    return (clock.monitor("xp /1xw 0x101004") << 32 | low) / 1e9


_READERS: tuple[tuple[str, Callable[[QemuClock], float], float], ...] = (
    ("pc-q35", _q35, 1 / 3579545),
    ("mps2-an(385|386|500)-", _fpga(0x40028000, 25e6), 1 / 25e6),
    ("mps2-an(505|521)-", _fpga(0x50302000, 20e6), 1 / 20e6),
    ("mps3-an547-", _fpga(0x59302000, 20e6), 1 / 20e6),
    (r"riscv\S* virt-", _goldfish, 1e-9),
)
