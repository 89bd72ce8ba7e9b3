/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PARSER_H_
#define PARSER_H_

#include <stdint.h>

enum kind {
	KIND_SET = 1,
	KIND_GET = 2
};

/* On the wire: kind, number of data bytes, data, and the sum of all of these as a byte. */
struct frame {
	enum kind kind;
	uint8_t size;
	uint8_t data[8];
};

typedef void on_frame(const struct frame *frame);

/* Calls `seen` for each good frame. Returns the number of bytes outside frames. */
uint32_t parse(const uint8_t *bytes, uint32_t n, on_frame *seen);

#endif
