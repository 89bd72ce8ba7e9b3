/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static volatile int32_t counts[4];
static const int32_t squares[3] = {1, 4, 9};
int hal_read(int n);

static __attribute__((noinline)) int sum(const int16_t *x, int n)
{
	int total = 0;

	for (int i = 0; i < n; i++) {
		total += x[i];
	}
	return total;
}

int sum_of(const int16_t *x, int n)
{
	return sum(x, n) + 1;
}

int in_heap(int size, int at)
{
	volatile char *block = memset(malloc(size), 1, size);
	int found = block[at];

	free((void *)block);
	return found;
}

int after_free(int size, int at)
{
	volatile char *block = memset(malloc(size), 1, size);

	free((void *)block);
	return block[at];
}

int many(int n)
{
	int total = 0;

	for (int i = 0; i < n; i++) {
		volatile char *block = realloc(malloc(8 + i % 7), 40);

		block[39] = 1;
		total += block[39];
		free((void *)block);
	}
	return total;
}

int copy(char *to, const char *from, int n)
{
	memcpy(to, from, n);
	return n;
}

int at(int index)
{
	counts[1] = 7;
	return counts[index];
}

void write_constant(int value)
{
	*(volatile int32_t *)&squares[1] = value;
}

int at_address(uintptr_t address)
{
	return *(volatile char *)address;
}

int asks(const int16_t *x, int n)
{
	volatile int16_t kept[8];

	for (int i = 0; i < 8; i++) {
		kept[i] = x[i] + hal_read(i);
	}
	return kept[n & 7] + x[n];
}

int wild(int16_t *x)
{
	int found = x[-1];

	*(volatile int *)4 = found;
	return found;
}

static __attribute__((noinline)) int used(const char *text)
{
	return text[0];
}

/* Two arrays side by side on the stack: the memory behind one is the other's. */
int copied_on_stack(int count)
{
	char first[40], second[40];

	memset(first, 1, sizeof(first));
	memset(second, 2, sizeof(second));
	memcpy(count & 1 ? second : first, "0123456789abcdef0123456789abcdef0123456789abcdef",
	       count & ~1);
	return used(first) + used(second);
}

static int rows[8], columns[8];

int beside_global(int index)
{
	columns[1] = 1;
	rows[index] = 2;
	return columns[1] + rows[1];
}

int two_blocks(int index)
{
	char *one = malloc(16), *other = malloc(16);

	memset(one, 1, 16);
	memset(other, 2, 16);
	int found = one[other - one + index];

	free(one);
	free(other);
	return found;
}

int never_written(int count)
{
	int kept[8];

	for (int i = 0; i < count; i++) {
		kept[i] = i;
	}
	used((const char *)kept);
	return kept[5] > 3 ? 1 : 2;
}

struct unit {
	volatile uint32_t data;
	volatile uint32_t status;
};

int sent(const int16_t *x, int count)
{
	struct unit *unit = (struct unit *)0x40013800;

	for (int i = 0; i < count; i++) {
		unit->data = x[i];
	}
	return unit->status;
}
