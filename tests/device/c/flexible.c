/* SPDX-License-Identifier: Apache-2.0 */
/* Structs with a flexible array at the end. */
#include <stdint.h>
#include <string.h>

struct line {
	int32_t n;
	int32_t tail[];
};
struct rows {
	int32_t n;
	int32_t *rows[];
};
struct names {
	int32_t n;
	const char *names[];
};
struct functions {
	int32_t n;
	int (*called[])(int x);
};
struct parts {
	int32_t n;
	struct {
		int32_t *at;
		int32_t gain;
	} part[];
};
struct text {
	int32_t n;
	char text[];
};
struct outer {
	int32_t k;
	struct line line;
};

struct line known = {3, {1, 2, 3}};
static struct text told = {2, "hello"};

int32_t line_sum(const struct line *l)
{
	int32_t sum = 0;

	for (int i = 0; i < l->n; i++) {
		sum += l->tail[i];
	}
	return sum;
}

int32_t known_sum(void)
{
	return line_sum(&known);
}

struct line *line_at(void)
{
	return &known;
}

void rows_turn(struct rows *r)
{
	int32_t *first = r->rows[0];

	first[0] *= 2;
	r->rows[0] = r->rows[1];
	r->rows[1] = first;
}

char name_end(const struct names *s)
{
	return s->names[s->n - 1][0];
}

int twice(int x)
{
	return 2 * x;
}

int function_last(const struct functions *f, int x)
{
	return f->called[f->n - 1](x);
}

int32_t parts_sum(const struct parts *p)
{
	int32_t sum = 0;

	for (int i = 0; i < p->n; i++) {
		sum += p->part[i].at[0] * p->part[i].gain;
	}
	return sum;
}

int text_size(const struct text *t)
{
	return (int)strlen(t->text);
}

int told_size(void)
{
	return text_size(&told);
}

int32_t outer_sum(const struct outer *o)
{
	return line_sum(&o->line);
}

int32_t first_of(struct line l)
{
	return l.n;
}
