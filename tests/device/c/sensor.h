/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SENSOR_H_
#define SENSOR_H_

#include <stdint.h>

struct span {
	int16_t low, high;
};

static inline int16_t middle(struct span span)
{
	return (int16_t)((span.low + span.high) / 2);
}

uint32_t crc_hw(const uint8_t *data, uint32_t n);
uint32_t sealed(const uint8_t *data, uint32_t n);

#endif
