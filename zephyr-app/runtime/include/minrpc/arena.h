/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Arena allocator over one buffer that the port hands in: blocks from its start, first fit in
 * address order, neighbours merged on free; and workspace, a stack from its end, at a cost that
 * does not depend on the blocks. Every pointer handed back is looked up, so a foreign pointer or a
 * double free is an error, not damage. Round each payload lie guards, which tell who wrote too far.
 */
#ifndef MINRPC_ARENA_H_
#define MINRPC_ARENA_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Block sizes and headers are multiples of this; the buffer is aligned to it by the arena itself.
 */
#define MINRPC_ARENA_GRANULE 16U

/**
 * Tensors start on this boundary unless the client asks for another: what TVM's generators assume.
 */
#ifndef MINRPC_TENSOR_ALIGNMENT
#define MINRPC_TENSOR_ALIGNMENT 64U
#endif

/**
 * What a block is for: who may name it, and when it is freed. Bits, so that a set of kinds can be
 * given.
 */
enum minrpc_arena_kind {
	MINRPC_ARENA_FREE = 0x00,
	MINRPC_ARENA_DATA =
		0x01, /**< allocated by the client; lives until freed or the session ends */
	MINRPC_ARENA_OBJECT = 0x02, /**< a struct minrpc_object; likewise */
	MINRPC_ARENA_NDARRAY =
		0x04,             /**< the header of an array that a function returned; likewise */
	MINRPC_ARENA_CODE = 0x08, /**< for code that the client brings; likewise */
	MINRPC_ARENA_CODE_IN_USE = 0x10, /**< such code, loaded; goes with its module */
	MINRPC_ARENA_RESULT = 0x20,      /**< a reply under way; lives until it is sent */
	MINRPC_ARENA_LIBRARY =
		0x40, /**< kept by a function between calls, which alone may touch it */
	MINRPC_ARENA_SHARED =
		0x80, /**< likewise, for arrays that the function gives out: clients may write it */

	/** What a session's end frees. */
	MINRPC_ARENA_SESSION = 0x3f,
};

/**
 * All sizes are in bytes, offsets from `base`. The buffer stays the port's; nothing but the arena
 * may write it.
 */
struct minrpc_arena {
	uint8_t *base;
	uint32_t size; /**< a multiple of the granule; 0: nothing can be allocated */
	uint32_t end;  /**< of the blocks */
	uint32_t top;  /**< of the workspace, which lies from here to `size` */
	uint32_t used; /**< by blocks, with their headers */
	uint32_t peak; /**< the most that blocks and workspace had together */
};

/**
 * Starts with an empty arena.
 *
 * @param arena   of any content
 * @param buffer  what blocks lie in; must outlive the arena. Need not be cleared or aligned.
 * @param size    bytes of the buffer; under two granules every allocation fails
 */
void minrpc_arena_init(struct minrpc_arena *arena, void *buffer, uint32_t size);

/**
 * Allocates by first fit.
 *
 * @param arena      the arena
 * @param size       bytes; 0 is an allocation of its own
 * @param alignment  of the address: a power of two; what is below the granule counts as that
 * @param kind       one kind but FREE: who may name the block, and when it is freed
 * @return the block, the caller's until it is freed, of any content; NULL when no free block is
 * large enough
 */
void *minrpc_arena_alloc(struct minrpc_arena *arena, uint32_t size, uint32_t alignment,
			 enum minrpc_arena_kind kind);

/**
 * Frees a block.
 *
 * @param arena    the arena
 * @param pointer  what alloc gave; any other value is allowed
 * @param kinds    a set of kinds: the block's must be one of them
 * @return false, and nothing was done, when it is no live block of these kinds
 */
bool minrpc_arena_free(struct minrpc_arena *arena, uintptr_t pointer, uint32_t kinds);

/**
 * Looks a block up.
 *
 * @param arena    the arena
 * @param pointer  any value
 * @param kinds    a set of kinds
 * @param size     set to the bytes that were asked for
 * @return true when `pointer` is what alloc gave for a live block of one of these kinds
 */
bool minrpc_arena_find(const struct minrpc_arena *arena, uintptr_t pointer, uint32_t kinds,
		       uint32_t *size);

/** Makes the live block that starts at `pointer` one of another kind. */
void minrpc_arena_set_kind(uintptr_t pointer, enum minrpc_arena_kind kind);

/** Frees every block of these kinds, and merges free neighbours. */
void minrpc_arena_release(struct minrpc_arena *arena, uint32_t kinds);

/** Bytes of the largest allocation that would succeed now at the granule's alignment. */
uint32_t minrpc_arena_largest_free(const struct minrpc_arena *arena);

/** What was found of writes beside blocks. */
enum minrpc_damage {
	MINRPC_DAMAGE_NONE,
	MINRPC_DAMAGE_FOREIGN, /**< not the workspace that was taken last */
	MINRPC_DAMAGE_BEFORE,  /**< up to 4 bytes were written directly in front of a payload */
	MINRPC_DAMAGE_PAST,    /**< something was written directly behind one */
	MINRPC_DAMAGE_HEADERS, /**< more than guards was overwritten: the blocks are lost */
};

/**
 * Takes workspace, as a stack. What a call has not given back goes when it returns.
 *
 * @param arena      the arena
 * @param size       bytes
 * @param alignment  of the address: a power of two
 * @return the workspace; NULL when the gap between blocks and workspace is too small
 */
void *minrpc_workspace_alloc(struct minrpc_arena *arena, uint32_t size, uint32_t alignment);

/**
 * Gives back the workspace that was taken last.
 *
 * @return MINRPC_DAMAGE_NONE; FOREIGN or BEFORE when it was not given back; PAST when it was
 */
enum minrpc_damage minrpc_workspace_free(struct minrpc_arena *arena, const void *pointer);

/**
 * Looks at the guards of all blocks, and mends them. Only where MINRPC_GUARDS is on.
 *
 * @param arena  the arena
 * @param array  set to the first payload that was left, or, where headers are damaged, to the last
 * one before that; unchanged where there is none
 * @return NONE, BEFORE, PAST or HEADERS
 */
enum minrpc_damage minrpc_arena_inspect(struct minrpc_arena *arena, const void **array);

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_ARENA_H_ */
