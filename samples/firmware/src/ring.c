/* SPDX-License-Identifier: Apache-2.0 */
#include "ring.h"

#define SIZE sizeof(((struct ring *)0)->bytes)

uint32_t ring_put(struct ring *ring, const uint8_t *data, uint32_t n)
{
	uint32_t done = 0;

	while (done < n && ring->in - ring->out < SIZE) {
		ring->bytes[ring->in++ % SIZE] = data[done++];
	}
	return done;
}

uint32_t ring_get(struct ring *ring, uint8_t *data, uint32_t n)
{
	uint32_t done = 0;

	while (done < n && ring->in != ring->out) {
		data[done++] = ring->bytes[ring->out++ % SIZE];
	}
	return done;
}
