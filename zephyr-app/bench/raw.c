/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "raw.h"

#include <string.h>

static const uint8_t done = '!';

static void echo(uint32_t left)
{
	while (left != 0U) {
		const uint8_t *data;
		uint32_t size = link_wait(&data);

		size = size < left ? size : left;
		link_write(data, size);
		link_consume(size);
		left -= size;
	}
}

/* Copies into `to`, unless it is NULL. */
static void take(uint8_t *to, uint32_t left)
{
	while (left != 0U) {
		const uint8_t *data;
		uint32_t size = link_wait(&data);

		size = size < left ? size : left;
		if (to != NULL) {
			memcpy(to, data, size);
			to += size;
		}
		link_consume(size);
		left -= size;
	}
}

static void give(const uint8_t *piece, uint32_t size, uint32_t left)
{
	while (left != 0U) {
		size = size < left ? size : left;
		link_write(piece, size);
		left -= size;
	}
}

void raw_run(const uint8_t *piece, uint32_t size)
{
	link_write(&done, 1U);
	for (;;) {
		uint8_t head[5];
		uint32_t count;

		take(head, sizeof(head));
		count = head[1] | (uint32_t)head[2] << 8 | (uint32_t)head[3] << 16 |
			(uint32_t)head[4] << 24;
		switch (head[0]) {
		case 'e':
			echo(count);
			break;
		case 's':
			take(NULL, count);
			link_write(&done, 1U);
			break;
		case 'g':
			give(piece, size, count);
			break;
		default:
			break;
		}
	}
}
