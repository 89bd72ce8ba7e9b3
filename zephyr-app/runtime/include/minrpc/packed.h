/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Packed values on the wire: u32 count, i32 type codes, then the values one after another.
 */
#ifndef MINRPC_PACKED_H_
#define MINRPC_PACKED_H_

#include <stdbool.h>
#include <stdint.h>

#include <minrpc/unaligned.h>
#include <tvm/runtime/c_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The form of DLTensor that a client sends: TVM v0.7 sends no byte offset. */
enum minrpc_dialect {
	MINRPC_DIALECT_UNKNOWN = 0,
	MINRPC_DIALECT_0_7,
	MINRPC_DIALECT_0_8,
};

/**
 * A range of bytes to read. Reading past the end gives zeros and sets `at` to NULL, so several
 * reads need only one check.
 */
struct minrpc_cursor {
	uint8_t *at;
	uint8_t *end;
};

static inline bool minrpc_cursor_bad(const struct minrpc_cursor *cursor)
{
	return cursor->at == NULL;
}

static inline uint32_t minrpc_cursor_left(const struct minrpc_cursor *cursor)
{
	return (uint32_t)(cursor->end - cursor->at);
}

/**
 * Takes the next `size` bytes.
 *
 * @return their address; NULL, and the cursor stays bad, when fewer are left
 */
uint8_t *minrpc_take_bytes(struct minrpc_cursor *cursor, uint32_t size);
/** Takes the next number, little-endian; 0 when it is incomplete. */
uint32_t minrpc_take_u32(struct minrpc_cursor *cursor);
uint64_t minrpc_take_u64(struct minrpc_cursor *cursor);

/**
 * Converts a number of bytes from the wire. More than 32 bits become UINT32_MAX, which no buffer
 * has.
 */
uint32_t minrpc_size(uint64_t value);

uint32_t minrpc_take_size(struct minrpc_cursor *cursor);

/**
 * Converts a handle or address from the wire. A value that does not fit becomes a value that is
 * never given out.
 */
static inline uintptr_t minrpc_handle(uint64_t value)
{
	return UINTPTR_MAX == UINT32_MAX ? (uintptr_t)minrpc_size(value) : (uintptr_t)value;
}

static inline uintptr_t minrpc_take_handle(struct minrpc_cursor *cursor)
{
	return UINTPTR_MAX == UINT32_MAX ? (uintptr_t)minrpc_take_size(cursor)
					 : (uintptr_t)minrpc_take_u64(cursor);
}

/** The device, ndim and dtype of a tensor, which lie side by side in the order of the wire. */
#define MINRPC_TENSOR_CORE_SIZE 16U

static inline uint8_t *minrpc_tensor_core(const DLTensor *tensor)
{
	return (uint8_t *)tensor + offsetof(DLTensor, device);
}

/**
 * Takes a tensor's header, without a check, except `shape`. Returns the extents: ndim unaligned
 * i64.
 */
uint8_t *minrpc_take_tensor(struct minrpc_cursor *cursor, enum minrpc_dialect dialect,
			    DLTensor *tensor);

/**
 * Returns the bytes of a tensor's elements, without the byte offset. Returns MINRPC_NO_SIZE when an
 * element has no size, an extent is negative, or the result exceeds 32 bits. `extents` may be
 * unaligned.
 */
#define MINRPC_NO_SIZE UINT32_MAX
uint32_t minrpc_tensor_size(const DLTensor *tensor, const void *extents);

/** Decoded arguments. They point into the receive buffer. */
struct minrpc_args {
	TVMValue *values;
	int *type_codes;
	int count;
};

enum minrpc_packed_status {
	MINRPC_PACKED_OK,
	MINRPC_PACKED_SHORT,   /**< the values do not end where the packet ends */
	MINRPC_PACKED_TYPE,    /**< `culprit` is a type code without a form on the wire */
	MINRPC_PACKED_SCRATCH, /**< no room for the decoded form */
};

/** A sequence to decode, and the memory for the result. */
struct minrpc_packed {
	struct minrpc_cursor wire;    /**< the sequence; strings and shapes stay in it, but move */
	struct minrpc_cursor scratch; /**< room for everything else; its rest, once decoded */
	struct minrpc_args *args;
	uint32_t culprit;
	uint8_t dialect; /**< set when a tensor shows it */
	bool moves;      /**< internal to the decoder */
};

/** Decodes in the dialect whose length fits. The caller checks a tensor's numbers. */
enum minrpc_packed_status minrpc_packed_decode(struct minrpc_packed *packed);

/** Returns the name of a type code for texts: "int", "tensor", ... */
const char *minrpc_type_name(int type_code);

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_PACKED_H_ */
