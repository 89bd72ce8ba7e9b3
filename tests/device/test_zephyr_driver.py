# SPDX-License-Identifier: Apache-2.0
"""Zephyr's own driver of Arm's CMSDK UART, unchanged, with a model in Python and with QEMU's device.

The device is the model's witness: both see the same accesses.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from minrpc import Address, Device, MissingError, RunningDevice, place, types
from minrpc.firmware import find_workspace, firmware_root

from tests.device.cmsdk_uart import BASE, require_the_same

HZ = 25_000_000
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
    _, model = require_the_same(running_device, lib, "uart_cmsdk_apb", lambda: lib.exercise(uart, "hello"))
    assert model.sent == b"hello\x55"
    assert model.registers is not None
    assert len(model.registers.accesses) > 30
