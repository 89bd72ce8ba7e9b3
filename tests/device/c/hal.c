/* SPDX-License-Identifier: Apache-2.0 */
/* Code over an undefined hardware layer, and functions that take functions. */
#include "hal.h"

#include <stddef.h>

uint32_t elapsed(uint32_t since)
{
	return hal_millis() - since;
}

int send(uint32_t n)
{
	uint8_t data[64];

	for (uint32_t i = 0; i < n; i++) {
		data[i] = (uint8_t)(i * i);
	}
	return hal_write(7, data, n);
}

int receive(uint8_t *to, uint32_t n)
{
	uint8_t data[64] = {0};
	int got = hal_read(data, n);

	for (int i = 0; i < got; i++) {
		to[i] = data[i];
	}
	return got;
}

double scaled(float f, double d)
{
	return hal_gain(f, d) + 1.0;
}

int32_t turned(int16_t x, int16_t y)
{
	struct reading r = hal_turn((struct reading){x, y, IDLE});

	hal_adjust(&r);
	return r.x * 1000 + r.y * 10 + (int32_t)r.state;
}

int polled(int limit)
{
	int n = 0;

	while (n < limit && !hal_is_ready()) {
		n++;
	}
	return n;
}

uint32_t summed(uint32_t n)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		sum += (uint32_t)hal_port(i, 0x8000000000000000ull | i, -(int8_t)i);
	}
	return sum;
}

void noted(const char *text)
{
	hal_log(text);
}
