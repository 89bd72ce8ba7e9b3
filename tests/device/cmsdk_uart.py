# SPDX-License-Identifier: Apache-2.0
"""Arm's CMSDK UART: a model of it, and the accesses that QEMU's device sees."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from minrpc import CFunctions, RunningDevice, registers
from minrpc.hardware import Registers
from minrpc.host.deadline import Deadline

BASE = 0x40006000
_LOG_S = 30.0
_TRACE = "trace:cmsdk_apb_uart_read,trace:cmsdk_apb_uart_write"
_USUAL = "unimp,guest_errors"


class CmsdkUart:
    """Its bytes leave at once, and none comes."""

    def __init__(self) -> None:
        self.sent = bytearray()
        self.status = 0
        self.registers: Registers | None = None

    def write_data(self, value: int) -> None:
        assert self.registers is not None
        self.sent.append(value)
        self.status |= self.registers.ctrl.value >> 2 & 1

    def read_intstatus(self) -> int:
        return self.status

    def write_intclear(self, value: int) -> None:
        self.status &= ~value


def require_the_same(
    running: RunningDevice, lib: CFunctions, struct: str, drive: Callable[[], int]
) -> tuple[int, CmsdkUart]:
    """Requires that `drive` has the same result and the same accesses with a model as with QEMU's device.

    struct: the registers' type. Returns the result, and the model with its closed registers.
    """
    with _traced(running) as seen:
        of_qemu = drive()
    model = CmsdkUart()
    with registers(lib, BASE, struct, model=model) as model.registers:
        assert drive() == of_qemu
    modelled = [
        (item.kind, f"{item.address - BASE:x}", f"{item.value:x}") for item in model.registers.accesses
    ]
    # Before and behind them are accesses to the link's UART.
    assert any(seen[at : at + len(modelled)] == modelled for at in range(len(seen))), (seen, modelled)
    return of_qemu, model


@contextmanager
def _traced(running: RunningDevice) -> Iterator[list[tuple[str, str, str]]]:
    """The accesses to all UARTs in the block, once it has ended: kind, offset, value."""
    seen: list[tuple[str, str, str]] = []
    tail = running.output_tail
    assert tail is not None
    before = tail.position
    running.monitor(f"log {_TRACE}", Deadline("log", _LOG_S))
    try:
        yield seen
    finally:
        running.monitor(f"log {_USUAL}", Deadline("log", _LOG_S))
    seen += re.findall(r"UART (read|write): offset 0x(\w+) data 0x(\w+)", tail.text(before))
