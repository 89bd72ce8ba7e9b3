/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a function of sensor.c, and has a static function of the same name. */
#include "sensor.h"

static int16_t clamp(int16_t value)
{
	return value < 0 ? 0 : value;
}

uint32_t framed(const uint8_t *data, uint32_t n)
{
	return crc_hw(data, n) + (uint32_t)clamp((int16_t)n) +
	       (uint32_t)middle((struct span){0, 8});
}
