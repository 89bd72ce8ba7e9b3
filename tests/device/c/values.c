/* SPDX-License-Identifier: Apache-2.0 */
/* Values that numpy would convert: vectors, complex numbers, bools, enums of 64 bits. */
#include <stdbool.h>
#include <stdint.h>

typedef int8_t eight __attribute__((vector_size(8)));
enum wide {
	ONE = 1,
	HALF = 0x8000000000000000ull,
	MOST = 0xffffffffffffffffull
};

extern enum wide answered(enum wide asked);

int sum(eight v)
{
	int total = 0;

	for (int i = 0; i < 8; i++) {
		total += v[i] * (i + 1);
	}
	return total;
}

float real_plus_twice_imaginary(float _Complex z)
{
	return __real__ z + 2 * __imag__ z;
}

int bits_of(const bool *flags, int count)
{
	int found = 0;

	for (int i = 0; i < count; i++) {
		found = found << 1 | ((const unsigned char *)flags)[i];
	}
	return found;
}

enum wide next(enum wide value)
{
	return value == ONE ? HALF : value == HALF ? MOST : ONE;
}

enum wide asks(enum wide value)
{
	return answered(value);
}

#ifdef WITNESS
#include <stdio.h>

enum wide answered(enum wide asked)
{
	return next(asked);
}

int main(void)
{
	const bool flags[] = {true, false, true};

	printf("%d\n", sum((eight){-128, 127, 1, 0, 0, 0, 0, 3}));
	printf("%g\n", real_plus_twice_imaginary(1.5f + 2.0fi));
	printf("%d\n", bits_of(flags, 3));
	for (enum wide value = ONE, i = 0; i < 3; i++, value = next(value)) {
		printf("%llu %llu\n", (unsigned long long)next(value),
		       (unsigned long long)asks(value));
	}
	return 0;
}
#endif
