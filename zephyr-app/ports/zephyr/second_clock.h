/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A clock that needs no interrupt, where the devicetree chooses minrpc,second-clock: the counters
 * of an Arm FPGA image (fpgaio.h), of which the faster has the processor's oscillator.
 */
#ifndef SECOND_CLOCK_H_
#define SECOND_CLOCK_H_

#include <stdint.h>

#include <zephyr/devicetree.h>
#include <zephyr/kernel.h>

#include "../fpgaio.h"

#if DT_HAS_CHOSEN(minrpc_second_clock)

#define HAS_SECOND_CLOCK   1
/* Cycles between the readings of both clocks. */
#define SECOND_CLOCK_SLACK (1U << 14)

static inline uint64_t second_clock_hz(void)
{
	return sys_clock_hw_cycles_per_sec() >> FPGAIO_SHIFT;
}

/* Both counters began at the reset. */
static inline uint64_t second_clock_ticks(void)
{
	/* The devicetree's address is that of the first counter. */
	return fpgaio_ticks(DT_REG_ADDR(DT_CHOSEN(minrpc_second_clock)) - FPGAIO_HUNDREDTHS,
			    sys_clock_hw_cycles_per_sec(), 0U);
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
