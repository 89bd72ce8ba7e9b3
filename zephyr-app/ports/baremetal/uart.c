/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * UART0 is the console, UART1 the link. The link receives by interrupt into a ring; sending waits its turn.
 */
#include "board.h"

#define RING_SIZE 16384U /* twice the largest message; a power of two */

static uint8_t ring[RING_SIZE];
static volatile uint32_t ring_in;  /* written by the interrupt only */
static volatile uint32_t ring_out; /* written by the reader only */
static volatile uint32_t overruns;

static void enable(struct uart *uart, uint32_t control)
{
	uart->divider = 16U; /* the smallest that the UART accepts: as fast as it goes */
	uart->ctrl = control;
}

void uart_init(void)
{
	enable(CONSOLE_UART, UART_CTRL_TX);
	enable(LINK_UART, UART_CTRL_TX | UART_CTRL_RX | UART_CTRL_RX_IRQ);
	NVIC_ENABLE = 1U << LINK_RX_IRQ;
	/*
	 * QEMU stops looking at a link whose receiver is off, and looks again when DATA is read, not when the
	 * receiver is turned on. Without this a boot now and then never hears a byte.
	 */
	(void)LINK_UART->data;
}

static void put(struct uart *uart, uint8_t byte)
{
	while ((uart->state & UART_STATE_TX_FULL) != 0U) {
	}
	uart->data = byte;
}

void console_write(const char *text)
{
	while (*text != '\0') {
		put(CONSOLE_UART, (uint8_t)*text++);
	}
}

void link_write(const uint8_t *data, uint32_t size)
{
	while (size-- != 0U) {
		put(LINK_UART, *data++);
	}
}

void link_receive_isr(void)
{
	uint32_t in = ring_in;

	LINK_UART->interrupt = UART_INTERRUPT_RX;
	while ((LINK_UART->state & UART_STATE_RX_FULL) != 0U) {
		uint8_t byte = (uint8_t)LINK_UART->data;

		if (in - ring_out == RING_SIZE) {
			overruns++;
		} else {
			ring[in++ % RING_SIZE] = byte;
		}
	}
	if ((LINK_UART->state & UART_STATE_OVERRUN) != 0U) {
		LINK_UART->state = UART_STATE_OVERRUN;
		overruns++;
	}
	ring_in = in;
}

uint32_t link_wait(const uint8_t **data)
{
	uint32_t start = ring_out % RING_SIZE;
	uint32_t held;

	/* Interrupts off between the look and the wait: wfi wakes on a pending one all the same. */
	interrupts_off();
	while (ring_in == ring_out) {
		wait_for_interrupt();
		interrupts_on();
		interrupts_off();
	}
	interrupts_on();
	held = ring_in - ring_out;
	*data = &ring[start];
	return held < RING_SIZE - start ? held : RING_SIZE - start;
}

void link_consume(uint32_t size)
{
	ring_out += size;
}

uint32_t link_overruns(void)
{
	return overruns;
}
