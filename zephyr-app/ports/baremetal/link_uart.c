/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A UART is the link: it receives by interrupt into a ring; sending waits for the UART.
 */
#include <stdbool.h>

#include "machine.h"
#include "port.h"

#define RING_SIZE MACHINE_RING_BYTES

_Static_assert((RING_SIZE & (RING_SIZE - 1U)) == 0U, "MACHINE_RING_BYTES: a power of two");

static struct uart *const link = (struct uart *)(uintptr_t)MACHINE_LINK;

static uint8_t ring[RING_SIZE];
struct link_count link_count;

void link_init(void)
{
	console_init();
	uart_enable(link, true);
	cpu_enable_link_interrupt();
}

void link_write(const uint8_t *data, uint32_t size)
{
	/* Four bytes in each round: counting each byte would be a third of the work. */
	for (uint32_t rounds = size / 4U; rounds != 0U; rounds--) {
		uart_put(link, data[0]);
		uart_put(link, data[1]);
		uart_put(link, data[2]);
		uart_put(link, data[3]);
		data += 4;
	}
	for (uint32_t left = size % 4U; left != 0U; left--) {
		uart_put(link, *data++);
	}
}

/*
 * Moves the UART's bytes to the ring. There may be no byte: an interrupt stays pending even if the
 * previous interrupt has taken its byte.
 */
static inline __attribute__((always_inline)) void receive(void)
{
	uint32_t in = link_count.in;
	uint32_t start = in % RING_SIZE;
	uint32_t room = RING_SIZE - (in - link_count.out);
	uint8_t dropped;
	uint8_t *at = &ring[start];
	uint8_t *end = at + (room < RING_SIZE - start ? room : RING_SIZE - start);
	uint32_t taken;
	bool overran = false;

	if (room == 0U) {
		at = &dropped;
		end = at + 1;
	}
	taken = (uint32_t)(uart_take(link, at, end, &overran) - at);
	if (room != 0U) {
		link_count.in = in + taken;
	} else {
		link_count.lost += taken;
	}
	if (overran) {
		link_count.lost++;
	}
}

CPU_INTERRUPT void link_receive_isr(void)
{
	cpu_interrupt_begin();
	receive();
	cpu_interrupt_end();
}

uint32_t link_peek(uint32_t from, const uint8_t **data)
{
	uint32_t start = (link_count.out + from) % RING_SIZE;
	uint32_t held = link_count.in - link_count.out;

	*data = &ring[start];
	if (held <= from) {
		return 0U;
	}
	held -= from;
	return held < RING_SIZE - start ? held : RING_SIZE - start;
}

uint32_t link_wait(const uint8_t **data)
{
	uintptr_t before = interrupts_off();
	uint32_t size;

	/*
	 * Interrupts are off between the check and the wait; a pending interrupt still ends the
	 * wait. Where a function that masked interrupts asks the client, none is taken.
	 */
#if MINRPC_ASK
	if (!interrupts_were_on(before)) {
		while (link_count.in == link_count.out) {
			wait_for_interrupt();
			receive();
		}
	}
#endif
	while (link_count.in == link_count.out) {
		wait_for_interrupt();
		interrupts_on();
		(void)interrupts_off();
	}
	interrupts_as(before);
	size = link_peek(0U, data);
	/* A part of the ring stays free for the message that ends a measurement. */
	return size < RING_SIZE / 2U ? size : RING_SIZE / 2U;
}

void link_make_room(uint32_t held)
{
	uintptr_t before = interrupts_off();

	if (link_count.in - link_count.out == RING_SIZE) {
		link_count.in = link_count.out + held;
		link_count.lost += RING_SIZE - held;
	}
	interrupts_as(before);
}

void link_consume(uint32_t size)
{
	link_count.out += size;
}

uint32_t link_overruns(void)
{
	return link_count.lost;
}
