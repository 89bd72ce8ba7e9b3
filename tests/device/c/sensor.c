/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that are replaced, and static functions, in the file of their callers. */
#include "sensor.h"

/* So simple that a compiler inlines it, or sees that it has no effect. */
uint32_t crc_hw(const uint8_t *data, uint32_t n)
{
	return n != 0 ? data[0] : 7;
}

int16_t range(int16_t low)
{
	return low;
}

static int16_t clamp(int16_t value, int16_t low, int16_t high)
{
	return value < low ? low : value > high ? high : value;
}

static int unused(struct span span)
{
	return span.high - span.low;
}

static inline int32_t twice(int32_t value)
{
	return 2 * value;
}

uint32_t sealed(const uint8_t *data, uint32_t n)
{
	return crc_hw(data, n) + crc_hw(data, n);
}

int16_t limited(int16_t value)
{
	return clamp(value, range(-10), range(10));
}

int32_t doubled(int32_t value)
{
	return twice(value);
}

uint32_t (*const check)(const uint8_t *data, uint32_t n) = crc_hw;

uint32_t checked(const uint8_t *data, uint32_t n)
{
	return check(data, n);
}
