/* SPDX-License-Identifier: Apache-2.0 */
/* The names of shapes.c, with other types. */
struct pt {
	float x, y;
};
enum colour {
	BLUE = 1,
	GREEN = 9
};
struct opaque {
	int value;
};

static struct opaque made = {42};

float pt_there(struct pt p)
{
	return p.x + 10 * p.y;
}

int colour_there(enum colour c)
{
	return 10 * c + (c == GREEN);
}

struct opaque *opaque_new(void)
{
	return &made;
}

int opaque_value(struct opaque *o)
{
	return o->value;
}

static int count = 100;

int counted_there(void)
{
	return count++;
}

#ifdef WITNESS
float pt_there_of(float x, float y)
{
	return pt_there((struct pt){x, y});
}

int colour_there_of(int c)
{
	return colour_there(c);
}
#endif
