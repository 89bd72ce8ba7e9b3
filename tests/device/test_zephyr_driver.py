# SPDX-License-Identifier: Apache-2.0
"""Zephyr's own drivers of Arm's UARTs, unchanged, with a model in Python and with QEMU's device.

The device is the model's witness: both see the same accesses.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from minrpc import Address, CFunctions, Device, MissingError, RunningDevice, place, types
from minrpc.firmware import find_workspace, firmware_root

from tests.device.uarts import CmsdkUart, Pl011, require_the_same

HZ = 25_000_000
# Drivers' functions are static, so these files include the drivers.
CMSDK = """
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
PL011 = """
#include <cmsis_core.h>
#include "uart_pl011.c"
static void no_interrupt(const struct device *dev)
{
	NVIC_DisableIRQ(DT_IRQN(DT_NODELABEL(uart2))); /* Zephyr's instance has no callback. */
}
static struct pl011_config config = {
	DEVICE_MMIO_ROM_INIT(DT_NODELABEL(uart2)), .irq_config_func = no_interrupt,
};
uint32_t called;
static void on_interrupt(const struct device *dev, void *data)
{
	called++;
	pl011_irq_tx_disable(dev);
}
uint32_t exercise(uint32_t hz, const char *text)
{
	struct pl011_data data = {
		.uart_cfg.baudrate = 115200,
		.uart_cfg.data_bits = UART_CFG_DATA_BITS_8,
		.uart_cfg.stop_bits = UART_CFG_STOP_BITS_1,
		.clk_freq = hz,
	};
	const struct device uart = {.config = &config, .data = &data}, *dev = &uart;
	volatile struct pl011_regs *regs = (void *)config._mmio.addr;
	unsigned char c = 0x55;
	uint32_t told;

	regs->cr = PL011_CR_RXE | PL011_CR_TXE;
	regs->lcr_h = 0;
	regs->imsc = 0;
	told = pl011_init(dev) == 0;
	while (*text != 0) {
		pl011_poll_out(dev, *text++);
	}
	told |= (pl011_irq_tx_ready(dev) != 0) << 1;
	pl011_irq_callback_set(dev, on_interrupt, NULL);
	pl011_irq_tx_enable(dev);
	told |= called << 2;
	pl011_irq_tx_enable(dev);
	told |= pl011_fifo_fill(dev, &c, 1) << 3;
	told |= (pl011_irq_tx_ready(dev) != 0) << 4;
	told |= (pl011_irq_tx_complete(dev) != 0) << 5;
	pl011_irq_tx_disable(dev);
	pl011_irq_rx_enable(dev);
	told |= (pl011_irq_is_pending(dev) != 0) << 6;
	pl011_irq_rx_disable(dev);
	pl011_irq_err_enable(dev);
	pl011_irq_err_disable(dev);
	told |= (pl011_fifo_read(dev, &c, 1) == 0) << 7;
	told |= (pl011_poll_in(dev, &c) == -1) << 8;
	told |= pl011_err_check(dev) << 9;
	pl011_disable(dev);
	called = 0;
	return told << 8 | c;
}
"""


def test_a_cmsdk_uart_s_accesses_are_those_of_the_real_device(
    device: Device, running_device: RunningDevice, tmp_path: Path
) -> None:
    lib = loaded(CMSDK, "mps2_an385", device, running_device, tmp_path)
    named = types(lib)
    config = place(lib, named.uart_cmsdk_apb_config(uart=Address(CmsdkUart.BASE), sys_clk_freq=HZ))
    data = named.uart_cmsdk_apb_dev_data(baud_rate=115200)
    uart = place(lib, named.device(config=config, data=data))
    _, model = require_the_same(
        running_device, lib, "uart_cmsdk_apb", CmsdkUart, lambda: lib.exercise(uart, "hello")
    )
    assert model.sent == b"hello\x55"
    assert model.registers is not None
    assert len(model.registers.accesses) > 30


def test_a_pl011_s_accesses_are_those_of_the_real_device(
    device: Device, running_device: RunningDevice, tmp_path: Path
) -> None:
    lib = loaded(PL011, "qemu_cortex_m3", device, running_device, tmp_path)
    told, model = require_the_same(
        running_device, lib, "pl011_regs", Pl011, lambda: lib.exercise(HZ, "hello")
    )
    # In 3.7 the second callback does not come, and the interrupt stays enabled.
    assert told & ~(1 << 12) == 0b1_1010_1101 << 8 | 0x55
    assert model.sent == b"hello\x55"
    assert model.registers is not None
    assert len(model.registers.accesses) > 60


def loaded(source: str, platform: str, device: Device, running: RunningDevice, directory: Path) -> CFunctions:
    """The driver on its platform; elsewhere the test is skipped."""
    if running.target.platform.name != platform:
        pytest.skip("Zephyr's firmware here has no driver of this UART")
    try:
        drivers = find_workspace(firmware_root()).base / "drivers" / "serial"
    except MissingError as error:
        pytest.skip(f"it comes with Zephyr: {error.message}")
    (directory / "exercise.c").write_text(source)
    return device.load(directory / "exercise.c", flags=["-I", str(drivers)])
