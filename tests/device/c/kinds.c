/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A function for each kind of argument and result.
 */
#include "kinds.h"

int calls;
int32_t table[4] = {1, 2, 3, 4};
struct point origin = {1, -2};
const int16_t fixed[2] = {7, 8};
static uint8_t zeroed[3000];
static int started;

__attribute__((constructor)) static void begin(void)
{
	started = 42;
}

int was_started(void)
{
	int sum = started;

	for (unsigned int i = 0; i < sizeof(zeroed); i++) {
		sum += zeroed[i];
		zeroed[i] = 1;
	}
	return sum;
}

void scale(const int16_t *x, int16_t *y, size_t n, int16_t factor)
{
	calls++;
	for (size_t i = 0; i < n; i++) {
		y[i] = (int16_t)(x[i] * factor);
	}
}

double mean(const float *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		sum += x[i];
	}
	return n == 0 ? 0 : sum / (double)n;
}

long standard(void)
{
	return __STDC_VERSION__;
}

int64_t product(int64_t a, int32_t b)
{
	return a * b;
}

uint64_t largest(void)
{
	return UINT64_MAX;
}

bool both(bool a, bool b)
{
	return a && b;
}

enum colour next_colour(enum colour c)
{
	return c == RED ? GREEN : BLUE;
}

struct point swapped(struct point p)
{
	return (struct point){p.y, p.x};
}

void move(struct point *points, size_t n, const struct point *by)
{
	for (size_t i = 0; i < n; i++) {
		points[i].x += by->x;
		points[i].y += by->y;
	}
}

unsigned int flags_sum(struct flags f)
{
	return f.a + f.b * 10 + (unsigned int)(f.c + 100) * 1000;
}

void filter_init(struct filter *f, uint16_t taps, const int16_t *coefficients, int16_t *state)
{
	f->taps = taps;
	f->coefficients = coefficients;
	f->state = state;
	for (int i = 0; i < taps; i++) {
		state[i] = 0;
	}
}

int32_t filter_step(struct filter *f, int16_t sample)
{
	int32_t sum = 0;

	for (int i = f->taps - 1; i > 0; i--) {
		f->state[i] = f->state[i - 1];
	}
	f->state[0] = sample;
	for (int i = 0; i < f->taps; i++) {
		sum += f->coefficients[i] * f->state[i];
	}
	f->steps++;
	return sum;
}

int ascending(const void *a, const void *b)
{
	const int32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int descending(const void *a, const void *b)
{
	return ascending(b, a);
}

void sort(int32_t *values, size_t n, compare_t compare)
{
	for (size_t i = 1; i < n; i++) {
		for (size_t k = i; k > 0 && compare(&values[k - 1], &values[k]) > 0; k--) {
			int32_t held = values[k];

			values[k] = values[k - 1];
			values[k - 1] = held;
		}
	}
}

size_t length(const char *text)
{
	size_t n = 0;

	while (text[n] != 0) {
		n++;
	}
	return n;
}

int32_t *place(int index)
{
	return index < 0 ? NULL : &table[index];
}

const int16_t *fixed_numbers(void)
{
	return fixed;
}

int32_t total(int32_t *const *rows, size_t rows_count, size_t n)
{
	int32_t sum = 0;

	for (size_t i = 0; i < rows_count; i++) {
		for (size_t k = 0; rows[i] != NULL && k < n; k++) {
			sum += rows[i][k];
		}
	}
	return sum;
}

int32_t depth(const struct node *list)
{
	return list == NULL ? 0 : list->weight + depth(list->next);
}

void fill(void *memory, uint8_t value, size_t n)
{
	uint8_t *at = memory;

	while (n-- != 0) {
		*at++ = value;
	}
}

void overrun(int16_t *y, int n, int before, int behind)
{
	for (int i = -before; i < n + behind; i++) {
		y[i] = 1;
	}
}

void poke(int8_t *y, int at)
{
	y[at] = 1;
}

int sum_of(int count, ...)
{
	return count;
}

int look(const struct hidden *h)
{
	return h != NULL;
}

void fault(void)
{
	__builtin_trap();
}

void hang(void)
{
	for (volatile int i = 0;; i++) {
	}
}

static int *volatile nowhere;

__attribute__((noinline)) void set_null(void)
{
	*nowhere = 1;
}

int call_set_null(void)
{
	set_null();
	return calls++;
}

/* Reads a member of a structure through a null pointer. */
int read_null(int index)
{
	calls += nowhere[index];
	return calls;
}

/* Its frame has this number of bytes, of which only the lowest is written. */
int write_below(int size)
{
	volatile char *bytes = __builtin_alloca((unsigned long)size);

	bytes[0] = 1;
	return bytes[0];
}

int recurse(int n)
{
	volatile int held[16];

	held[n & 15] = n;
	return recurse(n + 1) + held[n & 15];
}

/* In the place of a stray pointer: to a constant, or to code. */
void write_constant(int value)
{
	*(volatile int16_t *)(uintptr_t)&fixed[1] = (int16_t)value;
}

void write_code(int (*function)(int), int value)
{
	*(volatile uint8_t *)(((uintptr_t)function & ~(uintptr_t)1U) + 1U) ^= (uint8_t)value;
}

/* Its return address is among the bytes that are written past the array. */
__attribute__((noinline)) int smash(int count)
{
	volatile char bytes[8];

	for (int i = 0; i < count; i++) {
		bytes[i] = 0x55;
	}
	return bytes[0];
}

int call_smash(int count)
{
	return smash(count) + calls;
}

struct driver {
	uint8_t port;
	int32_t (*transfer)(const struct driver *driver, int32_t value);
	int32_t (*reset)(const struct driver *driver);
};

int32_t exchanged(const struct driver *driver, int32_t value)
{
	if (driver->reset != NULL && driver->reset(driver) != 0) {
		return -1;
	}
	return driver->transfer(driver, value);
}
