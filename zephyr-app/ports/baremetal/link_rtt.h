/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The memory in which a debug probe and the program meet: SEGGER's Real Time Transfer (RTT). The
 * layout is that of 32-bit targets in SEGGER's documentation; probes find the block by its name in
 * memory, or by its symbol.
 */
#ifndef LINK_RTT_H_
#define LINK_RTT_H_

#include <stdint.h>

/* A ring; it is empty when both offsets are the same, so it holds size - 1 bytes. */
struct rtt_ring {
	const char *name;
	uint8_t *data;
	uint32_t size;
	volatile uint32_t written; /* offset; by the program in `up`, by the probe in `down` */
	volatile uint32_t read;    /* offset; by the other one */
	uint32_t flags;            /* what the program does when the ring is full */
};

struct rtt {
	volatile char id[16];
	uint32_t up_rings;
	uint32_t down_rings;
	struct rtt_ring up;
	struct rtt_ring down;
};

extern struct rtt _SEGGER_RTT;

/* Changes when bytes arrive. */
#define LINK_RECEIVED (&_SEGGER_RTT.down.written)

#endif /* LINK_RTT_H_ */
