/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The link through a debug probe, which reads and writes two rings in RAM while the program runs.
 */
#include <stdbool.h>

#include "machine.h"
#include "port.h"

#define UP_BYTES      1024U
#define WAITS_IF_FULL 2U

_Static_assert(sizeof(void *) == sizeof(uint32_t), "the layout is that of 32-bit targets");

/* A reset leaves this memory as it is, so that the probe can still read the last words. */
#define KEPT __attribute__((section(".preserve")))

static const char id[] = "SEGGER RTT";
static uint8_t up_bytes[UP_BYTES] KEPT;
static uint8_t down_bytes[MACHINE_RING_BYTES] KEPT;
struct rtt _SEGGER_RTT KEPT;

static struct rtt_ring *const up = &_SEGGER_RTT.up;
static struct rtt_ring *const down = &_SEGGER_RTT.down;

static void ring_describe(struct rtt_ring *ring, uint8_t *data, uint32_t size)
{
	ring->name = "RPC";
	ring->data = data;
	ring->size = size;
	ring->flags = WAITS_IF_FULL;
}

/* False after power-on. */
static bool was_kept(void)
{
	for (uint32_t at = 0U; at < sizeof(id); at++) {
		if (_SEGGER_RTT.id[at] != id[at]) {
			return false;
		}
	}
	return up->written < UP_BYTES && up->read < UP_BYTES && down->written < MACHINE_RING_BYTES;
}

/* The name comes last: a probe that finds it uses the rings. Earlier requests are dropped. */
void link_init(void)
{
	console_init();
	if (!was_kept()) {
		_SEGGER_RTT.id[0] = '\0';
		up->written = 0U;
		up->read = 0U;
		down->written = 0U;
	}
	down->read = down->written;
	ring_describe(up, up_bytes, sizeof(up_bytes));
	ring_describe(down, down_bytes, sizeof(down_bytes));
	_SEGGER_RTT.up_rings = 1U;
	_SEGGER_RTT.down_rings = 1U;
	for (uint32_t at = sizeof(_SEGGER_RTT.id); at-- > 0U;) {
		memory_barrier();
		_SEGGER_RTT.id[at] = at < sizeof(id) ? id[at] : '\0';
	}
}

/* Waits while the ring is full, until the probe has read bytes. */
void link_write(const uint8_t *data, uint32_t size)
{
	uint32_t at = up->written;

	for (uint32_t sent = 0U; sent < size; sent++) {
		uint32_t next = (at + 1U) % UP_BYTES;

		if (next == up->read) {
			memory_barrier();
			up->written = at;
			while (next == up->read) {
			}
		}
		up_bytes[at] = data[sent];
		at = next;
	}
	memory_barrier();
	up->written = at;
}

static uint32_t waiting(void)
{
	uint32_t held = (down->written - down->read) % MACHINE_RING_BYTES;

	memory_barrier();
	return held;
}

uint32_t link_peek(uint32_t from, const uint8_t **data)
{
	uint32_t start = (down->read + from) % MACHINE_RING_BYTES;
	uint32_t held = waiting();

	*data = &down_bytes[start];
	if (held <= from) {
		return 0U;
	}
	held -= from;
	return held < MACHINE_RING_BYTES - start ? held : MACHINE_RING_BYTES - start;
}

/* The processor does not sleep: in sleep some chips refuse a probe their memory. */
uint32_t link_wait(const uint8_t **data)
{
	uint32_t size;

	while (waiting() == 0U) {
	}
	size = link_peek(0U, data);
	/* Not all of the ring: there must be room for the message that ends a measurement. */
	return size < MACHINE_RING_BYTES / 2U ? size : MACHINE_RING_BYTES / 2U;
}

/* The probe writes: this program can't drop bytes behind those that it still uses. */
void link_make_room(uint32_t held)
{
	(void)held;
}

void link_consume(uint32_t size)
{
	memory_barrier();
	down->read = (down->read + size) % MACHINE_RING_BYTES;
}

/* The probe does not tell which bytes it dropped while the ring was full. */
uint32_t link_overruns(void)
{
	return 0U;
}
