/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The Zephyr port's link over a serial driver as several of Zephyr's are: it counts the bytes of
 * one call in a uint8_t. The machine is QEMU's: a byte that is read makes room for the next at
 * once, and a written byte is out at once; a reset of the machine leaves the UART as it was.
 */
#include "cases.h"
#include "link.h"
#include "hang_up.h"

#define LONG  (70U * 1000U)
/* Interrupts in a row that move nothing. */
#define STORM 100

const struct device serial = {"serial"};

static uart_irq_callback_user_data_t handler;
static void *handler_context;
static bool rx_on;
static bool tx_on;
static uint8_t incoming[LONG];
static uint32_t incoming_size;
static uint32_t incoming_at;
static uint8_t outgoing[2U * LONG];
static uint32_t outgoing_size;

/* ---------------------------------------------------------------- the driver */

bool device_is_ready(const struct device *device)
{
	return device == &serial;
}

int uart_irq_callback_user_data_set(const struct device *device,
				    uart_irq_callback_user_data_t callback, void *context)
{
	ARG_UNUSED(device);
	handler = callback;
	handler_context = context;
	return 0;
}

void uart_irq_update(const struct device *device)
{
	ARG_UNUSED(device);
}

int uart_irq_rx_ready(const struct device *device)
{
	ARG_UNUSED(device);
	return rx_on && incoming_at < incoming_size;
}

int uart_irq_tx_ready(const struct device *device)
{
	ARG_UNUSED(device);
	return tx_on;
}

void uart_irq_rx_enable(const struct device *device)
{
	ARG_UNUSED(device);
	rx_on = true;
}

void uart_irq_rx_disable(const struct device *device)
{
	ARG_UNUSED(device);
	rx_on = false;
}

void uart_irq_tx_enable(const struct device *device)
{
	ARG_UNUSED(device);
	tx_on = true;
}

void uart_irq_tx_disable(const struct device *device)
{
	ARG_UNUSED(device);
	tx_on = false;
}

/* Milliseconds until the UART's FIFO is empty; below 0 if the driver can't tell. */
static int32_t sending_ms;

int uart_irq_tx_complete(const struct device *device)
{
	ARG_UNUSED(device);
	return sending_ms < 0 ? -1 : sending_ms == 0;
}

void k_busy_wait(uint32_t microseconds)
{
	sending_ms -= (int32_t)(microseconds / USEC_PER_MSEC);
}

int uart_err_check(const struct device *device)
{
	ARG_UNUSED(device);
	return 0;
}

int uart_fifo_read(const struct device *device, uint8_t *data, int size)
{
	uint8_t count = 0U;

	ARG_UNUSED(device);
	while (size - count > 0 && incoming_at < incoming_size) {
		data[count++] = incoming[incoming_at++];
	}
	return count;
}

int uart_fifo_fill(const struct device *device, const uint8_t *data, int size)
{
	uint8_t count = 0U;

	ARG_UNUSED(device);
	while (size - count > 0) {
		uart_poll_out(device, data[count++]);
	}
	return count;
}

void uart_poll_out(const struct device *device, unsigned char byte)
{
	ARG_UNUSED(device);
	CHECK(outgoing_size < sizeof(outgoing));
	outgoing[outgoing_size++] = byte;
}

void minrpc_link_hung_up(void)
{
	CHECK_FAIL("the link takes the UART for closed");
}

/* ---------------------------------------------------------------- the kernel */

/* Takes the interrupts that are there. Returns false when there was none. */
static bool interrupts(void)
{
	int idle = 0;
	bool any = false;

	while (uart_irq_rx_ready(&serial) || uart_irq_tx_ready(&serial)) {
		uint32_t moved = incoming_at + outgoing_size;

		CHECK(handler != NULL);
		handler(&serial, handler_context);
		idle = incoming_at + outgoing_size != moved ? 0 : idle + 1;
		CHECK(idle < STORM);
		any = true;
	}
	return any;
}

void k_sem_give(struct k_sem *sem)
{
	sem->count += sem->count < sem->limit ? 1U : 0U;
}

int k_sem_take(struct k_sem *sem, int timeout)
{
	ARG_UNUSED(timeout);
	while (sem->count == 0U) {
		if (!interrupts() && sem->count == 0U) {
			CHECK_FAIL("it waits for ever");
		}
	}
	sem->count--;
	return 0;
}

/* ---------------------------------------------------------------- the cases */

/* The state after a reset: the UART keeps its settings, and no driver runs yet. */
static void boot(void)
{
	handler = NULL;
	CHECK_EQ(init_at_boot(), 0);
	(void)interrupts();
}

static void start(void)
{
	boot();
	CHECK_EQ(minrpc_link_init(), 0);
	outgoing_size = 0U;
}

static void comes(uint32_t size)
{
	uint32_t state = 1U;

	for (uint32_t i = 0U; i < size; i++) {
		state = state * 1103515245U + 12345U;
		incoming[i] = (uint8_t)(state >> 16);
	}
	incoming_size = size;
	incoming_at = 0U;
}

TEST(a_long_message_arrives_whole)
{
	uint32_t taken = 0U;

	start();
	comes(LONG);
	while (taken < LONG) {
		const uint8_t *data;
		uint32_t size = minrpc_link_wait(&data);

		CHECK(size <= LONG - taken);
		CHECK_MEM(data, incoming + taken, size);
		minrpc_link_consume(size);
		taken += size;
	}
	CHECK_EQ(minrpc_link_overruns(), 0);
}

