/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes, cut in any way: the reader reports the same events for each way of cutting, the reader
 * reads back the writer's frames of them, and the device serves afterwards.
 */
#include <string.h>

#include "check.h"
#include "fuzz.h"

#define SINK 96U

/* All events of a reader, in bytes: event, length, the received part of the payload. */
struct story {
	struct minrpc_reader reader;
	struct bytes told;
	uint8_t sink[SINK];
};

static void tell(struct story *story, enum minrpc_reader_event event)
{
	uint32_t come =
		(uint32_t)(story->reader.sink == NULL ? 0 : story->reader.sink - story->sink);

	put_u8(&story->told, (uint8_t)event);
	put_u32(&story->told, story->reader.length);
	put_u32(&story->told, come);
	put(&story->told, story->sink, come);
	if (event == MINRPC_READER_LENGTH) {
		minrpc_reader_sink(&story->reader, story->sink, SINK);
	} else if (event == MINRPC_READER_FULL) {
		minrpc_reader_sink(&story->reader, NULL, UINT32_MAX);
	}
}

static void feed(struct story *story, const uint8_t *data, uint32_t size)
{
	while (size != 0U) {
		enum minrpc_reader_event event = minrpc_reader_feed(&story->reader, &data, &size);

		if (event != MINRPC_READER_MORE) {
			tell(story, event);
		}
	}
}

/* Pieces of 1 to 8 bytes. */
static void feed_in_pieces(struct story *story, const uint8_t *data, uint32_t size, uint32_t seed)
{
	while (size != 0U) {
		uint32_t piece = 1U + (seed >> 29);

		seed = seed * 1664525U + 1013904223U;
		piece = piece < size ? piece : size;
		feed(story, data, piece);
		data += piece;
		size -= piece;
	}
}

static void check_cuts(const uint8_t *data, uint32_t size, uint32_t seed)
{
	struct story whole = {0};
	struct story pieces = {0};

	whole.reader = (struct minrpc_reader){0};
	pieces.reader = (struct minrpc_reader){0};
	feed(&whole, data, size);
	feed_in_pieces(&pieces, data, size, seed);
	CHECK_EQ(whole.told.size, pieces.told.size);
	CHECK_MEM(pieces.told.data, whole.told.data, whole.told.size);
	bytes_free(&whole.told);
	bytes_free(&pieces.told);
}

static int collect(void *context, const uint8_t *data, uint32_t size)
{
	put(context, data, size);
	return 0;
}

static void check_round_trip(const uint8_t *data, uint32_t size, uint32_t seed)
{
	struct bytes wire = {0};
	struct bytes payload = {0};
	struct minrpc_writer writer = {0};
	uint8_t buffer[8];
	const uint8_t *at;

	minrpc_writer_init(&writer, buffer, 1U + (seed & 7U), collect, &wire);
	minrpc_writer_begin(&writer, size);
	minrpc_writer_put(&writer, data, size);
	CHECK_EQ(minrpc_writer_end(&writer), 0);
	at = wire.data;
	CHECK(take_frame(&at, wire.data + wire.size, &payload));
	CHECK_EQ(payload.size, size);
	CHECK_MEM(payload.data, data, size);
	CHECK(at == wire.data + wire.size);
	bytes_free(&payload);
	bytes_free(&wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, data + size};
	uint32_t seed = (uint32_t)input_u8(&input) << 24;
	struct bytes wire = {0};
	struct host *host;

	check_cuts(input.at, input_left(&input), seed);
	check_round_trip(input.at, input_left(&input), seed >> 24);
	host = fuzz_start();
	put(&wire, input.at, input_left(&input));
	host_give(host, &wire);
	fuzz_finish(host);
	return 0;
}
