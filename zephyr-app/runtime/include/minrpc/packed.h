/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Packed values as they travel: u32 count, i32 type codes, values back to back.
 */
#ifndef MINRPC_PACKED_H_
#define MINRPC_PACKED_H_

#include <stdbool.h>
#include <stdint.h>

#include <tvm/runtime/c_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Which DLTensor a client speaks: TVM v0.7 sends no byte offset. */
enum minrpc_dialect {
	MINRPC_DIALECT_UNKNOWN = 0,
	MINRPC_DIALECT_0_7,
	MINRPC_DIALECT_0_8,
};

/**
 * Bytes being read. Reading past the end gives zeros and leaves `at` NULL, so one check after
 * several reads is enough.
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
 * The next `size` bytes, which the cursor passes.
 *
 * @return where they lie, or NULL when so many are not left: the cursor is bad from then on
 */
uint8_t *minrpc_take_bytes(struct minrpc_cursor *cursor, uint32_t size);
/** The next number, little-endian; 0 when it is not all there. */
uint32_t minrpc_take_u32(struct minrpc_cursor *cursor);
uint64_t minrpc_take_u64(struct minrpc_cursor *cursor);

/** A count of bytes off the wire: above 32 bits it becomes UINT32_MAX, which no buffer holds. */
uint32_t minrpc_size(uint64_t value);

uint32_t minrpc_take_size(struct minrpc_cursor *cursor);

/** A handle or address off the wire. One that does not fit becomes one that is never given out. */
static inline uintptr_t minrpc_handle(uint64_t value)
{
	return UINTPTR_MAX == UINT32_MAX ? (uintptr_t)minrpc_size(value) : (uintptr_t)value;
}

static inline uintptr_t minrpc_take_handle(struct minrpc_cursor *cursor)
{
	return UINTPTR_MAX == UINT32_MAX ? (uintptr_t)minrpc_take_size(cursor)
					 : (uintptr_t)minrpc_take_u64(cursor);
}

/** A tensor's device, ndim and dtype: they lie side by side, in the wire's order. */
#define MINRPC_TENSOR_CORE_SIZE 16U

static inline uint8_t *minrpc_tensor_core(const DLTensor *tensor)
{
	return (uint8_t *)tensor + offsetof(DLTensor, device);
}

/** A tensor's header, unchecked, but for `shape`. Returns the extents, ndim unaligned i64. */
uint8_t *minrpc_take_tensor(struct minrpc_cursor *cursor, enum minrpc_dialect dialect,
			    DLTensor *tensor);

/**
 * Bytes that the elements need, byte offset not included. MINRPC_NO_SIZE when an element has none,
 * an extent is negative, or it is over 32 bits. `extents` may be unaligned.
 */
#define MINRPC_NO_SIZE UINT32_MAX
uint32_t minrpc_tensor_size(const DLTensor *tensor, const void *extents);

/** Decoded arguments. Everything they point to lies in the receive buffer. */
struct minrpc_args {
	TVMValue *values;
	int *type_codes;
	int count;
};

enum minrpc_packed_status {
	MINRPC_PACKED_OK,
	MINRPC_PACKED_SHORT, /**< it does not end where the packet ends */
	MINRPC_PACKED_TYPE,  /**< a type code that has no form on the wire; `culprit` is the code */
	MINRPC_PACKED_SCRATCH, /**< no room for the decoded form */
};

/** A sequence to decode, and where to. */
struct minrpc_packed {
	struct minrpc_cursor wire; /**< the whole of it; strings and shapes stay in it, but move */
	struct minrpc_cursor scratch; /**< for all else */
	struct minrpc_args *args;
	uint32_t culprit;
	uint8_t dialect; /**< set where a tensor tells it */
	bool moves;      /**< the decoder's own */
};

/** In the dialect whose length fits. What a tensor's numbers mean is the caller's to check. */
enum minrpc_packed_status minrpc_packed_decode(struct minrpc_packed *packed);

/** "int", "tensor", ...: for messages. */
const char *minrpc_type_name(int type_code);

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_PACKED_H_ */
