/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include <minrpc/frame.h>

static void flush(struct minrpc_writer *writer)
{
	if (writer->fill != 0U && !writer->failed &&
	    writer->write(writer->context, writer->buffer, writer->fill) < 0) {
		writer->failed = true;
	}
	writer->fill = 0U;
}

static void put_raw(struct minrpc_writer *writer, uint8_t byte)
{
	if (writer->fill == writer->capacity) {
		flush(writer);
	}
	writer->buffer[writer->fill++] = byte;
	writer->crc = minrpc_crc16(writer->crc, byte);
}

void minrpc_writer_put(struct minrpc_writer *writer, const void *data, uint32_t size)
{
	const uint8_t *at = data;

	/* Counted, as no data may come as NULL. */
	for (; size != 0U; size--, at++) {
		put_raw(writer, *at);
		if (*at == MINRPC_ESCAPE) {
			put_raw(writer, MINRPC_ESCAPE);
		}
	}
}

void minrpc_writer_begin(struct minrpc_writer *writer, uint32_t length)
{
	const uint8_t field[] = {(uint8_t)length, (uint8_t)(length >> 8), (uint8_t)(length >> 16),
				 (uint8_t)(length >> 24)};

	writer->failed = false;
	writer->open = true;
	if (writer->fresh) {
		put_raw(writer, MINRPC_NOP);
	}
	writer->crc = MINRPC_CRC_INIT;
	put_raw(writer, MINRPC_ESCAPE);
	put_raw(writer, MINRPC_START);
	minrpc_writer_put(writer, field, sizeof(field));
}

int minrpc_writer_end(struct minrpc_writer *writer)
{
	const uint8_t crc[] = {(uint8_t)writer->crc, (uint8_t)(writer->crc >> 8)};

	minrpc_writer_put(writer, crc, sizeof(crc));
	flush(writer);
	writer->open = false;
	writer->fresh = writer->failed;
	return writer->failed ? -1 : 0;
}
