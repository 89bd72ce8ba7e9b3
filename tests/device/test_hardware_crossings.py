# SPDX-License-Identifier: Apache-2.0
"""Registers and interrupts together with fakes, two libraries, measurements, faults, hangs, crashes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from minrpc import (
    CFunctions,
    ConfigurationError,
    DeadlineError,
    Device,
    HarnessError,
    RegisterError,
    RunningDevice,
    fakes,
    interrupt,
    interruptions,
    measure,
    registers,
    variables,
)
from minrpc.plugin.shared import SharedDevice
from minrpc.transport import Faults

from tests.device.conftest import MakeLossy

pytestmark = pytest.mark.once

REGISTERS = Path(__file__).with_name("c") / "registers.c"
INTERRUPTS = REGISTERS.with_name("interrupts.c")
BASE, OTHER = 0x40013800, 0x40004400
USART = "USART_TypeDef"
CROSSED = """
#include <stdint.h>
typedef struct { volatile uint32_t SR, DR; } PLAIN;
PLAIN keeps_the_type;
int hal_note(int value);
int noted;
#define OTHER ((PLAIN *)0x40004400)
void notes(void) { noted = hal_note((int)OTHER->SR); }
int plain(int n) { int sum = 0; for (int i = 0; i < n; i++) { sum += i ^ noted; } return sum; }
void crashes_in_isr(void) { __builtin_trap(); }
void crossed_isr(void) { noted = 0; }
int hal_start(PLAIN *registers);
int starts(void) { return hal_start(OTHER); }
int waits(void) { while (OTHER->SR == 0) { } return (int)OTHER->DR; }
"""
Load = Callable[..., Any]


@pytest.fixture
def crossed(load: Load, tmp_path: Path) -> CFunctions:
    (tmp_path / "crossed.c").write_text(CROSSED)
    lib = CFunctions(load(tmp_path / "crossed.c", fakes="zero"))
    try:
        with registers(lib, OTHER, "PLAIN"):
            return lib
    except RegisterError as error:
        pytest.skip(error.message)


def test_a_fake_in_an_interrupt(crossed: CFunctions) -> None:
    """The handler asks a model, then a fake, which calls C that asks a model."""
    with registers(crossed, OTHER, "PLAIN") as plain:
        plain.SR.reads = [7, 1]
        plain.DR.value = 30
        fakes(crossed).hal_note.answer = lambda value: value + crossed.waits()
        interrupt(crossed.notes)
        assert variables(crossed).noted == 37
        plain.SR.reads = lambda: 5
        fakes(crossed).hal_note.answer = lambda _: 1 // 0
        with pytest.raises(ZeroDivisionError):
            interrupt(crossed.notes)
        fakes(crossed).hal_note.answer = lambda value: value
        interrupt(crossed.notes)
        assert variables(crossed).noted == 5


def test_a_fake_gets_a_pointer_to_registers(crossed: CFunctions) -> None:
    """It reads and changes them, without an access of C."""

    def start(given: Any) -> int:  # noqa: ANN401 - a struct
        given.DR = given.SR + 1
        return 5

    with registers(crossed, OTHER, "PLAIN") as plain:
        plain.SR.value = 7
        assert crossed.starts() == 0
        fakes(crossed).hal_start.answer = start
        assert (crossed.starts(), plain.DR.value, plain.accesses) == (5, 8, [])


def test_two_libraries(crossed: CFunctions, load: Load) -> None:
    """A model of one library calls the other, whose accesses have its own lines."""
    driver = CFunctions(load(REGISTERS))
    with registers(driver, BASE, USART) as usart, registers(crossed, OTHER, "PLAIN") as plain:
        plain.SR.value, plain.DR.value = 1, 3
        usart.on_read("SR", lambda: 0x80 + crossed.waits())
        assert driver.poll(2) == 2 * 0x83
        deeper = iter([True, False])
        plain.on_read("DR", lambda: driver.poll(1) if next(deeper) else 1)
        assert driver.poll(1) == 2 * 0x80 + 1  # four accesses wait
        plain.DR.reads, plain.DR.value = None, 3

        def raises(value: int) -> int:
            usart.interrupt(crossed.notes)
            return value

        usart.on_read("SR", lambda: raises(crossed.waits()))
        assert driver.poll(1) == 3
        assert fakes(crossed).hal_note.calls == [(1,)]
        assert {access.line.partition(":")[0] for access in plain.accesses} == {"crossed.c"}
        assert {access.line.partition(":")[0] for access in usart.accesses} == {"registers.c"}


def test_a_sweep_with_registers_over_a_link_that_loses_bytes(crossed: CFunctions, lossy: MakeLossy) -> None:
    device, transport = lossy(Faults.spread(0.001), 3, resend=True, timeout_s=60.0)
    with device:
        driver = device.load(INTERRUPTS, flags=["-O2"])
        state = variables(driver)
        broken = 0
        with registers(driver, BASE, USART) as usart:
            for at in interruptions(driver.get, handler=driver.rx_isr):
                state.count, state.head, state.tail = 1, 1, 0
                at()
                broken += state.count != 1
            usart.SR.value = 0x80
            interrupt(driver.usart_isr)
            assert [access.name for access in usart.accesses] == ["SR", "CR1", "CR1"]
        assert 2 <= broken <= 4
    assert any(transport.counts.values())


def test_sweeps_of_two_libraries(crossed: CFunctions, load: Load) -> None:
    """Each leaves its library's code as it was."""
    driver = CFunctions(load(INTERRUPTS, flags=["-O2"]))
    for _ in range(2):
        assert len([at() for at in interruptions(driver.get, handler=driver.rx_isr)]) > 4
        assert len([at(2) for at in interruptions(crossed.plain, handler=crossed.crossed_isr)]) > 8
        assert (driver.get(), crossed.plain(2)) == (42, 1)


def test_a_measurement(crossed: CFunctions) -> None:
    """A function without accesses is measured while registers are open; one with accesses is refused."""
    with registers(crossed, OTHER, "PLAIN") as plain:
        plain.SR.value = 1
        assert measure(crossed, "plain")(20).summary.median > 0
        with pytest.raises(ConfigurationError, match="waits is not timed: it calls an access to a register"):
            measure(crossed, "waits")()
        assert crossed.waits() == 0


def test_a_hang_and_a_crash_end_the_registers(
    crossed: CFunctions,
    device: Device,
    running_device: RunningDevice,
    minrpc_shared: SharedDevice,
    tmp_path: Path,
) -> None:
    def loaded() -> CFunctions:
        lib = device.load(tmp_path / "crossed.c", fakes="zero")
        with registers(lib, OTHER, "PLAIN") as plain:
            plain.SR.value, plain.DR.value = 1, 9
            interrupt(lib.notes)
            assert lib.waits() == 9
        return lib

    with (
        pytest.raises(DeadlineError, match=r"within 0\.5 s(?s:.*) in waits at "),
        registers(crossed, OTHER, "PLAIN"),
    ):
        crossed.waits.with_timeout(0.5)()
    lib = loaded()
    if running_device.target.platform.name == "qemu_cortex_m3":
        return  # Zephyr's restart of this chip, from a fault in an interrupt, faults.
    with pytest.raises(HarnessError, match="in crashes_in_isr"), registers(lib, OTHER, "PLAIN"):
        interrupt(lib.crashes_in_isr)
    loaded()
    minrpc_shared.discard()
