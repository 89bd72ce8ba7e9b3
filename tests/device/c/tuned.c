/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A dot product to be tuned, and each way in which a candidate can be invalid.
 */
#include <stdint.h>

#ifndef UNROLL
#define UNROLL 1
#endif

#ifndef FAULT
#define FAULT 0
#endif

/* A thousand candidates that differ in nothing else: each tenth is one of three faults. */
#if defined(CANDIDATE) && CANDIDATE % 10 == 6
#undef FAULT
#define FAULT (3 + CANDIDATE / 10 % 3)
#endif

#if FAULT == 1
#error does not compile
#endif

extern int32_t nobody_has_this(void);

int32_t dot(const int8_t *a, const int8_t *b, int32_t n)
{
	int32_t sum = 0;

#if FAULT == 2
	sum = nobody_has_this();
#elif FAULT == 3
	*(volatile int32_t *)UINTPTR_MAX = 1;
	__builtin_trap();
#elif FAULT == 4
	for (volatile int32_t i = 0; i >= 0; i = 0) {
	}
#elif FAULT == 5
	sum = 1;
#elif FAULT == 6
	return 0;
#elif FAULT == 7
	static int calls;

	if (calls++ != 0) {
		return 0;
	}
#elif FAULT == 8 && defined(__arm__)
	*(volatile uint32_t *)0xe000e010 = 0;
#endif
#if defined(CANDIDATE)
	__asm__ volatile("" ::"r"(CANDIDATE));
#endif
	for (int32_t i = 0; i + UNROLL <= n; i += UNROLL) {
		for (int32_t j = 0; j < UNROLL; j++) {
			sum += a[i + j] * b[i + j];
		}
	}
	return sum;
}
