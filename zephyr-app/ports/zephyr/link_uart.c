/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The link by a UART's interrupts, with a ring in each direction. When the receive ring is full the
 * receive interrupt rests until there is room; bytes that the UART itself loses meanwhile are
 * counted. Bytes are dropped here, and counted, only while a measurement runs, by minrpc_link_peek.
 *
 * CDC ACM is a UART, too, whose interrupt is a work queue of the USB stack: the bytes move there
 * only, and none do while interrupts are locked.
 */
#include "link.h"

#include <stdbool.h>

#include <zephyr/drivers/uart.h>
#include <zephyr/init.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/atomic.h>
#include <zephyr/sys/sys_io.h>

#include "hang_up.h"
#include "ring.h"

#if defined(CONFIG_UART_CONSOLE) && DT_HAS_CHOSEN(zephyr_console)
BUILD_ASSERT(!DT_SAME_NODE(LINK_NODE, DT_CHOSEN(zephyr_console)),
	     "The console and RPC can't share a UART. Choose another by minrpc,uart in an overlay, "
	     "or build with -DEXTRA_CONF_FILE=boards/one_uart.conf");
#endif
#if defined(CONFIG_SHELL_BACKEND_SERIAL) && DT_HAS_CHOSEN(zephyr_shell_uart)
BUILD_ASSERT(!DT_SAME_NODE(LINK_NODE, DT_CHOSEN(zephyr_shell_uart)),
	     "The shell and RPC can't share a UART. Choose another by minrpc,uart in an overlay");
#endif

BUILD_ASSERT(DT_NODE_HAS_STATUS(LINK_NODE, okay),
	     "The UART that carries RPC is disabled in the devicetree. Choose another by "
	     "minrpc,uart, or set its "
	     "status to okay");

#if defined(CONFIG_MINRPC_LINK_CDC_ACM)
#define IS_USB true
BUILD_ASSERT(
	DT_NODE_HAS_COMPAT(LINK_NODE, zephyr_cdc_acm_uart),
	"CONFIG_MINRPC_LINK_CDC_ACM is for a UART of compatible zephyr,cdc-acm-uart. Choose it "
	"by minrpc,uart");
#else
#define IS_USB false
BUILD_ASSERT(!DT_NODE_HAS_COMPAT(LINK_NODE, zephyr_cdc_acm_uart),
	     "The UART that carries RPC is CDC ACM: set CONFIG_MINRPC_LINK_CDC_ACM=y");
#endif

/* The host fetches the USB stack's bytes at its own pace, at least a packet per millisecond. */
#define USB_DRAIN_MS   500
/* Milliseconds for the last bytes of a UART, which has a FIFO. */
#define DRAIN_MS       20
#define USB_FETCHED_MS 20

/*
 * Many drivers count the bytes of one call in a uint8_t: with 256 or more they lose bytes or hang.
 */
#define UART_AT_ONCE 128U

#define RX_SIZE CONFIG_MINRPC_RX_RING_SIZE

#define CMSDK_STATE         4U /* bytes after DATA */
#define CMSDK_STATE_RX_FULL BIT(1)

volatile uint32_t minrpc_link_received;

RING_DEFINE(rx, RX_SIZE);
RING_DEFINE(tx, CONFIG_MINRPC_TX_RING_SIZE);
static K_SEM_DEFINE(rx_ready, 0, 1);
static K_SEM_DEFINE(tx_room, 0, 1);

static const struct device *const uart = DEVICE_DT_GET(LINK_NODE);
static atomic_t overruns;
static atomic_t rx_resting;
static bool poll_only;

/*
 * Another processor's interrupt may run while the server's thread changes what interrupts are on.
 * On one processor an interrupt can't be in the middle of its work then.
 */
static unsigned int lock_processors(void)
{
	return IS_ENABLED(CONFIG_SMP) ? irq_lock() : 0U;
}

static void unlock_processors(unsigned int key)
{
	if (IS_ENABLED(CONFIG_SMP)) {
		irq_unlock(key);
	}
}

static void count_errors(void)
{
	int errors = uart_err_check(uart);

	if (errors > 0 && (errors & UART_ERROR_OVERRUN) != 0) {
		(void)atomic_inc(&overruns);
	}
}

