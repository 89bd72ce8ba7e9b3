/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A clock that needs no interrupt, where the devicetree chooses minrpc,second-clock: the counters
 * of an Arm FPGA image, one of 100 Hz and behind it one of 32 bits at the processor's rate. It has
 * the processor's oscillator.
 */
#ifndef SECOND_CLOCK_H_
#define SECOND_CLOCK_H_

#include <stdint.h>

#include <zephyr/devicetree.h>
#include <zephyr/kernel.h>

#if DT_HAS_CHOSEN(minrpc_second_clock)

#define HAS_SECOND_CLOCK   1
/* 25 MHz and 20 MHz give whole rates. */
#define SECOND_CLOCK_SHIFT 6U
/* Cycles between the readings of both clocks. */
#define SECOND_CLOCK_SLACK (1U << 14)

static inline uint64_t second_clock_hz(void)
{
	return sys_clock_hw_cycles_per_sec() >> SECOND_CLOCK_SHIFT;
}

static inline uint64_t second_clock_ticks(void)
{
	const volatile uint32_t *counters =
		(const volatile uint32_t *)DT_REG_ADDR(DT_CHOSEN(minrpc_second_clock));
	uint64_t about = (uint64_t)counters[0] * (sys_clock_hw_cycles_per_sec() / 100U);
	uint32_t count = counters[1];

	/* Both began at the reset: the slower counter tells the rounds of the faster. */
	return (((about + (1ULL << 31) - count) & ~0xffffffffULL) + count) >> SECOND_CLOCK_SHIFT;
}

#else

#define HAS_SECOND_CLOCK   0
#define SECOND_CLOCK_SLACK 0U

static inline uint64_t second_clock_hz(void)
{
	return 0U;
}

static inline uint64_t second_clock_ticks(void)
{
	return 0U;
}

#endif

#endif /* SECOND_CLOCK_H_ */
