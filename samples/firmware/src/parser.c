/* SPDX-License-Identifier: Apache-2.0 */
#include "parser.h"

/* The frame's length; 0 when there is none. */
static uint32_t take(const uint8_t *at, uint32_t left, struct frame *frame)
{
	uint8_t sum = 0;

	if (left < 3 || (at[0] != KIND_SET && at[0] != KIND_GET) || at[1] > 8 ||
	    left < 3u + at[1]) {
		return 0;
	}
	for (uint32_t i = 0; i < 2u + at[1]; i++) {
		sum += at[i];
	}
	if (sum != at[2 + at[1]]) {
		return 0;
	}
	*frame = (struct frame){.kind = (enum kind)at[0], .size = at[1]};
	for (uint32_t i = 0; i < at[1]; i++) {
		frame->data[i] = at[2 + i];
	}
	return 3u + at[1];
}

uint32_t parse(const uint8_t *bytes, uint32_t n, on_frame *seen)
{
	uint32_t lost = 0;

	for (uint32_t at = 0; at < n;) {
		struct frame frame;
		uint32_t size = take(bytes + at, n - at, &frame);

		if (size != 0) {
			seen(&frame);
		}
		lost += size == 0;
		at += size != 0 ? size : 1;
	}
	return lost;
}
