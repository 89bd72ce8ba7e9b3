/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The frame writer turns a payload into bytes on the wire. It gathers them in a buffer before it
 * calls the port.
 */
#include <minrpc/frame.h>

/* Here and in replies numbers are sent as they lie in memory. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian");

static void flush(struct minrpc_writer *writer)
{
	if (writer->fill != 0U && !writer->failed &&
	    writer->write(writer->context, writer->buffer, writer->fill) < 0) {
		writer->failed = true;
	}
	writer->fill = 0U;
}

/*
 * Doubles each ff. A piece ends at the end of the data or of the buffer, before an ff, or behind an
 * ff, which the next piece repeats.
 */
void minrpc_writer_put(struct minrpc_writer *writer, const void *data, uint32_t size)
{
	const uint8_t *at = data;
	uint16_t crc = writer->crc;
	bool doubled = false;

	while (size != 0U) {
		uint8_t *to = writer->buffer + writer->fill;
		uint32_t piece = writer->capacity - writer->fill;
		const uint8_t *start = at;
		const uint8_t *end;
		uint8_t byte = 0U;

		if (piece == 0U) {
			flush(writer);
			continue;
		}
		end = at + (piece < size ? piece : size);
		at = minrpc_copy_run(&to, at, end, &crc, &byte);
		writer->fill += (uint32_t)(at - start);
		if (byte == MINRPC_ESCAPE) {
			doubled = !doubled;
			at -= doubled;
		}
		size -= (uint32_t)(at - start);
	}
	writer->crc = crc;
}

void minrpc_writer_begin(struct minrpc_writer *writer, uint32_t length)
{
	const struct {
		uint8_t unused[2];
		uint8_t nop;
		uint8_t start;
		uint32_t length;
	} head = {{0U, 0U}, MINRPC_NOP, MINRPC_START, length};

	writer->failed = false;
	writer->open = true;
	if (writer->fresh) {
		minrpc_writer_put(writer, &head.nop, 1U);
	}
	if (writer->fill == writer->capacity) {
		flush(writer);
	}
	/* This ff is not doubled. */
	writer->buffer[writer->fill++] = MINRPC_ESCAPE;
	writer->crc = minrpc_crc16(MINRPC_CRC_INIT, MINRPC_ESCAPE);
	minrpc_writer_put(writer, &head.start, 5U);
}

int minrpc_writer_end(struct minrpc_writer *writer)
{
	const uint16_t crc = writer->crc;

	minrpc_writer_put(writer, &crc, sizeof(crc));
	flush(writer);
	writer->open = false;
	writer->fresh = writer->failed;
	return writer->failed ? -1 : 0;
}
