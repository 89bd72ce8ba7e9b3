/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Arena allocator over one buffer that the port provides. Blocks grow from the buffer's start, by
 * first fit in address order; neighbours merge when they are freed. Workspace is a stack that grows
 * from the buffer's end; its cost does not depend on the blocks. Each pointer that comes back is
 * looked up, so a foreign pointer or a double free is an error and does no damage. Guards around
 * each payload show writes beyond it.
 */
#ifndef MINRPC_ARENA_H_
#define MINRPC_ARENA_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Block sizes and headers are multiples of this. The arena aligns the buffer itself. */
#define MINRPC_ARENA_GRANULE 16U

/** Alignment of tensors, unless the client asks for another. TVM's generators assume it. */
#ifndef MINRPC_TENSOR_ALIGNMENT
#define MINRPC_TENSOR_ALIGNMENT 64U
#endif

/**
 * Purpose of a block: decides who may name it and when it is freed. Bits, so that they form sets.
 */
enum minrpc_arena_kind {
	MINRPC_ARENA_FREE = 0x00,
	MINRPC_ARENA_DATA =
		0x01, /**< allocated by the client; lives until freed or until the session ends */
	MINRPC_ARENA_OBJECT = 0x02, /**< a struct minrpc_object; lives as long as DATA */
	MINRPC_ARENA_NDARRAY =
		/** header of an array that a function returned; lives as long as DATA */
		0x04,
	/** for the client's code, not loaded yet; lives as long as DATA */
	MINRPC_ARENA_CODE = 0x08,
	MINRPC_ARENA_CODE_IN_USE = 0x10, /**< loaded code; freed with its module */
	MINRPC_ARENA_RESULT = 0x20,      /**< a reply in progress; lives until it is sent */
	MINRPC_ARENA_LIBRARY =
		0x40, /**< kept by a function between calls; only that function may access it */
	MINRPC_ARENA_SHARED =
		0x80, /**< kept by a function that shares it as arrays; clients may write it */

	/** The kinds that the end of a session frees. */
	MINRPC_ARENA_SESSION = 0x3f,
};

/**
 * Sizes and offsets are in bytes, offsets from `base`. The buffer stays the port's, but only the
 * arena may write it.
 */
struct minrpc_arena {
	uint8_t *base;
	uint32_t size; /**< a multiple of the granule; 0: nothing can be allocated */
	uint32_t end;  /**< offset behind the last block */
	uint32_t top;  /**< offset of the workspace, which ends at `size` */
	uint32_t used; /**< by blocks, including their headers */
	uint32_t peak; /**< largest sum of blocks and workspace */
};

/**
 * Initializes an empty arena.
 *
 * @param arena   of any content
 * @param buffer  memory for the blocks; must outlive the arena. Need not be cleared or aligned.
 * @param size    bytes of the buffer; with less than two granules every allocation fails
 */
void minrpc_arena_init(struct minrpc_arena *arena, void *buffer, uint32_t size);

/**
 * Allocates by first fit.
 *
 * @param arena      the arena
 * @param size       bytes; 0 gives a block of its own
 * @param alignment  of the address: a power of two, at least the granule is used
 * @param kind       one kind, not FREE
 * @return the block, uninitialized, the caller's until it is freed; NULL when no gap is large
 * enough
 */
void *minrpc_arena_alloc(struct minrpc_arena *arena, uint32_t size, uint32_t alignment,
			 enum minrpc_arena_kind kind);

/**
 * Frees a block.
 *
 * @param arena    the arena
 * @param pointer  the result of alloc; any other value is safe
 * @param kinds    a set of kinds that contains the block's
 * @return false, without a change, when `pointer` is no live block of these kinds
 */
bool minrpc_arena_free(struct minrpc_arena *arena, uintptr_t pointer, uint32_t kinds);

/**
 * Looks a block up.
 *
 * @param arena    the arena
 * @param pointer  any value
 * @param kinds    a set of kinds
 * @param size     set to the size that alloc was asked for
 * @return true when `pointer` is the result of alloc for a live block of one of these kinds
 */
bool minrpc_arena_find(const struct minrpc_arena *arena, uintptr_t pointer, uint32_t kinds,
		       uint32_t *size);

/** Changes the kind of the live block at `pointer`. */
void minrpc_arena_set_kind(uintptr_t pointer, enum minrpc_arena_kind kind);

/** Frees all blocks of these kinds and merges free neighbours. */
void minrpc_arena_release(struct minrpc_arena *arena, uint32_t kinds);

/**
 * Returns the size of the largest allocation that would succeed now, at the granule's alignment.
 */
uint32_t minrpc_arena_largest_free(const struct minrpc_arena *arena);

/** Damage by writes beside blocks. */
enum minrpc_damage {
	MINRPC_DAMAGE_NONE,
	MINRPC_DAMAGE_FOREIGN, /**< this is not the newest workspace */
	MINRPC_DAMAGE_BEFORE,  /**< up to 4 bytes directly in front of a payload were written */
	MINRPC_DAMAGE_PAST,    /**< bytes directly behind a payload were written */
	MINRPC_DAMAGE_HEADERS, /**< more than guards was overwritten: the blocks are lost */
};

/**
 * Allocates workspace, as a stack. Workspace that a call has not freed is freed when it returns.
 *
 * @param arena      the arena
 * @param size       bytes
 * @param alignment  of the address: a power of two
 * @return the workspace; NULL when the gap between blocks and workspace is too small
 */
void *minrpc_workspace_alloc(struct minrpc_arena *arena, uint32_t size, uint32_t alignment);

/**
 * Frees the newest workspace.
 *
 * @return MINRPC_DAMAGE_NONE or PAST: the workspace is free; FOREIGN or BEFORE: it is not
 */
enum minrpc_damage minrpc_workspace_free(struct minrpc_arena *arena, const void *pointer);

/**
 * Inspects the guards of all blocks, and repairs them. Only with MINRPC_GUARDS.
 *
 * @param arena  the arena
 * @param array  set to the first damaged payload; when headers are damaged, to the last payload in
 *               front of the damage; of no meaning when there is none
 * @return NONE, BEFORE, PAST or HEADERS
 */
enum minrpc_damage minrpc_arena_inspect(struct minrpc_arena *arena, const void **array);

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_ARENA_H_ */
