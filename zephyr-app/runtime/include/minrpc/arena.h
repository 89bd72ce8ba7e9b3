/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Arena allocator over one buffer that the port hands in. First fit in address order, neighbours merged on
 * free. Every pointer handed back is looked up, so a foreign pointer or a double free is an error, not damage.
 */
#ifndef MINRPC_ARENA_H_
#define MINRPC_ARENA_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tvm/runtime/crt/error_codes.h>

/* Block sizes and headers are multiples of this; the buffer is aligned to it by the arena itself. */
#define MINRPC_ARENA_GRANULE 16U

/* Tensors start on this boundary unless the client asks for another: what TVM's generators assume. */
#ifndef MINRPC_TENSOR_ALIGNMENT
#define MINRPC_TENSOR_ALIGNMENT 64U
#endif

/* What a block is for: who may name it, and when it is freed. Bits, so that a set of kinds can be given. */
enum minrpc_arena_kind {
	MINRPC_ARENA_FREE = 0x00,
	MINRPC_ARENA_DATA = 0x01,    /* allocated by the client; lives until freed or the session ends */
	MINRPC_ARENA_OBJECT = 0x02,  /* a struct minrpc_object; likewise */
	MINRPC_ARENA_NDARRAY = 0x04, /* the header of an array that a function returned; likewise */
	MINRPC_ARENA_CODE = 0x08,    /* for code that the client brings; likewise */
	MINRPC_ARENA_CODE_IN_USE = 0x10, /* such code, loaded; goes with its module */
	MINRPC_ARENA_RESULT = 0x20,      /* a reply under way; lives until it is sent */
	MINRPC_ARENA_WORKSPACE = 0x40,   /* of the running function; lives until the call returns */
	MINRPC_ARENA_LIBRARY = 0x80,     /* kept by a function between calls, which alone may touch it */
	MINRPC_ARENA_SHARED = 0x100,     /* likewise, for arrays that the function gives out: clients may write it */

	/* What a session's end frees. */
	MINRPC_ARENA_SESSION = 0x3f,
};

struct minrpc_arena {
	uint8_t *base;
	uint32_t size;
	uint32_t used;
	uint32_t peak;
};

/* Buffers under two granules leave an arena in which every allocation fails. */
void minrpc_arena_init(struct minrpc_arena *arena, void *buffer, uint32_t size);

/*
 * alignment: a power of two. Zero bytes are allocated as one. NULL when no free block is large enough.
 */
void *minrpc_arena_alloc(struct minrpc_arena *arena, uint32_t size, uint32_t alignment,
			 enum minrpc_arena_kind kind);

/* Frees a live block of one of `kinds` by the pointer that alloc gave. kTvmErrorPlatformCheckFailure for any other. */
tvm_crt_error_t minrpc_arena_free(struct minrpc_arena *arena, uintptr_t pointer, uint32_t kinds);

/* True when `pointer` is what alloc gave for a live block of one of `kinds`; *size is then what was asked for. */
bool minrpc_arena_find(const struct minrpc_arena *arena, uintptr_t pointer, uint32_t kinds,
		       uint32_t *size);

/* Makes the live block that starts at `pointer` one of another kind. */
void minrpc_arena_set_kind(uintptr_t pointer, enum minrpc_arena_kind kind);

/* Frees every block of these kinds, and merges free neighbours. */
void minrpc_arena_release(struct minrpc_arena *arena, uint32_t kinds);

/* Bytes of the largest allocation that would succeed now at the granule's alignment. */
uint32_t minrpc_arena_largest_free(const struct minrpc_arena *arena);

#endif /* MINRPC_ARENA_H_ */
