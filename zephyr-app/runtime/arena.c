/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Blocks lie back to back: a header, then the payload. There is no free list: walking the headers is the
 * look-up, the validation and the search, and costs no memory beyond the headers.
 */
#include <minrpc/arena.h>

struct header {
	uint32_t span;      /* header and payload, a multiple of the granule */
	uint32_t requested; /* what alloc was asked for */
	uint32_t kind;
	uint32_t reserved;  /* keeps the payload on the granule */
};

_Static_assert(sizeof(struct header) == MINRPC_ARENA_GRANULE, "payloads start on a granule");

static struct header *at(const void *base, uint32_t offset)
{
	return (struct header *)(void *)((uint8_t *)base + offset);
}

static struct header *end(const struct minrpc_arena *arena)
{
	return at(arena->base, arena->size);
}

static struct header *after(const struct header *block)
{
	return at(block, block->span);
}

void minrpc_arena_init(struct minrpc_arena *arena, void *buffer, uint32_t size)
{
	uint32_t skip = (uint32_t)(-(uintptr_t)buffer & (MINRPC_ARENA_GRANULE - 1U));

	arena->base = (uint8_t *)buffer + skip;
	arena->size = 0U;
	arena->used = 0U;
	arena->peak = 0U;
	if (size >= skip + 2U * MINRPC_ARENA_GRANULE) {
		struct header *block = at(arena->base, 0U);

		arena->size = (size - skip) & ~(MINRPC_ARENA_GRANULE - 1U);
		block->span = arena->size;
		block->kind = MINRPC_ARENA_FREE;
	}
}

/* Makes the first `span` bytes of a free block that has more a block of their own, and returns the one behind. */
static struct header *split(struct header *block, uint32_t span)
{
	struct header *behind = at(block, span);

	behind->span = block->span - span;
	behind->kind = MINRPC_ARENA_FREE;
	block->span = span;
	return behind;
}

void *minrpc_arena_alloc(struct minrpc_arena *arena, uint32_t size, uint32_t alignment,
			 enum minrpc_arena_kind kind)
{
	struct header *block = at(arena->base, 0U);
	uint32_t span;

	if (size > arena->size || alignment > arena->size) {
		return NULL;
	}
	span = (size + (size == 0U) + 2U * MINRPC_ARENA_GRANULE - 1U) & ~(MINRPC_ARENA_GRANULE - 1U);
	for (; block != end(arena); block = after(block)) {
		/* Bytes to leave free in front so that the payload is aligned: none, or enough for a block. */
		uint32_t gap = (uint32_t)(-(uintptr_t)(block + 1) & (alignment - 1U));

		if (block->kind != MINRPC_ARENA_FREE || block->span < gap ||
		    block->span - gap < span) {
			continue;
		}
		if (gap != 0U) {
			block = split(block, gap);
		}
		if (block->span != span) {
			(void)split(block, span);
		}
		block->kind = (uint32_t)kind;
		block->requested = size;
		arena->used += span;
		if (arena->used > arena->peak) {
			arena->peak = arena->used;
		}
		return block + 1;
	}
	return NULL;
}

bool minrpc_arena_find(const struct minrpc_arena *arena, uintptr_t pointer, uint32_t kinds,
		       uint32_t *size)
{
	const struct header *block = at(arena->base, 0U);

	for (; block != end(arena); block = after(block)) {
		if ((uintptr_t)(block + 1) == pointer) {
			*size = block->requested;
			return (block->kind & kinds) != 0U;
		}
	}
	return false;
}

tvm_crt_error_t minrpc_arena_free(struct minrpc_arena *arena, uintptr_t pointer, uint32_t kinds)
{
	struct header *block;
	uint32_t size;

	if (!minrpc_arena_find(arena, pointer, kinds, &size)) {
		return kTvmErrorPlatformCheckFailure;
	}
	block = (struct header *)pointer - 1;
	block->kind = MINRPC_ARENA_FREE;
	arena->used -= block->span;
	minrpc_arena_release(arena, 0U);
	return kTvmErrorNoError;
}

void minrpc_arena_set_kind(uintptr_t pointer, enum minrpc_arena_kind kind)
{
	((struct header *)pointer - 1)->kind = (uint32_t)kind;
}

void minrpc_arena_release(struct minrpc_arena *arena, uint32_t kinds)
{
	struct header *block = at(arena->base, 0U);
	struct header *before = NULL; /* a free neighbour */

	while (block != end(arena)) {
		struct header *next = after(block);

		if ((block->kind & kinds) != 0U) {
			block->kind = MINRPC_ARENA_FREE;
			arena->used -= block->span;
		}
		if (block->kind != MINRPC_ARENA_FREE) {
			before = NULL;
		} else if (before == NULL) {
			before = block;
		} else {
			before->span += block->span;
		}
		block = next;
	}
}

uint32_t minrpc_arena_largest_free(const struct minrpc_arena *arena)
{
	const struct header *block = at(arena->base, 0U);
	uint32_t largest = sizeof(struct header);

	for (; block != end(arena); block = after(block)) {
		if (block->kind == MINRPC_ARENA_FREE && block->span > largest) {
			largest = block->span;
		}
	}
	return largest - (uint32_t)sizeof(struct header);
}
