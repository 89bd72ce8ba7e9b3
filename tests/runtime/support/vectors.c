/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static const char *row_name = "";

const char *vector_event(enum minrpc_reader_event event)
{
	switch (event) {
	case MINRPC_READER_FRAME:
		return "frame:";
	case MINRPC_READER_BAD_CRC:
		return "crc:";
	case MINRPC_READER_SHORT:
		return "short:";
	default:
		return "escape:";
	}
}

static void split(char *line, struct vector_row *row)
{
	row->kind = strtok(line, " \n");
	row->name = strtok(NULL, " \n");
	row->count = 0U;
	for (char *field = strtok(NULL, " \n"); field != NULL; field = strtok(NULL, " \n")) {
		CHECK(row->count < VECTOR_FIELDS_MAX);
		row->fields[row->count++] = field;
	}
}

void vectors_each(const char *kind, void (*check)(const struct vector_row *row))
{
	FILE *table = fopen(VECTORS_TABLE, "r");
	char *line = NULL;
	size_t capacity = 0U;
	uint32_t rows = 0U;

	CHECK(table != NULL);
	while (getline(&line, &capacity, table) >= 0) {
		struct vector_row row;

		if (line[0] == '#' || line[0] == '\n') {
			continue;
		}
		split(line, &row);
		if (strcmp(row.kind, kind) == 0) {
			row_name = row.name;
			(void)printf("%s %s\n", kind, row.name);
			check(&row);
			rows++;
		}
	}
	free(line);
	(void)fclose(table);
	CHECK(rows != 0U);
}

static int digit(char c)
{
	if (c >= '0' && c <= '9') {
		return c - '0';
	}
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* hh or hh*n at *at; appended. */
static void take_hex(const char **at, struct bytes *out)
{
	int high = digit((*at)[0]);
	int low = high < 0 ? -1 : digit((*at)[1]);
	unsigned long times = 1U;

	if (low < 0) {
		CHECK_FAIL("%s: no part of bytes: %.12s", row_name, *at);
	}
	*at += 2;
	if (**at == '*') {
		char *end;

		times = strtoul(*at + 1, &end, 10);
		*at = end;
	}
	while (times-- != 0U) {
		put_u8(out, (uint8_t)(high << 4 | low));
	}
}

/* "text" at *at; appended. */
static void take_text(const char **at, struct bytes *out)
{
	const char *end = strchr(*at + 1, '"');

	CHECK(end != NULL);
	put(out, *at + 1, (uint32_t)(end - *at) - 1U);
	*at = end + 1;
}

void vector_bytes(const char *field, const struct vector_names *names, struct bytes *out)
{
	const char *at = strcmp(field, "-") == 0 ? "" : field;

	while (*at != '\0') {
		if (*at == '_') {
			at++;
		} else if (*at == '"') {
			take_text(&at, out);
		} else if (*at == '$') {
			CHECK(names != NULL && names->known[at[1] - 'a']);
			put(out, names->value[at[1] - 'a'], 8U);
			at += 2;
		} else {
			take_hex(&at, out);
		}
	}
}

static void expect(const uint8_t *data, uint32_t size, uint32_t at, const uint8_t *expected,
		   uint32_t count)
{
	if (count > size - at || memcmp(data + at, expected, count) != 0) {
		CHECK_FAIL("%s: another answer at byte %u of %u", row_name, (unsigned int)at,
			   (unsigned int)size);
	}
}

/* $x: known bytes, or bytes that get their name now. */
static void match_name(char name, const uint8_t *data, uint32_t size, uint32_t at,
		       struct vector_names *names)
{
	uint8_t *value = names->value[name - 'a'];

	CHECK(size - at >= 8U);
	if (!names->known[name - 'a']) {
		names->known[name - 'a'] = true;
		memcpy(value, data + at, 8U);
	}
	expect(data, size, at, value, 8U);
}

void vector_match(const char *field, const uint8_t *data, uint32_t size, struct vector_names *names)
{
	const char *at = strcmp(field, "-") == 0 ? "" : field;
	struct bytes literal = {0};
	uint32_t done = 0U;

	while (*at != '\0') {
		if (*at == '_') {
			at++;
		} else if (*at == '~') {
			bytes_free(&literal);
			return;
		} else if (*at == '.') {
			CHECK(done < size && at[1] == '.');
			done++;
			at += 2;
		} else if (*at == '$') {
			match_name(at[1], data, size, done, names);
			done += 8U;
			at += 2;
		} else {
			literal.size = 0U;
			if (*at == '"') {
				take_text(&at, &literal);
			} else {
				take_hex(&at, &literal);
			}
			expect(data, size, done, literal.data, literal.size);
			done += literal.size;
		}
	}
	bytes_free(&literal);
	CHECK_EQ(done, size);
}
