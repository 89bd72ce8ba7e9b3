/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The client's side of the wire, written a second time for the tests: nothing here is shared with
 * the runtime, so that a mistake in one does not hide in the other.
 */
#ifndef WIRE_H_
#define WIRE_H_

#include <stdbool.h>
#include <stdint.h>

/* Bytes that grow as they are put. */
struct bytes {
	uint8_t *data;
	uint32_t size;
	uint32_t capacity;
};

void bytes_free(struct bytes *bytes);
void put(struct bytes *bytes, const void *data, uint32_t size);
void put_u8(struct bytes *bytes, uint8_t value);
void put_u16(struct bytes *bytes, uint16_t value);
void put_u32(struct bytes *bytes, uint32_t value);
void put_u64(struct bytes *bytes, uint64_t value);
/* Appends this number of bytes of that value. */
void put_fill(struct bytes *bytes, uint8_t value, uint32_t count);
/* u64 length and the bytes: a packed string. */
void put_string(struct bytes *bytes, const char *text);

uint32_t get_u32(const uint8_t *at);
uint64_t get_u64(const uint8_t *at);
double get_f64(const uint8_t *at);

/* Bit by bit, as the protocol defines it. */
uint16_t wire_crc(uint16_t crc, const uint8_t *data, uint32_t size);

/* The same as zlib's. */
uint32_t wire_crc32(const uint8_t *data, uint32_t size);

/* Appends the frame that carries `payload`. */
void put_frame(struct bytes *wire, const uint8_t *payload, uint32_t size);
/* The same for a session message. */
void put_message(struct bytes *wire, uint16_t session, uint8_t type, const uint8_t *body,
		 uint32_t size);

/*
 * Takes one frame off *at, in the one form that a sender may use: `fe` may stand in front, every ff
 * is doubled, the length is right, the CRC good. Fails the running case otherwise. Returns false at
 * the end.
 */
bool take_frame(const uint8_t **at, const uint8_t *end, struct bytes *payload);

/* DLTensor as it travels. */
struct tensor {
	uint64_t data;
	uint64_t offset;
	uint8_t code;
	uint8_t bits;
	uint16_t lanes;
	uint32_t ndim;
	int64_t shape[6];
};

enum dialect {
	V7, /* protocol 0.7.0: no byte offset */
	V8,
};

void put_tensor(struct bytes *bytes, enum dialect dialect, const struct tensor *tensor);

/* A tensor of one dimension. */
struct tensor tensor_1d(uint64_t data, uint8_t code, uint8_t bits, int64_t extent);

#endif /* WIRE_H_ */
