/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * This application's own part: it knows nothing of RPC.
 */
#ifndef FILTER_H_
#define FILTER_H_

#include <stddef.h>
#include <stdint.h>

/* The sum of products of `count` samples and taps. */
int32_t filter_dot(const int16_t *samples, const int16_t *taps, size_t count);

/* `value`, but not below `low` and not above `high`. */
int32_t filter_clamp(int32_t value, int32_t low, int32_t high);

#endif /* FILTER_H_ */
