# SPDX-License-Identifier: Apache-2.0
"""Drivers as they are, with their hardware in Python.

pytest samples/driver --platform posix,bare_mps2_an385,bare_rv32
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import minrpc
import pytest
from minrpc import CFunctions, interrupt, interruptions, registers, variables

USART1 = 0x40013800
I2C1 = 0x40005400
RXNE, TXE = 1 << 5, 1 << 7
AF = 1 << 10
DMA1 = 0x40026000
EN, TC, TE = 1, 1 << 1, 1 << 2


class Usart:
    """A model of the UART: it interrupts while a byte has come, or one can be sent and that is enabled."""

    def __init__(self, lib: CFunctions) -> None:
        self.handler = lib.USART1_IRQHandler
        self.sent: list[int] = []
        self.incoming: list[int] = []

    def read_SR(self) -> int:  # noqa: N802 - the register's name
        return TXE | (RXNE if self.incoming else 0)

    def read_DR(self) -> int:  # noqa: N802
        return self.incoming.pop(0)

    def write_DR(self, value: int) -> None:  # noqa: N802
        self.sent.append(value)
        self.raise_interrupt()

    def write_CR1(self, _: int) -> None:  # noqa: N802
        self.raise_interrupt()

    def raise_interrupt(self) -> None:
        if self.registers.CR1.value & TXE:
            self.registers.interrupt(self.handler)

    def receive(self, data: bytes) -> None:
        for byte in data:
            self.incoming.append(byte)
            interrupt(self.handler)

    registers: Any = None


@pytest.fixture
def uart(load: minrpc.library.Load) -> CFunctions:
    return load("uart.c")


@pytest.fixture
def usart(uart: CFunctions) -> Iterator[Usart]:
    model = Usart(uart)
    with registers(uart, USART1, "USART_TypeDef", model=model) as opened:
        model.registers = opened
        yield model


def test_the_uart_is_set_up_in_this_order(uart: CFunctions, usart: Usart) -> None:
    uart.uart_init(16_000_000, 115_200)
    opened = usart.registers
    opened.expect([opened.BRR.write(139), opened.CR1.write(0x202C)])


def test_bytes_are_sent_by_interrupts(uart: CFunctions, usart: Usart) -> None:
    text = minrpc.place(uart, b"hello")
    uart.uart_send(text, 5)
    assert uart.uart_sent()
    assert bytes(usart.sent) == b"hello"
    assert usart.registers.CR1.value & TXE == 0


def test_received_bytes_wait(uart: CFunctions, usart: Usart) -> None:
    usart.receive(b"123456789")
    assert variables(uart).lost == 1
    assert [uart.uart_read() for _ in range(9)] == [*b"12345678", -1]
    assert {access.kind for access in usart.registers.accesses} == {"read"}


@pytest.mark.parametrize("shared_count", [False, True])
def test_an_interrupt_may_come_at_any_instruction(load: minrpc.library.Load, shared_count: bool) -> None:
    """A shared count loses an update; a head of the handler's and a tail of the program's don't."""
    lib = load("uart.c", defines=["UART_COUNTS"] if shared_count else [])
    state = variables(lib)

    with registers(lib, USART1, "USART_TypeDef") as usart:
        usart.SR.reads = lambda: RXNE
        usart.DR.reads = lambda: 7

        def prepare() -> None:
            state.head, state.tail, state.lost = 1, 0, 0
            if shared_count:
                state.count = 1

        def holds() -> bool:
            return [state.lost, lib.uart_read(), lib.uart_read()] == [0, 7, -1]

        sweep = interruptions(lib.uart_read, handler=lib.USART1_IRQHandler)
        if shared_count:
            with pytest.raises(AssertionError, match=r"breaks uart_read at \d+ of \d+ places"):
                sweep.require(holds, prepare=prepare, watch=["count"])
        else:
            sweep.require(holds, prepare=prepare)


