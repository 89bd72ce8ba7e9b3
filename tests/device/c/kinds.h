/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KINDS_H_
#define KINDS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum colour {
	RED = -1,
	GREEN,
	BLUE = 7
};

struct point {
	int32_t x, y;
};

struct flags {
	unsigned int a: 3;
	unsigned int b: 5;
	int c: 10;
};

struct filter {
	uint16_t taps;
	const int16_t *coefficients;
	int16_t *state;
	uint32_t steps;
};

struct node {
	int32_t weight;
	const struct node *next;
};

struct hidden;

typedef int (*compare_t)(const void *a, const void *b);

#endif /* KINDS_H_ */
