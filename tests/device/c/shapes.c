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

#ifdef WITNESS
#include <stdio.h>
float pt_there_of(float x, float y);
int colour_there_of(int c);
int opaque_value(struct opaque *o);

int main(void)
{
	printf("%d %d\n", (int)whole_x((struct whole){1, 2}), chars_sum((struct chars){-56, 100}));
	printf("%d %g\n", (int)pt_here((struct pt){1, 2}), pt_there_of(1, 2));
	printf("%d %d\n", colour_here(GREEN), colour_there_of(9));
	printf("%d\n", opaque_value(opaque_same(opaque_new())));
	return 0;
}
#endif
