# SPDX-License-Identifier: Apache-2.0
"""Registers in Python: their values, every form of access, and errors with their line of C."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import minrpc
import numpy as np
import pytest
from minrpc import (
    Address,
    CFunctions,
    Device,
    EmulatorExitedError,
    HarnessError,
    RegisterError,
    RunningDevice,
    SessionTerminatedError,
    library_of,
    registers,
)
from minrpc.hardware.trap import trap_of

from tests.device.uarts import CmsdkUart, require_the_same

DRIVER = Path(__file__).with_name("c") / "registers.c"
BASE = 0x40013800
USART = "USART_TypeDef"


def line_of(text: str) -> str:
    """The line of C with this text, as messages name it."""
    lines = DRIVER.read_text().splitlines()
    return f"registers.c:{next(at for at, line in enumerate(lines, 1) if text in line)}"


@pytest.fixture
def driver(device: Device, load: Callable[..., Any]) -> CFunctions:
    """The driver, on a target that can trap accesses."""
    lib = CFunctions(load(DRIVER))
    try:
        with registers(lib, BASE, USART):
            return lib
    except RegisterError as error:
        pytest.skip(error.message)


def test_a_driver_polls_and_sends(driver: CFunctions) -> None:
    sent: list[int] = []
    with registers(driver, BASE, USART) as usart:
        usart.SR.reads = [0, 0x80]
        usart.on_write("DR", sent.append)
        driver.uart_put(65)
        assert sent == [65]
        usart.expect([usart.SR.read(0), usart.SR.read(0x80), usart.DR.write(65)])
        wanted, written = [usart.SR.read(0), usart.DR.write(65)], line_of("USART1->DR = c")
        with pytest.raises(AssertionError, match=r"access 2: expected write DR 0x41, C did read SR 0x80 at"):
            usart.expect(wanted)
        assert [access.line for access in usart.accesses][-1] == written
        usart.accesses.clear()
        assert driver.uart_init(0x16) == 0x200C
        assert [str(access).partition(" at ")[0] for access in usart.accesses] == [
            "write BRR 0x16", "read CR1 0x0", "write CR1 0x2000", "read CR1 0x2000", "write CR1 0x200c",
            "read CR1 0x200c",
        ]  # fmt: skip


def test_a_model_has_a_method_for_each_register(driver: CFunctions) -> None:
    class Usart:
        def __init__(self) -> None:
            self.sent: list[int] = []

        def read_SR(self) -> int:  # noqa: N802 - the register's name
            return 0x80 if len(self.sent) < 2 else 0

        def write_DR(self, value: int) -> None:  # noqa: N802
            self.sent.append(value)

    model = Usart()
    with registers(driver, BASE, USART, model=model) as usart:
        driver.uart_put(1)
        driver.uart_put(2)
        assert model.sent == [1, 2]
        model.sent.pop()
        assert driver.poll(3) == 0x180
        assert len(usart.accesses) == 7
    with (
        pytest.raises(AttributeError, match="has no register 'SX'; it has SR"),
        registers(driver, BASE, USART, model=type("Wrong", (), {"read_SX": lambda _: 0})()),
    ):
        pass


def test_what_no_model_covers_is_an_error_with_its_line(driver: CFunctions) -> None:
    with registers(driver, BASE, USART) as usart:
        usart.SR.reads = [0]
        with pytest.raises(RegisterError, match="SR is read again: its list of values has ended"):
            driver.uart_put(65)
        with pytest.raises(RegisterError, match=f"0x40023844, {line_of('0x40023844')}: no model covers it"):
            driver.clock_on()
        with pytest.raises(RegisterError, match=f"0x40013810, {line_of('RESERVED0;')[:12]}"):
            driver.uart_reserved()
        usart.SR.reads = lambda: 1 / 0  # type: ignore[assignment]
        with pytest.raises(ZeroDivisionError):
            driver.poll(1)
        usart.SR.reads = lambda: 1 << 32
        with pytest.raises(RegisterError, match="a number of 32 bits, not 4294967296"):
            driver.poll(1)
        usart.SR.reads = None
        usart.SR.value = 5
        assert driver.poll(2) == 10
        with pytest.raises(ValueError, match="overlap"), registers(driver, BASE + 4, USART):
            pass


def test_a_word_at_an_address_is_one_access(driver: CFunctions) -> None:
    with registers(driver, BASE, USART) as usart:
        usart.SR.value = 5
        assert bytes(minrpc.read(driver, BASE, 4)) == b"\5\0\0\0"
        minrpc.write(driver, BASE + 4, b"\7\0\0\0")
        assert [str(access) for access in usart.accesses] == ["read SR 0x5", "write DR 0x7"]


def test_a_model_reads_and_writes_registers_by_their_addresses(driver: CFunctions) -> None:
    """Python has them: the device is not asked, and C has made no access."""

    class Usart:
        def read_SR(self) -> int:  # noqa: N802 - the register's name
            minrpc.write(driver, BASE + 8, b"\3\4")
            return int.from_bytes(bytes(minrpc.read(driver, BASE + 4, 4)), "little")

    with registers(driver, BASE, USART, model=Usart()) as usart:
        usart.DR.value = 0x12345678
        assert driver.poll(1) == 0x12345678
        assert (usart.BRR.value, [access.name for access in usart.accesses]) == (0x403, ["SR"])
        usart.SR.reads = lambda: len(minrpc.read(driver, BASE + usart.size - 2, 4))
        with pytest.raises(RegisterError, match=r"Python accesses 4 bytes at 0x4001383e: .* has some only"):
            driver.poll(1)
        usart.SR.reads = [2]
        assert driver.poll(1) == 2


def test_an_svd_file_describes_the_registers(driver: CFunctions) -> None:
    pytest.importorskip("svd2py")
    with registers(driver, "USART1", svd=DRIVER.with_name("chip.svd")) as usart:
        driver.uart_put(65)
        usart.expect([usart.SR.read(0xC0), usart.DR.write(65)])
        with pytest.raises(
            AssertionError, match=r"expected read SR 0x80 \(TXE=1\), C did .* \(TXE=1, TC=1\)"
        ):
            usart.expect([usart.SR.read(0x80)])
        assert driver.uart_init(0x16) == 0x200C
        assert usart.CR1.M == 3
        with pytest.raises(RegisterError, match=f"{line_of('p[2] |= 0x100')}: USART1.BRR is write-only"):
            driver.form_widths(Address(BASE))
    with pytest.raises(TypeError, match="not of both"), registers(driver, BASE, USART, svd="chip.svd"):
        pass


def test_a_model_sees_the_accesses_that_qemu_s_device_sees(
    device: Device, running_device: RunningDevice, load: Callable[..., Any]
) -> None:
    if running_device.target.platform.name != "bare_mps2_an385":
        pytest.skip("its machine has no CMSDK UART to spare")
    lib = CFunctions(load(DRIVER.with_name("cmsdk.c")))
    told, _ = require_the_same(
        running_device, lib, "UART_TypeDef", CmsdkUart, lambda: lib.transmit(b"hello", 5)
    )
    assert told == 4


def forms(driver: CFunctions) -> Iterator[str]:
    yield from (name for name in driver if name.startswith("form_"))


def test_every_width_does_what_it_does_to_memory(driver: CFunctions, device: Device) -> None:
    """The processor itself is the witness: the same code, with a pointer to memory."""
    content = np.array([0x80FF8182, 0x8384F586, 0x11223344, 0xCAFE8001], np.uint32)
    names = list(forms(driver))
    assert len(names) >= 2
    for name in names:
        memory = device.array(content)
        expected = driver[name](Address(memory.address))
        with registers(driver, BASE, USART) as usart:
            for register, value in zip(("SR", "DR", "BRR", "CR1"), content, strict=True):
                usart[register].value = int(value)
            assert driver[name](Address(BASE)) == expected, name
            after = [usart[register].value for register in ("SR", "DR", "BRR", "CR1")]
        assert after == memory.numpy().tolist(), name


def test_a_nested_access_leaves_the_outer_one_its_line(driver: CFunctions) -> None:
    """An access that reads and writes, whose model calls C that reads (x86-64)."""
    with registers(driver, BASE, USART) as usart:
        usart.CR1.reads = lambda: driver.poll(1)
        driver.form_atomic(Address(BASE))
        accesses = [access for access in usart.accesses if access.name == "CR1"]
    assert len({access.line for access in accesses}) <= 1


def test_an_access_at_the_end_of_a_page(driver: CFunctions) -> None:
    """Alone, and with the next page."""
    end = 0x40013FFC
    with registers(driver, end, USART) as usart:
        usart.SR.value, usart.DR.value = 0x11111111, 0x22222222
        assert bytes(minrpc.read(driver, end, 4)) == b"\x11" * 4
        assert driver.form_long(Address(end)) == 0x2222222211111111
        assert (usart.BRR.value, usart.CR1.value) == (0x11111112, 0x22222222)
        assert {access.name for access in usart.accesses} == {"SR", "DR", "BRR", "CR1"}


def test_adjacent_peripherals(driver: CFunctions) -> None:
    with registers(driver, BASE, USART) as first:
        with registers(driver, BASE + first.size, USART) as second:
            second.SR.value = 7
            assert bytes(minrpc.read(driver, BASE + first.size, 4)) == b"\7\0\0\0"
            assert driver.poll(1) == 0
            assert (len(first.accesses), len(second.accesses)) == (1, 1)
        first.SR.value = 3
        assert driver.poll(1) == 3


@pytest.mark.parametrize("error", [KeyboardInterrupt, pytest.fail.Exception])
def test_a_block_that_an_exception_leaves_is_closed(driver: CFunctions, error: type[BaseException]) -> None:
    with pytest.raises(error), registers(driver, BASE, USART):
        raise error
    with registers(driver, BASE, USART) as usart:
        usart.SR.value = 2
        assert driver.poll(1) == 2


def test_errors_one_after_the_other(driver: CFunctions) -> None:
    with registers(driver, BASE, USART) as usart:
        usart.SR.reads = []
        for _ in range(12):
            with pytest.raises(RegisterError, match="SR is read again"):
                driver.poll(1)
        usart.SR.reads = [4]
        assert driver.poll(1) == 4


def test_a_register_takes_numbers_of_its_size(driver: CFunctions) -> None:
    with registers(driver, BASE, USART) as usart:
        values: list[Any] = [np.uint32(2), None]
        usart.SR.reads = values
        assert driver.poll(1) == 2
        with pytest.raises(RegisterError, match="a read of SR gives a number of 32 bits, not None"):
            driver.poll(1)


def test_bit_fields_are_fields_of_one_register(driver: CFunctions, load: Callable[..., Any]) -> None:
    del driver  # The fixture skips devices without traps.
    lib = CFunctions(load(DRIVER.with_name("bits.c")))
    with registers(lib, BASE, "BITS_Type") as bits:
        assert list(bits) == ["CTRL.bit", "CTRL.reg", "CR", "DR", "bits_0x8"]
        bits.CR.MODE = 1
        bits.bits_0x8.LOW = 7
        lib.enable()
        assert (bits.CR.EN, bits.CR.MODE, bits.CR.value) == (1, 5, 0xB)
        assert (bits["CTRL.bit"].MODE, bits["CTRL.reg"].ENABLE, bits["CTRL.reg"].value) == (3, 1, 0x1A)
        assert str(bits.accesses[-1]).endswith("(EN=1, MODE=5)")
        assert lib.swap() == 7
        assert (bits.bits_0x8.LOW, bits.bits_0x8.HIGH) == (7, 7)


def test_single_bits_have_addresses(driver: CFunctions, running_device: RunningDevice) -> None:
    if library_of(driver).facts.machine != "EM_ARM":
        pytest.skip("this target has no addresses of single bits")
    with registers(driver, BASE, USART) as usart:
        has_bits = trap_of(library_of(driver).session).has_bits
        if running_device.platform.core:
            assert has_bits == (running_device.platform.core in ("cortex-m3", "cortex-m4"))
        if not has_bits:
            with pytest.raises(RegisterError, match=r"C accesses 0x422701b4, .* no model covers it"):
                driver.bits()
            return
        usart.CR1.value = 0x107
        assert driver.bits() == 1
        assert usart.CR1.value == 0x2103
        assert {access.name for access in usart.accesses} == {"CR1"}
    with registers(driver, 0x400FF000, USART) as last:
        last.CR1.value = 0x2000
        assert minrpc.read(driver, 0x42000000 + 0xFF00C * 32 + 13 * 4, 4)[0] == 1


def test_a_crash_is_told_and_the_next_call_works(
    driver: CFunctions, device: Device, running_device: RunningDevice
) -> None:
    with pytest.raises((SessionTerminatedError, EmulatorExitedError)) as told:  # noqa: SIM117, PT012
        with registers(driver, BASE, USART) as usart:
            usart.SR.value = 1
            driver.crashes()
    assert line_of("__builtin_trap") in str(told.value)
    lib = device.load(DRIVER)
    with registers(lib, BASE, USART) as usart:
        usart.SR.value = 2
        assert lib.poll(2) == 4


def test_behind_the_block_the_machine_answers(driver: CFunctions) -> None:
    """It has no device there."""
    with pytest.raises(HarnessError) as told:
        driver.poll(1)
    assert "no model covers it" not in str(told.value)


def test_a_killed_client_leaves_no_trap(driver: CFunctions, device: Device) -> None:
    """The start of another session frees the trap's code, and its vectors are the firmware's again."""
    opened = registers(driver, BASE, USART)
    opened.__enter__()
    device.rpc.restart()
    lib = device.load(DRIVER)
    with registers(lib, BASE, USART) as usart:
        usart.SR.value = 3
        assert lib.poll(2) == 6
    opened.__exit__(None, None, None)


def test_misuse_is_told(driver: CFunctions) -> None:
    for arguments, error, text in (
        ((BASE, "USART"), AttributeError, "USART"),
        ((BASE, "uint32_t"), TypeError, "uint32_t is no struct"),
        (("x", USART), TypeError, "the address of USART_TypeDef is a number"),
        ((0x20000000, USART), RegisterError, "is not among the peripherals"),
    ):
        with pytest.raises(error, match=text), registers(driver, *arguments):
            pass


def test_a_page_of_the_firmware_is_refused(driver: CFunctions, device: Device) -> None:
    with registers(driver, BASE, USART):
        pages = [page for page in trap_of(device).pages if page]
        if not pages:
            pytest.skip("its firmware uses no device among the peripherals")
        refused = pytest.raises(RegisterError, match="the firmware itself uses a device")
        with refused, registers(driver, pages[0], USART):
            pass
    with refused, registers(driver, pages[0], USART):
        pass
    assert driver.form_widths(np.zeros(4, np.uint32)) == 0x5B00
