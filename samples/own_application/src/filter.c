/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter.h"

int32_t filter_dot(const int16_t *samples, const int16_t *taps, size_t count)
{
	int32_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		sum += samples[i] * taps[i];
	}
	return sum;
}

int32_t filter_clamp(int32_t value, int32_t low, int32_t high)
{
	if (value < low) {
		return low;
	}
	return value > high ? high : value;
}
