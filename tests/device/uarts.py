# SPDX-License-Identifier: Apache-2.0
"""Models of Arm's UARTs, and the accesses that QEMU's devices see."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from minrpc import CFunctions, RunningDevice, registers
from minrpc.hardware import Registers
from minrpc.host.deadline import Deadline

_LOG_S = 30.0
_USUAL = "unimp,guest_errors"


class Uart:
    """Its bytes leave at once, and none comes. BASE: its address in the machine."""

    BASE: ClassVar[int]
    EVENTS: ClassVar[str]
    """QEMU's trace of the device's accesses."""
    TRACED: ClassVar[str]
    """A regular expression of a line of the trace: kind, offset and value."""

    def __init__(self) -> None:
        self.sent = bytearray()
        self.status = 0
        self.registers: Registers | None = None


class CmsdkUart(Uart):
    BASE = 0x40006000
    EVENTS = "cmsdk_apb_uart"
    TRACED = r"UART (read|write): offset 0x(\w+) data 0x(\w+)"

    def write_data(self, value: int) -> None:
        assert self.registers is not None
        self.sent.append(value)
        self.status |= self.registers.ctrl.value >> 2 & 1

    def read_intstatus(self) -> int:
        return self.status

    def write_intclear(self, value: int) -> None:
        self.status &= ~value


class Pl011(Uart):
    BASE = 0x4000E000
    EVENTS = "pl011"
    TRACED = r"pl011_(read|write) addr 0x0*(\w+) value 0x0*(\w+)"

    def read_fr(self) -> int:
        return 0x90

    def write_dr(self, value: int) -> None:
        self.sent.append(value & 0xFF)
        self.status |= 0x20

    def read_ris(self) -> int:
        return self.status

    def write_icr(self, value: int) -> None:
        self.status &= ~value


def require_the_same(
    running: RunningDevice, lib: CFunctions, struct: str, uart: type[Uart], drive: Callable[[], int]
) -> tuple[int, Uart]:
    """Requires that `drive` has the same result and the same accesses with a model as with QEMU's device.

    struct: the registers' type. Returns the result, and the model with its closed registers.
    """
    with _traced(running, uart) as seen:
        of_qemu = drive()
    model = uart()
    with registers(lib, uart.BASE, struct, model=model) as model.registers:
        assert drive() == of_qemu
    modelled = [
        (item.kind, f"{item.address - uart.BASE:x}", f"{item.value:x}") for item in model.registers.accesses
    ]
    # Before and behind them are accesses to the link's UART.
    assert any(seen[at : at + len(modelled)] == modelled for at in range(len(seen))), (seen, modelled)
    return of_qemu, model


@contextmanager
def _traced(running: RunningDevice, uart: type[Uart]) -> Iterator[list[tuple[str, str, str]]]:
    """The accesses to all UARTs in the block, once it has ended: kind, offset, value."""
    seen: list[tuple[str, str, str]] = []
    tail = running.output_tail
    assert tail is not None
    assert running.qemu is not None
    before = tail.position
    events = ",".join(f"trace:{uart.EVENTS}_{kind}" for kind in ("read", "write"))
    running.qemu.order(f"log {events}", Deadline("log", _LOG_S))
    try:
        yield seen
    finally:
        running.qemu.order(f"log {_USUAL}", Deadline("log", _LOG_S))
    seen += re.findall(uart.TRACED, tail.text(before))