def test_the_sensor_answers(load: minrpc.library.Load) -> None:
    lib = load("sensor.c", fakes={"HAL_GetTick": lambda: 0})
    with registers(lib, I2C1, "I2C_TypeDef") as i2c:
        i2c.SR1.reads = [0, 0, 1, 2, 1 << 6]
        i2c.DR.reads = [0xE7]
        assert lib.sensor_read() == -25
        assert [access.name for access in i2c.accesses].count("SR2") == 1
        assert [str(access).partition(" at ")[0] for access in i2c.accesses if access.kind == "write"] == [
            "write CR1 0x100",
            "write DR 0x91",
            "write CR1 0x300",
        ]


@pytest.mark.parametrize(("status", "result"), [(0, -1001), (AF, -1000)])
def test_the_sensor_is_given_up_and_the_bus_is_free(
    load: minrpc.library.Load, status: int, result: int
) -> None:
    clock = itertools.count()
    lib = load("sensor.c", fakes={"HAL_GetTick": lambda: next(clock)})
    with registers(lib, I2C1, "I2C_TypeDef") as i2c:
        i2c.SR1.reads = lambda: status
        assert lib.sensor_read() == result
        assert i2c.CR1.value & 1 << 9
    assert next(clock) < 10


class Dma:
    """A model of the DMA: it reads the descriptor when it is enabled, and interrupts at its end."""

    registers: Any = None
    outcome = TC  # or TE, or 0: it does not end

    def __init__(self, lib: CFunctions) -> None:
        self.lib = lib

    def write_CR(self, value: int) -> None:  # noqa: N802
        if value & EN and self.outcome:
            self.finish()
            if value & self.outcome:
                self.registers.interrupt(self.lib.DMA1_IRQHandler)

    def write_ICR(self, value: int) -> None:  # noqa: N802
        self.registers.ISR.value &= ~value

    def finish(self) -> None:
        work = variables(self.lib).descriptor
        if self.outcome == TC:
            minrpc.write(self.lib, work.destination, bytes(minrpc.read(self.lib, work.source, work.size)))
            work.done = work.size
        self.registers.ISR.value |= self.outcome


@contextmanager
def dma_of(lib: CFunctions) -> Iterator[Dma]:
    model = Dma(lib)
    with registers(lib, DMA1, "DMA_TypeDef", model=model) as model.registers:
        yield model


def test_a_transfer_moves_the_bytes(load: minrpc.library.Load) -> None:
    lib = load("dma.c")
    target, text = minrpc.place(lib, bytes(6)), minrpc.place(lib, b"hello")
    with dma_of(lib) as dma:
        for size in (5, 2):
            dma.registers.accesses.clear()
            assert lib.dma_copy(target, text, size) == size
            opened = dma.registers
            opened.expect(
                [
                    opened.DESC.write(),
                    opened.CR.write(7),
                    opened.ISR.read(TC),
                    opened.ICR.write(TC),
                    opened.CR.write(0),
                ]
            )
            assert opened.ISR.value == 0
    assert bytes(target)[:6] == b"hello\0"


def test_a_transfer_fails_and_the_next_one_works(load: minrpc.library.Load) -> None:
    lib = load("dma.c")
    target, text = minrpc.place(lib, bytes(6)), minrpc.place(lib, b"hello")
    with dma_of(lib) as dma:
        dma.outcome = TE
        assert lib.dma_copy(target, text, 5) == -2
        dma.outcome = 0
        assert [lib.dma_start(target, text, 5) for _ in range(2)] == [0, -1]
        interrupt(lib.DMA1_IRQHandler)  # of another device at the same line
        assert lib.dma_start(target, text, 5) == -1
        dma.outcome = TC
        dma.finish()
        interrupt(lib.DMA1_IRQHandler)
        assert lib.dma_copy(target, text, 5) == 5


def test_a_forgotten_barrier_shows(load: minrpc.library.Load) -> None:
    """The compiler takes the count from in front of the transfer."""
    lib = load("dma.c", defines=["DMA_WITHOUT_BARRIERS"], flags=["-O2"])
    if minrpc.library_of(lib).facts.machine == "EM_ARM":
        pytest.skip("this compiler reads the count again")
    target, text = minrpc.place(lib, bytes(6)), minrpc.place(lib, b"hello")
    with dma_of(lib):
        assert lib.dma_copy(target, text, 5) == 0  # and not 5
