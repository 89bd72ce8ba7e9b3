/* SPDX-License-Identifier: Apache-2.0 */
/* Structs with an unusual layout, and functions that write to const memory. */
#include <stdint.h>

struct __attribute__((packed)) packet {
	uint8_t kind;
	uint32_t length;
	uint16_t crc;
};

struct bits {
	unsigned int low: 3;
	signed int middle: 6;
	unsigned int: 7;
	unsigned int high: 10;
	uint8_t tail;
};

union number {
	uint32_t whole;
	uint8_t bytes[4];
	float real;
};

struct tagged {
	int which;
	union number number;
	struct {
		int16_t x, y;
	};
};

struct packet swapped(struct packet p)
{
	return (struct packet){.kind = p.kind, .length = p.crc, .crc = (uint16_t)p.length};
}

uint32_t total(const struct packet *packets, int count)
{
	uint32_t sum = 0;

	for (int i = 0; i < count; i++) {
		sum += packets[i].length;
	}
	return sum;
}

struct bits turned(struct bits b)
{
	return (struct bits){
		.low = b.low ^ 7, .middle = -b.middle, .high = b.high + 1, .tail = b.tail};
}

uint32_t bits_of(union number n)
{
	return n.whole;
}

union number number_of(float real)
{
	return (union number){.real = real};
}

void move(struct tagged *t)
{
	t->which++;
	t->number.bytes[3] = 0x40;
	t->x = t->y;
}

int spoil_constant(const int16_t *x, int at)
{
	((int16_t *)x)[at] = 99;
	return x[0];
}

int spoil_struct(const struct tagged *t)
{
	((struct tagged *)t)->which = -1;
	return 0;
}

void spoil_and_write(const int16_t *x, int16_t *y, int at)
{
	((int16_t *)x)[at]++;
	y[0] = x[0];
}

__attribute__((visibility("hidden"))) int hidden(int x)
{
	return x + 1;
}

int seen(int x)
{
	return hidden(x) * 2;
}

/* A list whose links are in its items, and a list whose elements begin like another struct. */
struct link {
	struct link *next;
};

struct item {
	int value;
	struct link link;
};

struct list {
	struct link *first;
};

void push(struct list *list, struct item *item)
{
	item->link.next = list->first;
	list->first = &item->link;
}

void link_of(struct link **out, struct item *item)
{
	out[0] = &item->link;
}

int sum_of(const struct list *list)
{
	int sum = 0;

	for (struct link *at = list->first; at != 0; at = at->next) {
		sum += ((struct item *)((char *)at - __builtin_offsetof(struct item, link)))->value;
	}
	return sum;
}

struct base {
	int kind;
	struct base *next;
};

struct file {
	int kind;
	struct base *next;
	int position;
};

void attach(struct base *head, struct file *file)
{
	file->kind = 5;
	file->next = head->next;
	head->next = (struct base *)file;
}

int kinds(const struct base *head)
{
	int sum = 0;

	for (const struct base *at = head->next; at != 0; at = at->next) {
		sum += at->kind;
	}
	return sum;
}

struct window {
	int16_t *begin;
	int16_t *at;
};

int next_of(struct window *window)
{
	return *window->at++;
}

void open_window(struct window *window, int16_t *values)
{
	window->begin = values;
	window->at = values + 1;
}
