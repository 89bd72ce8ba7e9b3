/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * How deep the stack went: it is painted at the start, and what is not paint any more was used.
 */
#include <minrpc/stack.h>

#include "machine.h"
#include "port.h"

#define PAINT 0x5ac35ac3U

extern uint32_t __stack[]; /* its top, from the linker script */

static uint32_t *bottom(void)
{
	return __stack - MACHINE_STACK_BYTES / sizeof(uint32_t);
}

void stack_paint(void)
{
	/* What interrupts push over it is paint lost, not damage. */
	uint32_t *end = minrpc_stack_pointer();

	for (volatile uint32_t *at = bottom(); at < end; at++) {
		*at = PAINT;
	}
}

void stack_use(uint32_t *size, uint32_t *peak)
{
	const uint32_t *at = bottom();

	while (*at == PAINT) {
		at++;
	}
	*size = MACHINE_STACK_BYTES;
	*peak = (uint32_t)((uintptr_t)__stack - (uintptr_t)at);
}
