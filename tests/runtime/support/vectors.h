/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Reads the golden table of wire cases that the Python tests read too; its format is described at
 * its top.
 */
#ifndef VECTORS_H_
#define VECTORS_H_

#include <minrpc/frame.h>

#include "wire.h"

#define VECTOR_FIELDS_MAX 64U

struct vector_row {
	const char *kind;
	const char *name;
	const char *fields[VECTOR_FIELDS_MAX];
	uint32_t count;
};

/* Bytes that answers gave names to: $a to $z. */
struct vector_names {
	uint8_t value[26][8];
	bool known[26];
};

/* Runs `check` on each row of that kind; fails when there is none. A failure names the row. */
void vectors_each(const char *kind, void (*check)(const struct vector_row *row));

/* The table's prefix of such an event of a reader. */
const char *vector_event(enum minrpc_reader_event event);

/* Appends the bytes that `field` stands for. */
void vector_bytes(const char *field, const struct vector_names *names, struct bytes *out);

/* Fails unless the bytes match `field`; names its open parts. */
void vector_match(const char *field, const uint8_t *data, uint32_t size,
		  struct vector_names *names);

#endif /* VECTORS_H_ */
