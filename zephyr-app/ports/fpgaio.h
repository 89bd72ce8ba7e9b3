/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A clock that needs no interrupt: the counters of an Arm FPGA image (FPGAIO), one of 32 bits at
 * the rate of an oscillator, and one of 100 Hz, which tells its rounds.
 */
#ifndef FPGAIO_H_
#define FPGAIO_H_

#include <stdint.h>

#define FPGAIO_HUNDREDTHS 0x14U /* offsets of the counters */
#define FPGAIO_COUNTER    0x18U
#define FPGAIO_SHIFT      6U /* 25 MHz and 20 MHz give whole rates */

/* The oscillator's cycles since the slower counter stood at 0. hz: the oscillator's. */
static inline uint64_t fpgaio_by_hundredths(uintptr_t base, uint32_t hz)
{
	return (uint64_t)*(volatile uint32_t *)(base + FPGAIO_HUNDREDTHS) * (hz / 100U);
}

static inline uint32_t fpgaio_counter(uintptr_t base)
{
	return *(volatile uint32_t *)(base + FPGAIO_COUNTER);
}

/* Ticks of hz >> FPGAIO_SHIFT. offset: the faster counter's value when the slower one stood at 0.
 */
static inline uint64_t fpgaio_ticks(uintptr_t base, uint32_t hz, uint32_t offset)
{
	const uint64_t round = 1ULL << 32;
	uint64_t about = fpgaio_by_hundredths(base, hz);
	uint32_t count = fpgaio_counter(base) - offset;
	uint64_t rounds = (about + round / 2U - count) / round;

	/* No division: the first clock is read right after this. */
	return (rounds * round + count) >> FPGAIO_SHIFT;
}

#endif /* FPGAIO_H_ */
