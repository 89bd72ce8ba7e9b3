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

#include <minrpc/unaligned.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MINRPC_ESCAPE 0xffU
#define MINRPC_NOP    0xfeU
#define MINRPC_START  0xfdU

#define MINRPC_CRC_INIT 0xffffU

/**
 * CRC-16 with polynomial 0x1021, not reflected, over the bytes as they are on the wire. Inlined,
 * since each byte of a frame needs it. The eight steps of the polynomial are folded, which is as
 * fast as a table of 32 bytes.
 */
static inline uint16_t minrpc_crc16(uint16_t crc, uint8_t byte)
{
	uint32_t x = (uint32_t)(crc >> 8) ^ byte;

	x ^= x >> 4;
	x ^= (x ^ x << 7) << 5;
	return (uint16_t)((uint32_t)crc << 8 ^ x);
}

/**
 * The CRC-16 of four bytes, the first at the top of `word`, in a quarter of the instructions: the
 * quotient of 32 bits by the polynomial, and from it the remainder.
 */
static inline uint32_t minrpc_crc16_of_four(uint32_t crc, uint32_t word)
{
	uint32_t x = word ^ crc << 16;

	/* 1 / (1 + a) is (1 + a)(1 + a^2)(1 + a^4) to 32 bits, where a = x^-4 + x^-11 + x^-16. */
	x ^= (x ^ x >> 5) >> 11 ^ x >> 4;
	x ^= (x ^ x >> 14) >> 8;
	x ^= x >> 16;
	return x ^ (x ^ x << 7) << 5;
}

/**
 * Copies bytes up to the first ff, by fours while none is ff. Returns the end of the bytes copied;
 * `*byte` is the last one if it was copied alone. Moves `*to` and `*crc` on.
 */
static inline const uint8_t *minrpc_copy_run(uint8_t **to, const uint8_t *at, const uint8_t *end,
					     uint16_t *crc, uint8_t *byte)
{
	uint8_t *next = *to;
	uint32_t sum = *crc;

	for (uint32_t words = (uint32_t)(end - at) / 4U; words != 0U; words--) {
		const uint32_t word = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
				      (uint32_t)at[2] << 8 | at[3];

		if (((0xfefefefeU - word) & word & 0x80808080U) != 0U) {
			break;
		}
		minrpc_put_u32(next, minrpc_get_u32(at));
		at += 4;
		next += 4;
		sum = minrpc_crc16_of_four(sum, word);
	}
	while (at != end && *byte != MINRPC_ESCAPE) {
		*byte = *at++;
		*next++ = *byte;
		sum = minrpc_crc16((uint16_t)sum, *byte);
	}
	*to = next;
	*crc = (uint16_t)sum;
	return at;
}

/** CRC-32 as in IEEE 802.3 and zlib. Start with 0; pass the last result to continue. */
uint32_t minrpc_crc32(uint32_t crc, const void *data, uint32_t size);

/* ------------------------------------------------------------------ reading */

enum minrpc_reader_event {
	MINRPC_READER_MORE,   /**< all input is consumed, there is no event */
	MINRPC_READER_LENGTH, /**< a frame begins and `length` is known: set the sink */
	/** the sink is full before the payload's end: set the next sink */
	MINRPC_READER_FULL,
	MINRPC_READER_FRAME, /**< a frame ended with a good CRC */
	MINRPC_READER_BAD_CRC,
	MINRPC_READER_SHORT,  /**< a new frame began before the last frame had ended */
	MINRPC_READER_ESCAPE, /**< ff was followed by a byte other than fd, fe and ff */
};

/** All zero at the start. The owner may read only `sink` and `length`. */
struct minrpc_reader {
	uint8_t *sink;   /**< destination of the next payload byte; NULL: count and discard */
	uint32_t length; /**< of the payload */
	/** bytes until the sink is full, or until the payload or the current field ends */
	uint32_t left;
	uint32_t beyond; /**< payload bytes that have no sink yet */
	uint32_t field;  /**< length or CRC, shifted in from the top */
	uint16_t crc;    /**< of the frame so far */
	uint8_t state;
	bool escape; /**< the last byte was an ff, whose meaning depends on the next byte */
};

/**
 * Takes bytes from *data until there is an event. Advances *data and decreases *size by the bytes
 * taken. After LENGTH or FULL the owner calls minrpc_reader_sink before the next call.
 */
enum minrpc_reader_event minrpc_reader_feed(struct minrpc_reader *reader, const uint8_t **data,
					    uint32_t *size);

void minrpc_reader_sink(struct minrpc_reader *reader, uint8_t *sink, uint32_t size);

/* ------------------------------------------------------------------ writing */

struct minrpc_writer {
	int (*write)(void *context, const uint8_t *data, uint32_t size);
	void *context;
	uint8_t *buffer; /**< gathers bytes, so that the port is called less often */
	uint32_t capacity;
	uint32_t fill;
	uint16_t crc;
	/**
	 * nothing was sent since reset or since a broken frame: an fe ends an ff that may be left
	 */
	bool fresh;
	bool open;   /**< between begin and end */
	bool failed; /**< the port refused bytes of this frame */
};

/** Initial value: all zero. */
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

/** A frame: begin with the payload's length, put exactly this number of bytes, end. */
void minrpc_writer_begin(struct minrpc_writer *writer, uint32_t length);
void minrpc_writer_put(struct minrpc_writer *writer, const void *data, uint32_t size);
/**
 * Returns 0, or -1 when the port refused a part of the frame. The next frame then starts like the
 * first frame.
 */
int minrpc_writer_end(struct minrpc_writer *writer);

/**
 * Drops the current frame, if any. Its bytes that are not sent yet are never sent, and the next
 * frame starts like the first frame.
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
