/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The frame reader turns received bytes into payloads, and into events for the begin and the end of
 * a frame.
 */
#include <minrpc/frame.h>

#include <stddef.h>

/*
 * The meaning of the next bytes. Numbers are little-endian. Inside a frame ff ff stands for a byte
 * ff, and ff fe for nothing. A reader starts in HUNT.
 *
 *   state    bytes              next state                            event
 *   HUNT     any, all skipped   LENGTH after ff fd                    -
 *   LENGTH   4                  PAYLOAD, or CRC when it is 0          LENGTH
 *   PAYLOAD  the length's       CRC; PAYLOAD when the sink is full    -; FULL
 *   CRC      2                  HUNT                                  FRAME or BAD_CRC
 *   all but HUNT                LENGTH after ff fd                    SHORT
 *   all but HUNT                HUNT after ff and any other byte      ESCAPE
 */
enum state {
	HUNT,
	LENGTH,
	PAYLOAD,
	CRC,
};

void minrpc_reader_sink(struct minrpc_reader *reader, uint8_t *sink, uint32_t size)
{
	reader->sink = sink;
	if (reader->state == PAYLOAD) {
		uint32_t left = reader->left + reader->beyond;

		reader->left = left < size ? left : size;
		reader->beyond = left - reader->left;
	}
}

static void expect(struct minrpc_reader *reader, enum state state, uint32_t size)
{
	reader->state = (uint8_t)state;
	reader->left = size;
}

/* Ends the current part of the frame, of which all bytes have arrived. */
static enum minrpc_reader_event end_part(struct minrpc_reader *reader)
{
	enum minrpc_reader_event event = MINRPC_READER_MORE;

	switch (reader->state) {
	case LENGTH:
		event = MINRPC_READER_LENGTH;
		reader->length = reader->field;
		reader->sink = NULL;
		reader->beyond = 0U;
		expect(reader, PAYLOAD, reader->length);
		break;
	case PAYLOAD:
		if (reader->beyond != 0U) {
			return MINRPC_READER_FULL;
		}
		break;
	default:
		reader->state = HUNT;
		return reader->field >> 16 == reader->crc ? MINRPC_READER_FRAME
							  : MINRPC_READER_BAD_CRC;
	}
	if (reader->left == 0U) {
		expect(reader, CRC, sizeof(uint16_t));
	}
	return event;
}

/*
 * Returns the destination of the next byte, NULL when the byte is dropped. A field is stored so
 * that its last byte is the last byte of `field`.
 */
static uint8_t *next(struct minrpc_reader *reader)
{
	switch (reader->state) {
	case HUNT:
		return NULL;
	case PAYLOAD:
		return reader->sink;
	default:
		return (uint8_t *)(&reader->field + 1) - reader->left;
	}
}

/* Accounts for `size` bytes that were stored up to `end`. */
static void advance(struct minrpc_reader *reader, uint8_t *end, uint32_t size)
{
	if (reader->state == PAYLOAD) {
		reader->sink = end;
	}
	reader->left -= size;
}

/* Takes an unescaped byte of a frame. */
static void take(struct minrpc_reader *reader, uint8_t byte)
{
	uint8_t *to = next(reader);

	if (to != NULL) {
		*to++ = byte;
	}
	advance(reader, to, 1U);
}

/* Takes the byte after an ff. */
static enum minrpc_reader_event take_escaped(struct minrpc_reader *reader, uint8_t byte)
{
	enum minrpc_reader_event event = MINRPC_READER_SHORT;
	bool hunting = reader->state == HUNT;

	reader->escape = false;
	if (byte == MINRPC_NOP) {
		return MINRPC_READER_MORE;
	}
	if (byte == MINRPC_ESCAPE) {
		/* Outside a frame the second ff may be the first byte of ff fd. */
		reader->escape = hunting;
		take(reader, byte);
		return MINRPC_READER_MORE;
	}
	if (byte == MINRPC_START) {
		reader->crc =
			minrpc_crc16(minrpc_crc16(MINRPC_CRC_INIT, MINRPC_ESCAPE), MINRPC_START);
		expect(reader, LENGTH, sizeof(uint32_t));
	} else {
		reader->state = HUNT;
		event = MINRPC_READER_ESCAPE;
	}
	return hunting ? MINRPC_READER_MORE : event;
}

/*
 * Takes one byte: between frames, after an ff, or without a sink. Such bytes are rare, and not
 * inlining saves flash.
 */
static __attribute__((noinline)) enum minrpc_reader_event take_byte(struct minrpc_reader *reader,
								    uint8_t byte)
{
	if (reader->state != CRC) {
		reader->crc = minrpc_crc16(reader->crc, byte);
	}
	if (reader->escape) {
		return take_escaped(reader, byte);
	}
	if (byte == MINRPC_ESCAPE) {
		reader->escape = true;
	} else {
		take(reader, byte);
	}
	return MINRPC_READER_MORE;
}

/*
 * Takes one byte or more, up to the first ff and including it; less, where only a later call finds
 * the ff. It also stores the ff, which the next byte overwrites. Returns the end of the bytes
 * taken.
 */
static const uint8_t *take_run(struct minrpc_reader *reader, uint8_t *to, const uint8_t *data,
			       const uint8_t *end)
{
	const uint8_t *at = data;
	uint16_t crc = reader->crc;
	uint32_t taken;
	uint8_t byte = 0U;

	if (reader->left < (uint32_t)(end - at)) {
		end = at + reader->left;
	}
	at = minrpc_copy_run(&to, at, end, &crc, &byte);
	taken = (uint32_t)(at - data);
	if (byte == MINRPC_ESCAPE) {
		reader->escape = true;
		to--;
		taken--;
	}
	if (reader->state != CRC) {
		reader->crc = crc;
	}
	advance(reader, to, taken);
	return at;
}

enum minrpc_reader_event minrpc_reader_feed(struct minrpc_reader *reader, const uint8_t **data,
					    uint32_t *size)
{
	enum minrpc_reader_event event = MINRPC_READER_MORE;
	const uint8_t *at = *data;
	const uint8_t *end = at + *size;

	while (at != end && event == MINRPC_READER_MORE) {
		uint8_t *to = next(reader);

		if (to != NULL && !reader->escape) {
			at = take_run(reader, to, at, end);
		} else {
			event = take_byte(reader, *at++);
		}
		if (event == MINRPC_READER_MORE && reader->left == 0U && reader->state != HUNT) {
			event = end_part(reader);
		}
	}
	*data = at;
	*size = (uint32_t)(end - at);
	return event;
}