/* Takes some of the UART's bytes into the ring, which has room. Returns their number. */
static uint32_t take(void)
{
	uint8_t *place;
	uint32_t room = ring_room(&rx, &place);
	int got = uart_fifo_read(uart, place, (int)MIN(room, UART_AT_ONCE));

	if (got <= 0) {
		return 0U;
	}
	ring_put(&rx, (uint32_t)got);
	return (uint32_t)got;
}

static bool is_full(void)
{
	return ring_held(&rx) == RX_SIZE;
}

/* Takes some of the UART's bytes. Returns true if there may be more. */
static bool receive(void)
{
	bool full = is_full();
	uint32_t got = full ? 0U : take();

	if (full) {
		uart_irq_rx_disable(uart);
		(void)atomic_set(&rx_resting, 1);
	} else if (got == 0U) {
		minrpc_link_hung_up();
	}
	if (full || got != 0U) {
		minrpc_link_received++;
		k_sem_give(&rx_ready);
	}
	return got != 0U;
}

/* Sends some of the ring's bytes. Returns true if there may be more. */
static bool transmit(void)
{
	const uint8_t *data;
	uint32_t size = ring_piece(&tx, 0U, &data);
	int sent = size != 0U ? uart_fifo_fill(uart, data, (int)MIN(size, UART_AT_ONCE)) : 0;

	ring_take(&tx, sent > 0 ? (uint32_t)sent : 0U);
	k_sem_give(&tx_room);
	if (size == 0U) {
		uart_irq_tx_disable(uart);
	} else if (sent < 0) {
		minrpc_link_hung_up();
	}
	return sent > 0;
}

static bool receive_if_ready(void)
{
	if (atomic_get(&rx_resting) != 0 || uart_irq_rx_ready(uart) <= 0) {
		return false;
	}
	count_errors();
	return receive();
}

static bool transmit_if_ready(void)
{
	return uart_irq_tx_ready(uart) > 0 && transmit();
}

/* Goes on while bytes move: drivers may report an interrupt as pending with nothing to do. */
static void link_isr(const struct device *device, void *context)
{
	unsigned int key = lock_processors();
	bool moved = true;

	ARG_UNUSED(context);
	while (moved) {
		uart_irq_update(device); /* returns nothing from Zephyr 4.5 on */
		moved = receive_if_ready();
		moved = transmit_if_ready() || moved;
	}
	unlock_processors(key);
}

/*
 * A UART whose interrupt is caused by an arriving byte does not report a byte that is there
 * already, so it is read at once.
 */
static void start_receiving(void)
{
	unsigned int key = irq_lock();

	(void)atomic_set(&rx_resting, 0);
	uart_irq_rx_enable(uart);
	if (!IS_USB) {
		link_isr(uart, NULL);
	}
	irq_unlock(key);
}

/*
 * The UART may have bytes from before the reset. Their interrupt may be lost by the reset, and
 * while the FIFO is full no new interrupt comes.
 */
static void take_what_is_there(void)
{
	while (!is_full() && take() != 0U) {
	}
	k_sem_give(&rx_ready);
}

/*
 * QEMU's model of this UART stops asking its backend for bytes while the receiver is off, and asks
 * again when DATA is read, not when the receiver is turned on: without this some boots never
 * receive a byte.
 */
static void wake_backend(void)
{
#if DT_NODE_HAS_COMPAT(LINK_NODE, arm_cmsdk_uart)
	mem_addr_t data = DT_REG_ADDR(LINK_NODE);

	if ((sys_read32(data + CMSDK_STATE) & CMSDK_STATE_RX_FULL) == 0U) {
		(void)sys_read32(data);
	}
#endif
}

/*
 * A reset may leave the UART asking for interrupts, as QEMU's PL011 does before version 8. A byte
 * that comes before the ring is ready would interrupt for ever. Drivers' interrupts wait until the
 * kernel runs, so this is early enough.
 */
static int mask_interrupts(void)
{
	if (device_is_ready(uart)) {
		uart_irq_rx_disable(uart);
		uart_irq_tx_disable(uart);
	}
	return 0;
}

