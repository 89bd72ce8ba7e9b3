# SPDX-License-Identifier: Apache-2.0
"""Zephyr's own driver of Arm's CMSDK UART, unchanged, with a model in Python and with QEMU's device.

The device is the model's witness: both see the same accesses.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from minrpc import Address, Device, MissingError, RunningDevice, place, registers, types
from minrpc.firmware import find_workspace, firmware_root
from minrpc.hardware import Registers
from minrpc.host.deadline import Deadline

BASE, HZ = 0x40006000, 25_000_000
TRACE = "trace:cmsdk_apb_uart_read,trace:cmsdk_apb_uart_write"
# The driver's functions are static, so this file includes the driver.
EXERCISE = """
#include <cmsis_core.h>
#include "uart_cmsdk_apb.c"
uint32_t exercise(const struct device *dev, const char *text)
{
	const struct uart_cmsdk_apb_config *config = dev->config;
	unsigned char c = 0x55;
	uint32_t told;

	NVIC_DisableIRQ(DT_IRQN(DT_NODELABEL(uart2))); /* Zephyr's instance has no callback. */
	baudrate_set(dev);
	config->uart->ctrl = UART_RX_EN | UART_TX_EN;
	while (*text != 0) {
		uart_cmsdk_apb_poll_out(dev, *text++);
	}
	uart_cmsdk_apb_irq_tx_enable(dev);
	told = uart_cmsdk_apb_irq_tx_ready(dev) != 0;
	told |= uart_cmsdk_apb_fifo_fill(dev, &c, 1) << 1;
	told |= (uart_cmsdk_apb_irq_tx_ready(dev) != 0) << 2;
	uart_cmsdk_apb_irq_tx_disable(dev);
	uart_cmsdk_apb_irq_rx_enable(dev);
	told |= (uart_cmsdk_apb_irq_rx_ready(dev) != 0) << 3;
	told |= (uart_cmsdk_apb_irq_is_pending(dev) != 0) << 4;
	uart_cmsdk_apb_irq_rx_disable(dev);
	uart_cmsdk_apb_irq_err_enable(dev);
	uart_cmsdk_apb_irq_err_disable(dev);
	told |= (uart_cmsdk_apb_poll_in(dev, &c) == -1) << 5;
	config->uart->ctrl = 0;
	return told << 8 | c;
}
"""


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


def test_its_accesses_are_those_of_the_real_device(
    device: Device, running_device: RunningDevice, tmp_path: Path
) -> None:
    if running_device.target.platform.name != "mps2_an385":
        pytest.skip("Zephyr's firmware here has no driver of a CMSDK UART")
    try:
        drivers = find_workspace(firmware_root()).base / "drivers" / "serial"
    except MissingError as error:
        pytest.skip(f"it comes with Zephyr: {error.message}")
    (tmp_path / "exercise.c").write_text(EXERCISE)
    lib = device.load(tmp_path / "exercise.c", flags=["-I", str(drivers)])
    named = types(lib)
    config = place(lib, named.uart_cmsdk_apb_config(uart=Address(BASE), sys_clk_freq=HZ))
    data = named.uart_cmsdk_apb_dev_data(baud_rate=115200)
    uart = place(lib, named.device(config=config, data=data))
    before = len(running_device.output)
    running_device.monitor(f"log {TRACE}", Deadline("log", 30))
    of_qemu = lib.exercise(uart, "hello")
    running_device.monitor("log unimp,guest_errors", Deadline("log", 30))
    log = running_device.output[before:]
    seen = re.findall(r"UART (read|write): offset 0x(\w+) data 0x(\w+)", log)
    model = CmsdkUart()
    with registers(lib, BASE, "uart_cmsdk_apb", model=model) as opened:
        model.registers = opened
        assert lib.exercise(uart, "hello") == of_qemu
    assert model.sent == b"hello\x55"
    modelled = [(item.kind, f"{item.address - BASE:x}", f"{item.value:x}") for item in opened.accesses]
    assert len(modelled) > 30
    assert any(seen[at : at + len(modelled)] == modelled for at in range(len(seen))), (seen, modelled)
