/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions, structs and pointers at the corners of C's rules.
 */
#include <stdint.h>

_Noreturn void hal_reset(void);
int hal_recv(short *buffer, int n);
int hal_call(void);
struct cfg {
	uint8_t on;
	uint32_t gain;
};
void hal_read(const struct cfg *c);

int counter;

int check(int x)
{
	if (x < 0) {
		hal_reset();
	}
	return x;
}

int bump(int x)
{
	counter++;
	return counter + 1000 + x;
}

int recv3(void)
{
	short b[3] = {1, 2, 3};

	hal_recv(b, 3);
	return b[0] * 100 + b[1] * 10 + b[2];
}

int buf[4] = {1, 2, 3, 4};

void clear(int *p, int n)
{
	for (int i = 0; i < n; i++) {
		p[i] = 0;
	}
}

enum colour {
	RED,
	GREEN,
	BLUE = 100000, /* four bytes on each machine */
};

int colours(const enum colour *c, int n)
{
	int s = 0;

	for (int i = 0; i < n; i++) {
		s += c[i];
	}
	return s;
}

typedef int (*callback)(int x);

int run(callback f, int x)
{
	return f(x);
}

int *kept;

void keep(int *p)
{
	kept = p;
}

int call_out(void)
{
	return hal_call();
}

struct node {
	int *p;
};

struct top {
	struct node *n;
};

void keep_in(struct top *t, int *p)
{
	t->n->p = p;
}

struct packed_pointer {
	uint8_t tag;
	int *p;
} __attribute__((packed)) packed_kept;

void keep_packed(int *p)
{
	packed_kept.p = p;
}

__attribute__((noinline)) void dirty(void)
{
	volatile uint32_t a[64];

	for (int i = 0; i < 64; i++) {
		a[i] = 0xa5a5a5a5;
	}
}

__attribute__((noinline)) void start(void)
{
	struct cfg c;

	c.on = 1;
	c.gain = 9;
	hal_read(&c);
}

void read_dirty(void)
{
	dirty();
	start();
}

struct bits {
	int a;
	unsigned int f: 3;
	signed int g: 5;
};

void fill_bits(struct bits *p, int n)
{
	for (int i = 0; i < n; i++) {
		p[i].a = i;
		p[i].f = 5;
		p[i].g = -3;
	}
}

int show_bits(struct bits b)
{
	return b.a * 1000 + b.f * 10 + b.g;
}

uint32_t sum_words(const uint32_t *p, int n)
{
	uint32_t s = 0;

	for (int i = 0; i < n; i++) {
		s += p[i];
	}
	return s;
}

struct table {
	const int16_t *values;
	int n;
};

int first_of(const struct table *t)
{
	return t->values[0] + t->n;
}

struct precise {
	int n;
	long double x;
} precise;

int is_long_double_wide(void)
{
	return sizeof(long double) > sizeof(double);
}
