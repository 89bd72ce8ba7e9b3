/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * microTVM's transport framing: ff fd, u32 length, payload, u16 CRC, with ff escaped.
 */
#ifndef MINRPC_FRAME_H_
#define MINRPC_FRAME_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MINRPC_ESCAPE 0xffU
#define MINRPC_NOP    0xfeU
#define MINRPC_START  0xfdU

#define MINRPC_CRC_INIT 0xffffU

/**
 * CRC-16 with polynomial 0x1021 and no reflection, over the bytes as they are on the wire. In line,
 * as each byte of a frame goes through it; a table of 32 bytes would not be faster than the eight
 * polynomial steps folded.
 */
static inline uint16_t minrpc_crc16(uint16_t crc, uint8_t byte)
{
	uint32_t x = (uint32_t)(crc >> 8) ^ byte;

	x ^= x >> 4;
	x ^= (x ^ x << 7) << 5;
	return (uint16_t)((uint32_t)crc << 8 ^ x);
}

/** CRC-32 as in IEEE 802.3 and zlib. Start with 0; feed the result back in to continue. */
uint32_t minrpc_crc32(uint32_t crc, const void *data, uint32_t size);

/* ------------------------------------------------------------------ reading */

enum minrpc_reader_event {
	MINRPC_READER_MORE,   /**< all input consumed, nothing to report */
	MINRPC_READER_LENGTH, /**< a frame begins, `length` is known: the owner sets the sink */
	/** the sink is full before the payload's end: the owner sets the next */
	MINRPC_READER_FULL,
	MINRPC_READER_FRAME, /**< a frame ended with a good CRC */
	MINRPC_READER_BAD_CRC,
	MINRPC_READER_SHORT,  /**< a new frame began before the last had ended */
	MINRPC_READER_ESCAPE, /**< ff followed by something else than fd, fe, ff */
};

/** All zero where it starts. Only `sink` and `length` are for the owner to read. */
struct minrpc_reader {
	uint8_t *sink;   /**< where the next byte of payload goes; NULL: count and discard */
	uint32_t length; /**< of the payload */
	/** bytes until the sink is full, or until the payload or the field being read ends */
	uint32_t left;
	uint32_t beyond; /**< payload bytes for which there is no sink yet */
	uint32_t field;  /**< length or CRC: its bytes come in at the top */
	uint16_t crc;    /**< of the frame so far */
	uint8_t state;
	bool escape; /**< the last byte was an ff, and what it means depends on the next */
};

/**
 * Takes bytes from *data until something is to be reported; *data and *size are advanced past what
 * was taken. Between LENGTH or FULL and the next call the owner gives the sink by
 * minrpc_reader_sink.
 */
enum minrpc_reader_event minrpc_reader_feed(struct minrpc_reader *reader, const uint8_t **data,
					    uint32_t *size);

void minrpc_reader_sink(struct minrpc_reader *reader, uint8_t *sink, uint32_t size);

/* ------------------------------------------------------------------ writing */

struct minrpc_writer {
	int (*write)(void *context, const uint8_t *data, uint32_t size);
	void *context;
	uint8_t *buffer; /**< bytes are gathered here, so that the port is not called for each */
	uint32_t capacity;
	uint32_t fill;
	uint16_t crc;
	/** nothing sent since reset or a broken frame: a lone fe ends an ff that was left */
	bool fresh;
	bool open;   /**< between begin and end */
	bool failed; /**< the port refused bytes of this frame */
};

/** For one that is all zero. */
static inline void
minrpc_writer_init(struct minrpc_writer *writer, uint8_t *buffer, uint32_t capacity,
		   int (*write)(void *context, const uint8_t *data, uint32_t size), void *context)
{
	writer->write = write;
	writer->context = context;
	writer->buffer = buffer;
	writer->capacity = capacity;
	writer->fresh = true;
}

/** A frame: begin with the payload's length, put exactly that many bytes, end. */
void minrpc_writer_begin(struct minrpc_writer *writer, uint32_t length);
void minrpc_writer_put(struct minrpc_writer *writer, const void *data, uint32_t size);
/**
 * Returns 0, or -1 when the port did not take the frame whole; the next frame then starts afresh.
 */
int minrpc_writer_end(struct minrpc_writer *writer);

/**
 * Drops the frame that is under way, if any: what of it has not been sent never is, and the next
 * starts afresh.
 */
static inline void minrpc_writer_abandon(struct minrpc_writer *writer)
{
	writer->open = false;
	writer->fresh = true;
	writer->fill = 0U;
}

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_FRAME_H_ */
