/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include <minrpc/frame.h>

#include <stddef.h>

enum state {
	HUNT,
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

void minrpc_reader_init(struct minrpc_reader *reader)
{
	*reader = (struct minrpc_reader){.state = HUNT};
}

void minrpc_reader_sink(struct minrpc_reader *reader, uint8_t *sink, uint32_t size)
{
	reader->sink = sink;
	reader->sink_left = size;
}

static void start_frame(struct minrpc_reader *reader)
{
	reader->crc = minrpc_crc16(minrpc_crc16(MINRPC_CRC_INIT, MINRPC_ESCAPE), MINRPC_START);
	reader->state = LENGTH;
	reader->length = 0U;
	reader->left = sizeof(uint32_t);
}

static enum minrpc_reader_event take_length(struct minrpc_reader *reader, uint8_t byte)
{
	reader->length |= (uint32_t)byte << (8U * (sizeof(uint32_t) - reader->left));
	if (--reader->left != 0U) {
		return MINRPC_READER_MORE;
	}
	reader->left = reader->length;
	reader->state = PAYLOAD;
	reader->crc_field = 0U;
	minrpc_reader_sink(reader, NULL, UINT32_MAX);
	if (reader->length == 0U) {
		reader->state = CRC;
		reader->left = sizeof(uint16_t);
	}
	return MINRPC_READER_LENGTH;
}

static enum minrpc_reader_event take_payload(struct minrpc_reader *reader, uint8_t byte)
{
	if (reader->sink != NULL) {
		*reader->sink++ = byte;
	}
	reader->sink_left--;
	if (--reader->left == 0U) {
		reader->state = CRC;
		reader->left = sizeof(uint16_t);
		return MINRPC_READER_MORE;
	}
	return reader->sink_left == 0U ? MINRPC_READER_FULL : MINRPC_READER_MORE;
}

static enum minrpc_reader_event take_crc(struct minrpc_reader *reader, uint8_t byte)
{
	reader->crc_field = (uint16_t)((reader->crc_field >> 8) | ((uint32_t)byte << 8));
	if (--reader->left != 0U) {
		return MINRPC_READER_MORE;
	}
	reader->state = HUNT;
	return reader->crc_field == reader->crc ? MINRPC_READER_FRAME : MINRPC_READER_BAD_CRC;
}

static enum minrpc_reader_event take(struct minrpc_reader *reader, uint8_t byte)
{
	switch (reader->state) {
	case LENGTH:
		return take_length(reader, byte);
	case PAYLOAD:
		return take_payload(reader, byte);
	case CRC:
		return take_crc(reader, byte);
	default:
		return MINRPC_READER_MORE;
	}
}

/* The byte after an ff. */
static enum minrpc_reader_event take_escaped(struct minrpc_reader *reader, uint8_t byte)
{
	uint8_t state = reader->state;

	/* Outside a frame a repeated ff may still be the first byte of a packet start. */
	reader->escape = state == HUNT && byte == MINRPC_ESCAPE;
	if (byte == MINRPC_START) {
		start_frame(reader);
		return state == HUNT ? MINRPC_READER_MORE : MINRPC_READER_SHORT;
	}
	if (byte == MINRPC_NOP || state == HUNT) {
		return MINRPC_READER_MORE;
	}
	if (byte == MINRPC_ESCAPE) {
		return take(reader, byte);
	}
	reader->state = HUNT;
	return MINRPC_READER_ESCAPE;
}

/* A run of plain payload bytes, where the time goes. */
static void take_run(struct minrpc_reader *reader, const uint8_t **data, uint32_t *size)
{
	const uint8_t *at = *data;
	uint32_t most = reader->left < reader->sink_left ? reader->left : reader->sink_left;
	const uint8_t *end;
	uint16_t crc = reader->crc;
	uint8_t *sink = reader->sink;

	/* The last byte before an event goes the long way. */
	most -= 1U;
	end = at + (most < *size ? most : *size);
	while (at < end && *at != MINRPC_ESCAPE) {
		crc = minrpc_crc16(crc, *at);
		if (sink != NULL) {
			*sink++ = *at;
		}
		at++;
	}
	most = (uint32_t)(at - *data);
	reader->crc = crc;
	reader->sink = sink;
	reader->sink_left -= most;
	reader->left -= most;
	*size -= most;
	*data = at;
}

enum minrpc_reader_event minrpc_reader_feed(struct minrpc_reader *reader, const uint8_t **data,
					    uint32_t *size)
{
	while (*size != 0U) {
		enum minrpc_reader_event event;
		uint8_t byte;

		if (reader->state == PAYLOAD && !reader->escape) {
			take_run(reader, data, size);
			if (*size == 0U) {
				break;
			}
		}
		byte = *(*data)++;
		(*size)--;
		if (reader->state == LENGTH || reader->state == PAYLOAD) {
			reader->crc = minrpc_crc16(reader->crc, byte);
		}
		if (reader->escape) {
			event = take_escaped(reader, byte);
		} else if (byte == MINRPC_ESCAPE) {
			reader->escape = true;
			continue;
		} else {
			event = take(reader, byte);
		}
		if (event != MINRPC_READER_MORE) {
			return event;
		}
	}
	return MINRPC_READER_MORE;
}