SYS_INIT(mask_interrupts, PRE_KERNEL_2, 0);

int minrpc_link_init(void)
{
	int error;

	if (!device_is_ready(uart)) {
		return -ENODEV;
	}
	error = uart_irq_callback_user_data_set(uart, link_isr, NULL);
	if (error != 0) {
		return error;
	}
	wake_backend();
	if (!IS_USB) {
		take_what_is_there();
	}
	start_receiving();
	return 0;
}

/* Loaded code may ask the client in an interrupt, where nothing can wait: the UART is polled. */
static void wait_for(struct k_sem *moved)
{
	unsigned int key;

	if (!k_is_in_isr()) {
		(void)k_sem_take(moved, K_FOREVER);
		return;
	}
	key = irq_lock();
	link_isr(uart, NULL);
	irq_unlock(key);
}

uint32_t minrpc_link_wait(const uint8_t **data)
{
	uint32_t size = ring_piece(&rx, 0U, data);

	if (size == 0U) {
		wait_for(&rx_ready);
		size = ring_piece(&rx, 0U, data);
	}
	/* A part of the ring stays free for the message that ends a measurement. */
	return MIN(size, RX_SIZE / 2U);
}

uint32_t minrpc_link_peek(uint32_t held, uint32_t from, const uint8_t **data)
{
	uint32_t size = ring_piece(&rx, held + from, data);

	if (IS_ENABLED(CONFIG_ARCH_POSIX) && size == 0U) {
		/* A process's interrupts wait while a function runs. */
		start_receiving();
		size = ring_piece(&rx, held + from, data);
	}
	/* The interrupt is off: the writer rests. */
	if (size == 0U && from != 0U && atomic_get(&rx_resting) != 0) {
		ring_take_back(&rx, from);
		(void)atomic_add(&overruns, (atomic_val_t)from);
		start_receiving();
	}
	return size;
}

void minrpc_link_consume(uint32_t size)
{
	unsigned int key;

	ring_take(&rx, size);
	key = lock_processors();
	if (atomic_get(&rx_resting) != 0) {
		start_receiving();
	}
	unlock_processors(key);
}

void minrpc_link_wake(void)
{
	k_sem_give(&rx_ready);
}

static void write_polling(const uint8_t *data, uint32_t size)
{
	/* The USB stack's work queue never runs again. */
	if (IS_USB) {
		return;
	}
	for (uint32_t i = 0U; i < size; i++) {
		uart_poll_out(uart, data[i]);
	}
}

void minrpc_link_write(const uint8_t *data, uint32_t size)
{
	unsigned int key;

	if (poll_only) {
		write_polling(data, size);
		return;
	}
	while (size != 0U) {
		uint32_t taken = ring_write(&tx, data, size);

		data += taken;
		size -= taken;
		/* Drivers read and write a register that the interrupt changes, too. */
		key = irq_lock();
		uart_irq_tx_enable(uart);
		irq_unlock(key);
		if (size != 0U) {
			wait_for(&tx_room);
		}
	}
}

void minrpc_link_poll_only(void)
{
	const uint8_t *data;
	uint32_t size;
	unsigned int key = irq_lock();

	poll_only = true;
	uart_irq_tx_disable(uart);
	while ((size = ring_piece(&tx, 0U, &data)) != 0U) {
		write_polling(data, size);
		ring_take(&tx, size);
	}
	irq_unlock(key);
}

void minrpc_link_finish(void)
{
	if (IS_USB && !poll_only) {
		for (int32_t i = 0; i < USB_DRAIN_MS && ring_held(&tx) != 0U; i++) {
			(void)k_msleep(1);
		}
		(void)k_msleep(USB_FETCHED_MS);
	}
	minrpc_link_poll_only();
	/* A byte that the driver has taken is still to be sent; a driver may not tell. */
	for (int32_t i = 0; i < DRAIN_MS && !IS_USB && uart_irq_tx_complete(uart) == 0; i++) {
		k_busy_wait(USEC_PER_MSEC);
	}
}

const char *minrpc_link_name(void)
{
	return uart->name;
}

uint32_t minrpc_link_overruns(void)
{
	return (uint32_t)atomic_get(&overruns);
}
