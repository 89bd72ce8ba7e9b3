# SPDX-License-Identifier: Apache-2.0
"""Drivers as they are, with their hardware in Python.

pytest samples/driver --platform posix,bare_mps2_an385,bare_rv32
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import minrpc
import pytest
from minrpc import CFunctions, interrupt, interruptions, registers, variables

USART1 = 0x40013800
I2C1 = 0x40005400
RXNE, TXE = 1 << 5, 1 << 7
START, STOP = 1 << 8, 1 << 9
SB, ADDR, READY, AF = 1, 1 << 1, 1 << 6, 1 << 10
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
    uart.uart_init(72_000_000, 115_200)
    opened = usart.registers
    opened.expect([opened.BRR.write(625), opened.CR1.write(0x202C)])


def test_bytes_are_sent_by_interrupts(uart: CFunctions, usart: Usart) -> None:
    text = minrpc.place(uart, b"hello")
    uart.uart_send(text, 5)
    assert uart.uart_sent()
    assert bytes(usart.sent) == b"hello"
    assert usart.registers.CR1.value & TXE == 0


def test_received_bytes_wait(uart: CFunctions, usart: Usart) -> None:
    usart.receive(b"123456\x80\xff9")
    assert variables(uart).lost == 1
    assert [uart.uart_read() for _ in range(9)] == [*b"123456\x80\xff", -1]
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


class Sensor:
    """A model of the I2C and of the sensor at its bus. A flag is seen at the second look at the status."""

    registers: Any = None
    present = True
    missing = 0  # a flag that does not come

    def __init__(self, readings: Iterable[int]) -> None:
        self.readings = iter(readings)
        self.flags = self.seen = 0

    def come(self, flag: int) -> None:
        self.flags |= flag & ~self.missing

    def read_SR1(self) -> int:  # noqa: N802
        seen, self.seen = self.seen, self.flags
        return seen & self.flags

    def write_SR1(self, value: int) -> None:  # noqa: N802
        self.flags &= value | ~AF

    def read_SR2(self) -> int:  # noqa: N802
        if self.seen & ADDR:
            self.flags &= ~ADDR
            self.come(READY)
        return 0

    def write_CR1(self, value: int) -> None:  # noqa: N802
        if value & START:
            self.come(SB)
        else:
            self.flags &= AF  # the bus is given free
        self.registers.CR1.value &= ~START

    def write_DR(self, address: int) -> None:  # noqa: N802
        if self.seen & SB:  # else there is no start in front of the address, and nothing comes
            self.flags &= ~SB
            self.come(ADDR if self.present and address == 0x91 else AF)

    def read_DR(self) -> int:  # noqa: N802
        self.flags &= ~READY
        return next(self.readings)


@contextmanager
def sensor_at(lib: CFunctions, *readings: int) -> Iterator[Sensor]:
    model = Sensor(readings)
    with registers(lib, I2C1, "I2C_TypeDef", model=model) as model.registers:
        yield model
        assert model.registers.CR1.value & STOP


@pytest.fixture
def bus(load: minrpc.library.Load) -> CFunctions:
    """The sensor's driver; its tick counts the looks at it, and wraps soon."""
    clock = itertools.count(2**32 - 3)
    return load("sensor.c", fakes={"HAL_GetTick": lambda: next(clock) % 2**32})


def test_the_sensor_answers(bus: CFunctions) -> None:
    with sensor_at(bus, 0xE7, 30) as sensor:
        assert [bus.sensor_read(), bus.sensor_read()] == [-25, 30]
        assert [access.name for access in sensor.registers.accesses].count("SR2") == 2


def test_the_sensor_is_absent_once(bus: CFunctions) -> None:
    with sensor_at(bus, 21) as sensor:
        sensor.present = False
        assert bus.sensor_read() == -1000
        sensor.present = True
        assert bus.sensor_read() == 21


@pytest.mark.parametrize("missing", [SB, ADDR, READY])
def test_the_bus_is_stuck_once(bus: CFunctions, missing: int) -> None:
    with sensor_at(bus, 21) as sensor:
        sensor.missing = missing
        assert bus.sensor_read() == -1001
        assert len(sensor.registers.accesses) < 40
        sensor.missing = 0
        assert bus.sensor_read() == 21


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
    with dma_of(lib) as dma:
        for text in (b"hello", b"world", b"by"):
            target, source = minrpc.place(lib, bytes(6)), minrpc.place(lib, text)
            dma.registers.accesses.clear()
            assert lib.dma_copy(target, source, len(text)) == len(text)
            assert bytes(target)[:6] == text.ljust(6, b"\0")
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


def test_a_transfer_fails_and_the_next_one_works(load: minrpc.library.Load) -> None:
    lib = load("dma.c")
    target, other, text = (minrpc.place(lib, value) for value in (bytes(5), bytes(5), b"hello"))
    with dma_of(lib) as dma:
        dma.outcome = TE
        assert lib.dma_copy(target, text, 5) == -2
        dma.outcome = 0
        assert [lib.dma_start(target, text, 5), lib.dma_start(other, text, 2)] == [0, -1]
        interrupt(lib.DMA1_IRQHandler)  # of another device at the same line
        assert lib.dma_start(other, text, 5) == -1
        dma.outcome = TC
        dma.finish()
        interrupt(lib.DMA1_IRQHandler)
        assert [bytes(target)[:5], bytes(other)[:5]] == [b"hello", bytes(5)]
        assert lib.dma_copy(other, text, 5) == 5
        assert bytes(other)[:5] == b"hello"


def test_a_forgotten_barrier_shows(load: minrpc.library.Load) -> None:
    """The compiler takes the count from in front of the transfer."""
    lib = load("dma.c", defines=["DMA_WITHOUT_BARRIERS"], flags=["-O2"])
    if minrpc.library_of(lib).facts.machine == "EM_ARM":
        pytest.skip("this compiler reads the count again")
    target, text = minrpc.place(lib, bytes(6)), minrpc.place(lib, b"hello")
    with dma_of(lib):
        assert lib.dma_copy(target, text, 5) == 0  # and not 5
