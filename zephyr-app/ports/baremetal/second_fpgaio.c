/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The counters of an Arm FPGA image: one of 32 bits at MACHINE_SECOND_HZ, and one of 100 Hz, which
 * tells its rounds. MACHINE_SECOND: the base of FPGAIO.
 */
#include "machine.h"
#include "port.h"

#define HUNDREDTHS (*(volatile uint32_t *)(MACHINE_SECOND + 0x14U))
#define COUNTER    (*(volatile uint32_t *)(MACHINE_SECOND + 0x18U))
#define ROUND      (1ULL << 32)
#define SHIFT      6U /* 25 MHz and 20 MHz give whole rates */

const uint32_t second_hz = MACHINE_SECOND_HZ >> SHIFT;

/* The counter's value when the slower one stood at 0. */
static uint32_t offset;

static uint64_t by_hundredths(void)
{
	return (uint64_t)HUNDREDTHS * (MACHINE_SECOND_HZ / 100U);
}

void second_init(void)
{
	offset = COUNTER - (uint32_t)by_hundredths();
}

uint64_t second_ticks(void)
{
	uint64_t about = by_hundredths();
	uint32_t count = COUNTER - offset;
	uint64_t rounds = (about + ROUND / 2U - count) / ROUND;

	/* No division: the first clock is read right after this. */
	return (rounds * ROUND + count) >> SHIFT;
}
