/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The link by interrupt, a ring each way. No byte is dropped here: when the receive ring is full the receive
 * interrupt rests until there is room, and what the UART itself loses meanwhile is counted.
 */
#include "link.h"

#include <stdbool.h>

#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/atomic.h>
#include <zephyr/sys/ring_buffer.h>

#include "restart.h"

#if defined(CONFIG_UART_CONSOLE) && DT_HAS_CHOSEN(zephyr_console)
BUILD_ASSERT(!DT_SAME_NODE(LINK_NODE, DT_CHOSEN(zephyr_console)),
	     "The console and RPC can't share a UART. Choose another by minrpc,uart in an overlay, "
	     "or build with -DEXTRA_CONF_FILE=boards/one_uart.conf");
#endif

RING_BUF_DECLARE(rx_ring, CONFIG_MINRPC_RX_RING_SIZE);
RING_BUF_DECLARE(tx_ring, CONFIG_MINRPC_TX_RING_SIZE);
static K_SEM_DEFINE(rx_ready, 0, 1);
static K_SEM_DEFINE(tx_room, 0, 1);

static const struct device *const uart = DEVICE_DT_GET(LINK_NODE);
static atomic_t overruns;
static atomic_t rx_resting;
static bool poll_only;

static void count_errors(void)
{
	int errors = uart_err_check(uart);

	if (errors > 0 && (errors & UART_ERROR_OVERRUN) != 0) {
		(void)atomic_inc(&overruns);
	}
}

/* As much as the UART has and the ring holds. Returns false when neither had anything to give. */
static bool receive(void)
{
	bool any = false;
	uint8_t *room;
	uint32_t space;
	int got;

	do {
		space = ring_buf_put_claim(&rx_ring, &room, CONFIG_MINRPC_RX_RING_SIZE);
		got = space != 0U ? uart_fifo_read(uart, room, (int)space) : 0;
		(void)ring_buf_put_finish(&rx_ring, got > 0 ? (uint32_t)got : 0U);
		any = any || got > 0;
	} while (got > 0);
	if (space == 0U) {
		uart_irq_rx_disable(uart);
		(void)atomic_set(&rx_resting, 1);
	}
	k_sem_give(&rx_ready);
	return any || space == 0U;
}

static void transmit(void)
{
	uint8_t *data;
	uint32_t size = ring_buf_get_claim(&tx_ring, &data, CONFIG_MINRPC_TX_RING_SIZE);
	int sent = size != 0U ? uart_fifo_fill(uart, data, (int)size) : 0;

	(void)ring_buf_get_finish(&tx_ring, sent > 0 ? (uint32_t)sent : 0U);
	if (size == 0U) {
		uart_irq_tx_disable(uart);
	} else if (sent < 0) {
		link_hung_up();
	}
	k_sem_give(&tx_room);
}

static void link_isr(const struct device *device, void *context)
{
	ARG_UNUSED(context);
	while (uart_irq_update(device) > 0 && uart_irq_is_pending(device) > 0) {
		bool busy = false;

		if (atomic_get(&rx_resting) == 0 && uart_irq_rx_ready(device) > 0) {
			count_errors();
			if (!receive()) {
				link_hung_up();
			}
			busy = true;
		}
		if (uart_irq_tx_ready(device) > 0) {
			transmit();
			busy = true;
		}
		if (!busy) {
			break;
		}
	}
}

/*
 * Drivers whose interrupt follows the byte's arrival, not its presence, stay silent about one that is there
 * already; so look at once.
 */
static void start_receiving(void)
{
	unsigned int key = irq_lock();

	(void)atomic_set(&rx_resting, 0);
	uart_irq_rx_enable(uart);
	(void)receive();
	irq_unlock(key);
}

int link_init(void)
{
	int error;

	if (!device_is_ready(uart)) {
		return -ENODEV;
	}
	error = uart_irq_callback_user_data_set(uart, link_isr, NULL);
	if (error != 0) {
		return error;
	}
	start_receiving();
	return 0;
}

uint32_t link_wait(const uint8_t **data)
{
	uint8_t *bytes;
	uint32_t size = ring_buf_get_claim(&rx_ring, &bytes, CONFIG_MINRPC_RX_RING_SIZE);

	if (size == 0U) {
		(void)k_sem_take(&rx_ready, K_FOREVER);
		size = ring_buf_get_claim(&rx_ring, &bytes, CONFIG_MINRPC_RX_RING_SIZE);
	}
	*data = bytes;
	return size;
}

void link_consume(uint32_t size)
{
	(void)ring_buf_get_finish(&rx_ring, size);
	if (atomic_get(&rx_resting) != 0) {
		start_receiving();
	}
}

void link_wake(void)
{
	k_sem_give(&rx_ready);
}

static void write_polling(const uint8_t *data, uint32_t size)
{
	for (uint32_t i = 0U; i < size; i++) {
		uart_poll_out(uart, data[i]);
	}
}

void link_write(const uint8_t *data, uint32_t size)
{
	if (poll_only) {
		write_polling(data, size);
		return;
	}
	while (size != 0U) {
		uint32_t taken = ring_buf_put(&tx_ring, data, size);

		data += taken;
		size -= taken;
		uart_irq_tx_enable(uart);
		if (size != 0U) {
			(void)k_sem_take(&tx_room, K_FOREVER);
		}
	}
}

void link_poll_only(void)
{
	uint8_t *data;
	uint32_t size;
	unsigned int key = irq_lock();

	poll_only = true;
	uart_irq_tx_disable(uart);
	while ((size = ring_buf_get_claim(&tx_ring, &data, CONFIG_MINRPC_TX_RING_SIZE)) != 0U) {
		write_polling(data, size);
		(void)ring_buf_get_finish(&tx_ring, size);
	}
	irq_unlock(key);
}

uint32_t link_overruns(void)
{
	return (uint32_t)atomic_get(&overruns);
}
