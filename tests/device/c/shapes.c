/* SPDX-License-Identifier: Apache-2.0 */
/* Types of one shape, and types of one name that shapes_too.c defines otherwise. */
#include <stdint.h>

struct whole {
	int32_t x, y;
};
struct real {
	float x, y;
};
struct bytes {
	uint8_t a, b;
};
struct chars {
	int8_t a, b;
};
struct words {
	uint32_t x, y;
};
struct places {
	void *x, *y;
};
typedef struct {
	int32_t x, y;
} mine;
typedef struct {
	int32_t x, y;
} yours;
struct pt {
	int32_t x, y;
};
enum colour {
	RED = 1,
	GREEN = 2
};
struct opaque;

yours kept = {7, 8};
struct real kept_real = {1, 2};
struct bytes kept_bytes;
struct places kept_places;

int32_t whole_x(struct whole w)
{
	return w.x + 10 * w.y;
}

int32_t whole_at(const struct whole *w)
{
	return w->x;
}

int chars_sum(struct chars c)
{
	return c.a + c.b;
}

uint32_t words_x(struct words w)
{
	return w.x;
}

int32_t mine_x(const mine *m)
{
	return m->x;
}

yours *yours_at(void)
{
	return &kept;
}

int32_t pt_here(struct pt p)
{
	return p.x + 10 * p.y;
}

int colour_here(enum colour c)
{
	return 10 * c + (c == GREEN);
}

uint32_t number(uint32_t n)
{
	return n;
}

struct opaque *opaque_new(void);

struct opaque *opaque_same(struct opaque *o)
{
	return o;
}

static int count = 1;

int counted_here(void)
{
	return count++;
}

static int32_t own = 77;

/* The second element, then one of this file, then none. */
void turn(int32_t **p)
{
	p[0] = p[1];
	p[1] = &own;
	p[2] = 0;
}

void turn_const(int32_t *const *p)
{
	turn((int32_t **)p);
}

struct odd {
	int32_t _minrpc, _offset, __x, self, read;
};
enum odd_names {
	_RUN_ = 3,
	mro = 4,
	__y = 5
};

int odd_sum(struct odd o, enum odd_names name)
{
	return o._offset + 10 * o.__x + 100 * o.self + 1000 * o.read + 10000 * name;
}

#ifdef WITNESS
#include <stdio.h>
float pt_there_of(float x, float y);
int colour_there_of(int c);
int opaque_value(struct opaque *o);
int counted_there(void);

int main(void)
{
	int32_t a[3] = {1, 2, 3};
	int32_t *p[3] = {&a[0], &a[1], &a[2]};
	printf("%d %d\n", (int)whole_x((struct whole){1, 2}), chars_sum((struct chars){-56, 100}));
	printf("%d %g\n", (int)pt_here((struct pt){1, 2}), pt_there_of(1, 2));
	printf("%d %d\n", colour_here(GREEN), colour_there_of(9));
	turn(p);
	printf("%d %d %d\n", (int)*p[0], (int)*p[1], p[2] == 0);
	printf("%d %d\n", counted_here(), counted_there());
	printf("%d\n", odd_sum((struct odd){0, 1, 2, 3, 4}, mro));
	printf("%d\n", opaque_value(opaque_same(opaque_new())));
	return 0;
}
#endif
