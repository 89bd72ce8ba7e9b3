/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Cortex-M's SysTick: it counts 24 bits down, its interrupt counts the overflows.
 */
#include <minrpc/timer.h>

#include "machine.h"
#include "port.h"

#define PERIOD CLOCK_ROUND

static volatile uint32_t overflows;

void clock_init(void)
{
	SYSTICK_RELOAD = PERIOD - 1U;
	SYSTICK_VALUE = 0U;
	SYSTICK_CTRL = SYSTICK_CTRL_RUN;
}

const char *clock_restore(void)
{
	bool running = (SYSTICK_CTRL & SYSTICK_CTRL_RUN) == SYSTICK_CTRL_RUN;
	bool whole = SYSTICK_RELOAD == PERIOD - 1U;

	if (running && whole) {
		return NULL;
	}
	clock_init();
	return running ? "SysTick's LOAD" : whole ? "SysTick's CTRL" : "SysTick's CTRL and LOAD";
}

void systick_isr(void)
{
	overflows++;
}

uint64_t clock_cycles(void)
{
	uint32_t counted;
	uint32_t before;
	uint32_t after;
	uint32_t value;

	/* Read again if an overflow happened, or was counted, in between. */
	do {
		counted = overflows;
		before = SCB_ICSR & ICSR_SYSTICK_PENDING;
		value = SYSTICK_VALUE;
		after = SCB_ICSR & ICSR_SYSTICK_PENDING;
	} while (before != after || counted != overflows);
	return minrpc_down_counter(counted, before != 0U, value, PERIOD);
}
