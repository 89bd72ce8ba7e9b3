/* SPDX-License-Identifier: Apache-2.0 */
#include "kept.h"

struct context {
	int value;
	struct context *next;
};

int context_value(struct context *context)
{
	return context->value;
}

struct uart {
	unsigned int sr, dr;
	unsigned int low: 5, high: 11;
	unsigned char fifo[4];
};

struct uart uart = {1, 2, 3, 4, {5, 6, 7, 8}};
const struct uart reset_values = {9};
static struct uart banks[2];

struct uart *bank(int index)
{
	return &banks[index];
}

const struct uart *reset(void)
{
	return &reset_values;
}
