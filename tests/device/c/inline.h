/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Inline functions, in the style of hardware layers: some are always inlined.
 */
#ifndef INLINE_H_
#define INLINE_H_

#include <stdbool.h>
#include <stdint.h>

#include "sensor.h"

struct bank {
	uint32_t mode, rate;
};

uint32_t board_ticks(void);

static inline void bank_set(struct bank *bank, uint32_t bits)
{
	bank->mode |= bits;
}

static inline __attribute__((always_inline)) bool bank_is_set(const struct bank *bank,
							      uint32_t bits)
{
	return (bank->mode & bits) == bits;
}

static inline struct bank bank_turned(struct bank bank)
{
	return (struct bank){bank.rate, bank.mode};
}

static inline uint32_t later(uint32_t by)
{
	return board_ticks() + by;
}

#endif
