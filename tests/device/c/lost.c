/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions that lose their way: a wrong stack pointer, a null function, a division in the
 * compiler's library.
 */
#include <setjmp.h>
#include <stdint.h>

static jmp_buf never_set;
static void (*volatile handler)(void);
volatile int after;

void leap(void)
{
	longjmp(never_set, 1);
}

void call_handler(void)
{
	handler();
	after = 1;
}

/* The compiler's library divides 64 bits. */
uint32_t divisor_of(uint32_t clock, uint32_t baud)
{
	return (uint32_t)(((uint64_t)clock * 256U) / baud) + 1U;
}
