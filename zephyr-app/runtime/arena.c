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

static struct header *at(const struct minrpc_arena *arena, uint32_t offset)
{
	return (struct header *)(void *)(arena->base + offset);
}

void minrpc_arena_init(struct minrpc_arena *arena, void *buffer, uint32_t size)
{
	uint32_t skip = (uint32_t)(-(uintptr_t)buffer & (MINRPC_ARENA_GRANULE - 1U));

	arena->base = (uint8_t *)buffer + skip;
	arena->size = size > skip ? (size - skip) & ~(MINRPC_ARENA_GRANULE - 1U) : 0U;
	arena->used = 0U;
	arena->peak = 0U;
	if (arena->size < 2U * MINRPC_ARENA_GRANULE) {
		arena->size = 0U;
		return;
	}
	*at(arena, 0U) = (struct header){.span = arena->size, .kind = MINRPC_ARENA_FREE};
}

/* Cuts the block at `offset` so that its first `span` bytes are a block of their own. */
static void split(struct minrpc_arena *arena, uint32_t offset, uint32_t span)
{
	struct header *block = at(arena, offset);

	if (block->span == span) {
		return;
	}
	*at(arena, offset + span) =
		(struct header){.span = block->span - span, .kind = MINRPC_ARENA_FREE};
	block->span = span;
}

static void merge_free(struct minrpc_arena *arena)
{
	uint32_t offset = 0U;

	while (offset < arena->size) {
		struct header *block = at(arena, offset);
		uint32_t next = offset + block->span;

		if (block->kind == MINRPC_ARENA_FREE && next < arena->size &&
		    at(arena, next)->kind == MINRPC_ARENA_FREE) {
			block->span += at(arena, next)->span;
		} else {
			offset = next;
		}
	}
}

/* Bytes to leave free in front so that the payload is aligned: 0, or a block of its own. */
static uint32_t lead(const struct minrpc_arena *arena, uint32_t offset, uint32_t alignment)
{
	uintptr_t payload = (uintptr_t)arena->base + offset + sizeof(struct header);

	return (uint32_t)(-payload & (alignment - 1U));
}

tvm_crt_error_t minrpc_arena_alloc(struct minrpc_arena *arena, uint32_t size, uint32_t alignment,
				   enum minrpc_arena_kind kind, void **out)
{
	uint32_t payload = size == 0U ? 1U : size;
	uint32_t offset = 0U;
	uint32_t span;

	*out = NULL;
	if (alignment < MINRPC_ARENA_GRANULE) {
		alignment = MINRPC_ARENA_GRANULE;
	}
	if (payload > arena->size || alignment > arena->size) {
		return kTvmErrorPlatformNoMemory;
	}
	span = ((payload + MINRPC_ARENA_GRANULE - 1U) & ~(MINRPC_ARENA_GRANULE - 1U)) +
	       (uint32_t)sizeof(struct header);
	while (offset < arena->size) {
		struct header *block = at(arena, offset);
		uint32_t gap = lead(arena, offset, alignment);

		if (block->kind != MINRPC_ARENA_FREE || block->span < gap ||
		    block->span - gap < span) {
			offset += block->span;
			continue;
		}
		if (gap != 0U) {
			split(arena, offset, gap);
			offset += gap;
		}
		split(arena, offset, span);
		block = at(arena, offset);
		block->kind = (uint32_t)kind;
		block->requested = size;
		arena->used += span;
		if (arena->used > arena->peak) {
			arena->peak = arena->used;
		}
		*out = block + 1;
		return kTvmErrorNoError;
	}
	return kTvmErrorPlatformNoMemory;
}

static struct header *find(const struct minrpc_arena *arena, uintptr_t pointer, uint32_t kinds)
{
	uint32_t offset = 0U;

	while (offset < arena->size) {
		struct header *block = at(arena, offset);

		if ((uintptr_t)(block + 1) == pointer) {
			return (block->kind & kinds) != 0U ? block : NULL;
		}
		offset += block->span;
	}
	return NULL;
}

tvm_crt_error_t minrpc_arena_free(struct minrpc_arena *arena, uintptr_t pointer, uint32_t kinds)
{
	struct header *block = find(arena, pointer, kinds);

	if (block == NULL) {
		return kTvmErrorPlatformCheckFailure;
	}
	block->kind = MINRPC_ARENA_FREE;
	arena->used -= block->span;
	merge_free(arena);
	return kTvmErrorNoError;
}

bool minrpc_arena_find(const struct minrpc_arena *arena, uintptr_t pointer, uint32_t kinds,
		       uint32_t *size)
{
	const struct header *block = find(arena, pointer, kinds);

	if (block == NULL) {
		return false;
	}
	*size = block->requested;
	return true;
}

void minrpc_arena_release(struct minrpc_arena *arena, uint32_t kinds)
{
	uint32_t offset = 0U;

	while (offset < arena->size) {
		struct header *block = at(arena, offset);

		if ((block->kind & kinds) != 0U) {
			block->kind = MINRPC_ARENA_FREE;
			arena->used -= block->span;
		}
		offset += block->span;
	}
	merge_free(arena);
}

uint32_t minrpc_arena_largest_free(const struct minrpc_arena *arena)
{
	uint32_t largest = sizeof(struct header);
	uint32_t offset = 0U;

	while (offset < arena->size) {
		const struct header *block = at(arena, offset);

		if (block->kind == MINRPC_ARENA_FREE && block->span > largest) {
			largest = block->span;
		}
		offset += block->span;
	}
	return largest - (uint32_t)sizeof(struct header);
}
