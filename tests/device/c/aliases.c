/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions whose arguments point to the same memory, or into one another.
 */
#include <stdint.h>

struct ring {
	uint8_t *rd, *wr, *begin;
	int32_t count;
};
struct item {
	int32_t x, y;
};
struct box {
	struct item first;
	uint8_t bytes[4];
	struct item items[3];
	struct item *current;
	int32_t last;
};
struct link {
	int32_t value;
	struct link *next;
};

void changed(struct item *a, struct item *b);
void member_changed(struct box *a, struct item *b, uint8_t *bytes, int32_t n);
void chained(struct link *first, struct link *other, const struct link *same);
int32_t asked(int32_t value);

void twice(uint8_t *a, uint8_t *b)
{
	a[0] = 1;
	b[1] = (uint8_t)(a[0] + 1);
}

int32_t put(struct ring *ring, uint8_t value)
{
	*ring->wr++ = value;
	ring->count++;
	return (int32_t)(ring->wr - ring->begin);
}

int32_t inside(struct box *box, struct item *item)
{
	box->last = 1;
	item->x = 7;
	item->y = box->first.x + box->items[1].x;
	return (int32_t)((char *)item - (char *)box);
}

int32_t filled(struct box *box, uint8_t *bytes)
{
	bytes[0] = 5;
	box->bytes[1] = (uint8_t)(bytes[0] + 1);
	return bytes[1];
}

int32_t step(struct box *box)
{
	box->current->x += 10;
	box->current++;
	return box->items[1].x;
}

int32_t row(struct item *items, int32_t n, struct item *one)
{
	one->x = 3;
	items[0].y = one->x + n;
	return items[n - 1].x;
}

int32_t apart(const uint8_t *a, const uint8_t *b)
{
	return (int32_t)(b - a);
}

void only_read(const struct box *box, struct item *item)
{
	item->x = 1;
	((struct box *)box)->last = 9;
}

int32_t summed(struct item by_value, struct item *item)
{
	item->x = 40;
	return by_value.x + item->x;
}

int32_t total(struct link *links, int32_t n)
{
	int32_t sum = 0;

	for (int32_t i = 0; i < n; i++) {
		sum += links[i].value + (links[i].next ? links[i].next->value : 0);
		if (links[i].next) {
			links[i].next->value++;
		}
	}
	return sum;
}

int32_t swapped(int32_t **a, int32_t **b)
{
	int32_t *held = a[0];

	a[0] = a[1];
	a[1] = held;
	return *b[0];
}

int32_t fakes(int32_t x, int32_t y)
{
	struct item item = {x, y};

	changed(&item, &item);
	return item.x * 100 + item.y;
}

int32_t fakes_inside(int32_t n)
{
	struct box box = {.bytes = {1, 2, 3, 4}};

	member_changed(&box, &box.items[1], box.bytes, n);
	return box.items[1].x * 10000 + box.items[2].y * 1000 + box.last * 100 + box.bytes[0] * 10 +
	       box.bytes[1];
}

int32_t raised(struct link *one)
{
	return one->value++;
}

int32_t fakes_chain(void)
{
	struct link a = {.value = 1}, b = {.value = 2, .next = &a};

	chained(&a, &b, &a);
	return a.value * 10 + b.value;
}

void meanwhile(int32_t *values, int32_t n)
{
	values[0] = asked(n);
}

int32_t crashes(uint8_t *a, uint8_t *b)
{
	a[0] = 9;
	b[1] = 9;
	__builtin_trap();
	return 0;
}
