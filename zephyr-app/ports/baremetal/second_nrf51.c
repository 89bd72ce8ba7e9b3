/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A timer of the nRF51 with 32 bits, whose round takes 38 hours. MACHINE_SECOND: its base.
 */
#include "machine.h"
#include "port.h"

#define TIMER(offset)  (*(volatile uint32_t *)(MACHINE_SECOND + (offset)))
#define TASK_START     TIMER(0x000U)
#define TASK_CLEAR     TIMER(0x00cU)
#define TASK_CAPTURE   TIMER(0x040U)
#define TIMER_BITS     TIMER(0x508U)
#define TIMER_PRESCALE TIMER(0x510U)
#define TIMER_CAPTURED TIMER(0x540U)
#define BITS_32        3U
#define BY_512         9U

const uint32_t second_hz = MACHINE_SECOND_HZ;

void second_init(void)
{
	TIMER_BITS = BITS_32;
	TIMER_PRESCALE = BY_512;
	TASK_CLEAR = 1U;
	TASK_START = 1U;
}

uint64_t second_ticks(void)
{
	TASK_CAPTURE = 1U;
	return TIMER_CAPTURED;
}
