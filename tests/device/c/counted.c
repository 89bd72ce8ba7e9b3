/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions whose counts are known.
 */
#include <stdint.h>

/* Loads the same element this number of times. */
void loads(const volatile int32_t *at, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		(void)*at;
	}
}

/* Uses this number of bytes of stack. */
void deep(int size)
{
	volatile char bytes[size];

	for (int i = 0; i < size; i++) {
		bytes[i] = (char)i;
	}
}

int divided(int a, int b)
{
	return a / b;
}
