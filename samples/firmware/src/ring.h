/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RING_H_
#define RING_H_

#include <stdint.h>

struct ring {
	uint32_t in, out;
	uint8_t bytes[16];
};

/* Each returns the number of bytes that it put in, or took out. */
uint32_t ring_put(struct ring *ring, const uint8_t *data, uint32_t n);
uint32_t ring_get(struct ring *ring, uint8_t *data, uint32_t n);

#endif
