/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include <minrpc/frame.h>

#include <stddef.h>

enum state {
	HUNT, /* 0: where a reader starts */
	LENGTH,
	PAYLOAD,
	CRC,
};

uint16_t minrpc_crc16(uint16_t crc, uint8_t byte)
{
	/* The eight polynomial steps folded: no table, and as fast as one of 32 bytes. */
	uint32_t x = (uint32_t)(crc >> 8) ^ byte;

	x ^= x >> 4;
	return (uint16_t)(((uint32_t)crc << 8) ^ (x << 12) ^ (x << 5) ^ x);
}

void minrpc_reader_sink(struct minrpc_reader *reader, uint8_t *sink, uint32_t size)
{
	reader->sink = sink;
	reader->sink_left = size;
}

static void expect_field(struct minrpc_reader *reader, enum state state, uint32_t size)
{
	reader->state = (uint8_t)state;
	reader->left = size;
}

static void start_frame(struct minrpc_reader *reader)
{
	reader->crc = minrpc_crc16(minrpc_crc16(MINRPC_CRC_INIT, MINRPC_ESCAPE), MINRPC_START);
	reader->length = 0U;
	expect_field(reader, LENGTH, sizeof(uint32_t));
}

static enum minrpc_reader_event end_length(struct minrpc_reader *reader)
{
	reader->length = reader->field;
	minrpc_reader_sink(reader, NULL, UINT32_MAX);
	expect_field(reader, PAYLOAD, reader->length);
	if (reader->length == 0U) {
		expect_field(reader, CRC, sizeof(uint16_t));
	}
	return MINRPC_READER_LENGTH;
}

static enum minrpc_reader_event end_crc(struct minrpc_reader *reader)
{
	reader->state = HUNT;
	return reader->field >> 16 == reader->crc ? MINRPC_READER_FRAME : MINRPC_READER_BAD_CRC;
}

static enum minrpc_reader_event take_payload(struct minrpc_reader *reader, uint8_t byte)
{
	if (reader->sink != NULL) {
		*reader->sink++ = byte;
	}
	reader->sink_left--;
	if (--reader->left == 0U) {
		expect_field(reader, CRC, sizeof(uint16_t));
		return MINRPC_READER_MORE;
	}
	return reader->sink_left == 0U ? MINRPC_READER_FULL : MINRPC_READER_MORE;
}

static enum minrpc_reader_event take(struct minrpc_reader *reader, uint8_t byte)
{
	if (reader->state == HUNT) {
		return MINRPC_READER_MORE;
	}
	if (reader->state == PAYLOAD) {
		return take_payload(reader, byte);
	}
	reader->field = (reader->field >> 8) | ((uint32_t)byte << 24);
	if (--reader->left != 0U) {
		return MINRPC_READER_MORE;
	}
	return reader->state == LENGTH ? end_length(reader) : end_crc(reader);
}

/* The byte after an ff. */
static enum minrpc_reader_event take_escaped(struct minrpc_reader *reader, uint8_t byte)
{
	enum minrpc_reader_event event = MINRPC_READER_SHORT;
	bool hunting = reader->state == HUNT;

	reader->escape = false;
	if (byte == MINRPC_NOP) {
		return MINRPC_READER_MORE;
	}
	if (byte == MINRPC_ESCAPE) {
		/* Outside a frame a repeated ff may still be the first byte of a packet start. */
		reader->escape = hunting;
		return take(reader, byte);
	}
	if (byte == MINRPC_START) {
		start_frame(reader);
	} else {
		reader->state = HUNT;
		event = MINRPC_READER_ESCAPE;
	}
	return hunting ? MINRPC_READER_MORE : event;
}

static enum minrpc_reader_event take_byte(struct minrpc_reader *reader, uint8_t byte)
{
	if (reader->state == LENGTH || reader->state == PAYLOAD) {
		reader->crc = minrpc_crc16(reader->crc, byte);
	}
	if (reader->escape) {
		return take_escaped(reader, byte);
	}
	if (byte == MINRPC_ESCAPE) {
		reader->escape = true;
		return MINRPC_READER_MORE;
	}
	return take(reader, byte);
}

/* A run of plain payload bytes, where the time goes. Returns where it ends. */
static const uint8_t *take_run(struct minrpc_reader *reader, const uint8_t *data, const uint8_t *end)
{
	uint32_t most = reader->left < reader->sink_left ? reader->left : reader->sink_left;
	const uint8_t *at = data;
	uint16_t crc = reader->crc;
	uint8_t *sink = reader->sink;

	/* The last byte before an event goes the long way. */
	most -= 1U;
	if (most < (uint32_t)(end - at)) {
		end = at + most;
	}
	while (at < end && *at != MINRPC_ESCAPE) {
		uint8_t byte = *at++;

		if (sink != NULL) {
			*sink++ = byte;
		}
		crc = minrpc_crc16(crc, byte);
	}
	reader->crc = crc;
	reader->sink = sink;
	reader->sink_left -= (uint32_t)(at - data);
	reader->left -= (uint32_t)(at - data);
	return at;
}

enum minrpc_reader_event minrpc_reader_feed(struct minrpc_reader *reader, const uint8_t **data,
					    uint32_t *size)
{
	enum minrpc_reader_event event = MINRPC_READER_MORE;
	const uint8_t *at = *data;
	const uint8_t *end = at + *size;

	while (at != end && event == MINRPC_READER_MORE) {
		if (reader->state == PAYLOAD && !reader->escape) {
			at = take_run(reader, at, end);
		}
		if (at != end) {
			event = take_byte(reader, *at++);
		}
	}
	*data = at;
	*size = (uint32_t)(end - at);
	return event;
}
