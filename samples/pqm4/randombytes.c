/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The random source of all schemes, apart from their headers: some declare it with other types or
 * give it another name by a macro.
 */
#include <stddef.h>
#include <stdint.h>

static uint32_t state = 1;

/* Marsaglia's xorshift: schemes need bytes that look random and are the same in each run. */
void seed(uint32_t value);
void seed(uint32_t value)
{
	state = value;
}

int randombytes(uint8_t *bytes, size_t size);
int randombytes(uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		state ^= state << 13;
		state ^= state >> 17;
		state ^= state << 5;
		bytes[i] = (uint8_t)state;
	}
	return 0;
}

int PQCLEAN_randombytes(uint8_t *bytes, size_t size);
int PQCLEAN_randombytes(uint8_t *bytes, size_t size)
{
	return randombytes(bytes, size);
}
