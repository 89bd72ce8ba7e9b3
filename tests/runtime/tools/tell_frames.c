/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Reads streams from standard input, each a u32 length and its bytes, and prints a line for each:
 * the events of the runtime's reader, in the words of the table of wire cases: "frame:HEX" and so
 * on.
 */
#include <stdio.h>
#include <stdlib.h>

#include <minrpc/frame.h>

#define STREAM_MAX 65536U

/* The event's name in the table of wire cases. */
static const char *event_name(enum minrpc_reader_event event)
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

static void print_event(enum minrpc_reader_event event, const uint8_t *payload, const uint8_t *end)
{
	(void)printf(" %s", event_name(event));
	while (payload < end) {
		(void)printf("%02x", *payload++);
	}
}

static void tell(const uint8_t *data, uint32_t size)
{
	static uint8_t payload[STREAM_MAX];
	struct minrpc_reader reader = {0};

	while (size != 0U) {
		enum minrpc_reader_event event = minrpc_reader_feed(&reader, &data, &size);

		if (event == MINRPC_READER_LENGTH) {
			minrpc_reader_sink(&reader, payload, UINT32_MAX);
		} else if (event != MINRPC_READER_MORE) {
			print_event(event, payload, reader.sink == NULL ? payload : reader.sink);
			reader.sink = NULL;
		}
	}
	(void)printf("\n");
}

int main(void)
{
	static uint8_t stream[STREAM_MAX];
	uint32_t size;

	while (fread(&size, sizeof(size), 1U, stdin) == 1U) {
		if (size > sizeof(stream) || fread(stream, 1U, size, stdin) != size) {
			return EXIT_FAILURE;
		}
		tell(stream, size);
	}
	return EXIT_SUCCESS;
}
