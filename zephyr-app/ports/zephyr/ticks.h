/*
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TICKS_H_
#define TICKS_H_

#include <stdint.h>

/**
 * @brief The rate at which the kernel's ticks really pass, in whole ticks a second.
 *
 * A tick is a whole number of the timer's cycles, for any requested rate: 1,000 ticks requested at
 * 32,768 Hz give 1,024.
 */
static inline uint64_t minrpc_tick_hz(uint64_t cycles_hz, uint64_t asked_hz)
{
	uint64_t cycles = cycles_hz / asked_hz;

	if (cycles == 0U) {
		cycles = 1U;
	}
	return (cycles_hz + cycles / 2U) / cycles;
}

#endif /* TICKS_H_ */