/* The bytes behind the server's, round the ring's end, too; it comes later.
 */
TEST(what_waits_is_looked_at_where_it_lies)
{
	uint32_t taken = 0U;
	uint32_t pieces = 0U;

	start();
	comes(LONG);
	while (taken < LONG) {
		/* Each piece is less than a ring: a full ring is another case. */
		incoming_size = taken + MIN(LONG - taken, CONFIG_MINRPC_RX_RING_SIZE - 1U);
		(void)interrupts();
		const uint8_t *data;
		const uint8_t *behind;
		uint32_t size = minrpc_link_wait(&data);
		uint32_t held = size > 100U ? 100U : size;

		for (int again = 0; again < 2; again++) {
			uint32_t from = 0U;

			while ((size = minrpc_link_peek(held, from, &behind)) != 0U) {
				CHECK(size <= LONG - taken - held - from);
				CHECK_MEM(behind, incoming + taken + held + from, size);
				from += size;
				pieces++;
			}
		}
		CHECK_MEM(data, incoming + taken, held);
		minrpc_link_consume(held);
		taken += held;
	}
	CHECK(pieces > 2U * LONG / 100U);
}

static void drain(void)
{
	const uint8_t *data;

	while (minrpc_link_peek(0U, 0U, &data) != 0U) {
		minrpc_link_consume(minrpc_link_wait(&data));
	}
}

/* The number of visible bytes after `held` bytes; the last byte goes to `last`. */
static uint32_t look(uint32_t held, uint8_t *last)
{
	const uint8_t *data;
	uint32_t from = 0U;
	uint32_t size;

	while ((size = minrpc_link_peek(held, from, &data)) != 0U) {
		from += size;
		*last = data[size - 1U];
	}
	return from;
}

/*
 * Each look makes room for the next bytes; the server's bytes stay, and the others are counted as
 * lost.
 */
TEST(behind_a_full_ring_is_looked_at_too)
{
	const uint8_t *data;
	uint32_t before = minrpc_link_received;
	uint32_t seen = 0U;
	uint32_t held;
	uint8_t last = 0U;

	start();
	comes(LONG);
	(void)interrupts();
	CHECK(minrpc_link_received != before);
	held = minrpc_link_wait(&data);
	CHECK(held <= CONFIG_MINRPC_RX_RING_SIZE / 2U);
	while (held + seen < LONG) {
		uint32_t more;

		/* Shows that another look is needed. */
		before = minrpc_link_received;
		more = look(held, &last);
		CHECK(more != 0U);
		seen += more;
		(void)interrupts();
		CHECK(minrpc_link_received != before || held + seen == LONG);
	}
	CHECK_EQ(held + seen, LONG);
	CHECK_EQ(last, incoming[LONG - 1U]);
	CHECK_MEM(data, incoming, held);
	minrpc_link_consume(held);
	/* Only the last look's bytes may still be there. */
	CHECK(minrpc_link_overruns() >= LONG - 2U * CONFIG_MINRPC_RX_RING_SIZE);
	CHECK(minrpc_link_overruns() <= LONG - held);
	drain();
}

/* An interrupt without bytes is not for the link. */
TEST(what_moves_no_byte_is_no_arrival)
{
	uint32_t before;

	start();
	comes(10U);
	incoming_size = 0U;
	(void)interrupts();
	before = minrpc_link_received;
	minrpc_link_write(incoming, 10U);
	(void)interrupts();
	CHECK_EQ(minrpc_link_received, before);
	incoming_size = 10U;
	(void)interrupts();
	CHECK(minrpc_link_received != before);
	drain();
}

TEST(a_long_reply_goes_out_whole)
{
	start();
	comes(LONG);
	incoming_size = 0U;
	minrpc_link_write(incoming, LONG);
	(void)interrupts();
	CHECK_EQ(outgoing_size, LONG);
	CHECK_MEM(outgoing, incoming, LONG);
	CHECK(!tx_on);
}

TEST(what_the_uart_still_sends_is_awaited_before_a_restart)
{
	static const int32_t times[][2] = {{0, 0}, {3, 0}, {1000, 980}, {-1, -1}};

	for (uint32_t i = 0U; i < sizeof(times) / sizeof(times[0]); i++) {
		start();
		sending_ms = times[i][0];
		minrpc_link_finish();
		CHECK_EQ((uint32_t)sending_ms, (uint32_t)times[i][1]);
	}
}

TEST(a_reset_in_mid_session_leaves_it_hearing)
{
	const uint8_t *data;

	start();
	rx_on = true;
	tx_on = true;
	comes(1U);
	start();
	CHECK_EQ(minrpc_link_wait(&data), 1);
	CHECK_EQ(data[0], incoming[0]);
	minrpc_link_consume(1U);
}

CHECK_MAIN(CASE(a_long_message_arrives_whole), CASE(what_waits_is_looked_at_where_it_lies),
	   CASE(behind_a_full_ring_is_looked_at_too), CASE(what_moves_no_byte_is_no_arrival),
	   CASE(a_long_reply_goes_out_whole), CASE(a_reset_in_mid_session_leaves_it_hearing),
	   CASE(what_the_uart_still_sends_is_awaited_before_a_restart))
