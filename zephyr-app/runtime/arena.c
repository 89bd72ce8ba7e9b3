/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The arena: memory for arrays, objects, results and workspace. Guards surround each block.
 *
 * Blocks lie back to back from the arena's start. A block is a header, a payload and a guard. There
 * is no free list: a walk over the headers finds, validates and searches blocks, and costs no
 * memory beyond the headers. There is no header behind the last block. Workspace is a stack that
 * grows down from the arena's end.
 *
 *     0         blocks          end      free       top      workspace      size
 */
#include <minrpc/arena.h>
#include <minrpc/minrpc_config.h>

#include <string.h>

struct header {
	uint32_t span;      /* bytes of header, payload and guard; a multiple of the granule */
	uint32_t requested; /* bytes that the caller of alloc asked for */
	uint16_t kind;
	/* Unused without guards; payloads still start on a granule. */
	uint16_t check; /* of the fields above */
	uint32_t guard; /* directly in front of the payload */
};

_Static_assert(sizeof(struct header) == MINRPC_ARENA_GRANULE, "payloads start on a granule");

/* The rear guard directly follows the payload, at any alignment. */
#define GUARD_SIZE (8U * MINRPC_GUARDS)
#define OVERHEAD   ((uint32_t)sizeof(struct header) + GUARD_SIZE)

/* Integer arithmetic: NULL + 0 is undefined in C, and the base of an empty arena may be NULL. */
static struct header *at(const void *base, uint32_t offset)
{
	return (struct header *)((uintptr_t)base + offset);
}

static struct header *end(const struct minrpc_arena *arena)
{
	return at(arena->base, arena->end);
}

static struct header *after(const struct header *block)
{
	return at(block, block->span);
}

#if MINRPC_GUARDS
#define FRONT_GUARD 0x5ca1ab1eU
#define REAR_GUARD  {0xeda55ed1U, 0xa7beedfeU}

static uint8_t *behind(const struct header *block)
{
	return (uint8_t *)(block + 1) + block->requested;
}

static uint16_t check_of(const struct header *block)
{
	uint32_t mixed = block->span ^ block->requested ^ block->kind;

	return (uint16_t)~(mixed ^ mixed >> 16);
}

static __attribute__((noinline)) void put_guards(struct header *block)
{
	static const uint32_t rear[] = REAR_GUARD;

	block->guard = FRONT_GUARD;
	memcpy(behind(block), rear, GUARD_SIZE);
}

/* Inlined, like is_sound, because every call is followed by a look at each array. */
static inline __attribute__((always_inline)) bool is_rear_whole(const struct header *block)
{
	static const uint32_t whole[] = REAR_GUARD;
	uint32_t rear[2];

	memcpy(rear, behind(block), GUARD_SIZE);
	return rear[0] == whole[0] && rear[1] == whole[1];
}
#else
#define check_of(block)   0U
#define put_guards(block) ((void)0)
#endif

/* Stores a changed header with its check. Not inlined, since many functions call it. */
static __attribute__((noinline)) void seal(struct header *block, uint32_t span, uint32_t kind)
{
	block->span = span;
	block->kind = (uint16_t)kind;
	block->check = check_of(block);
}

void minrpc_arena_init(struct minrpc_arena *arena, void *buffer, uint32_t size)
{
	uint32_t skip = (uint32_t)(-(uintptr_t)buffer & (MINRPC_ARENA_GRANULE - 1U));

	*arena = (struct minrpc_arena){.base = buffer};
	if (size >= skip + 2U * MINRPC_ARENA_GRANULE) {
		arena->base = (uint8_t *)at(buffer, skip);
		arena->size = (size - skip) & ~(MINRPC_ARENA_GRANULE - 1U);
		arena->top = arena->size;
	}
}

/*
 * Returns the bytes that a block of `size` takes. Returns 0, or more than the arena has, when the
 * arena is too small. In an arena of no bytes the limit wraps; a sum over 4 GiB then also gives 0.
 */
static uint32_t span_of(const struct minrpc_arena *arena, uint32_t size)
{
	if (size > arena->size - OVERHEAD) {
		return 0U;
	}
	return (size + OVERHEAD + MINRPC_ARENA_GRANULE - 1U) & ~(MINRPC_ARENA_GRANULE - 1U);
}

static void note_peak(struct minrpc_arena *arena)
{
	uint32_t used = arena->used + arena->size - arena->top;

	if (used > arena->peak) {
		arena->peak = used;
	}
}

/*
 * Returns the bytes to leave free in front of a header so that its payload is aligned: 0, or enough
 * for a block.
 */
static uint32_t gap_at(const struct header *block, uint32_t alignment)
{
	return (uint32_t)(-(uintptr_t)(block + 1) & (alignment - 1U));
}

/* True when a gap and a span fit `room` bytes. */
static bool holds(uint32_t room, uint32_t gap, uint32_t span)
{
	return room >= gap && room - gap >= span;
}

void *minrpc_arena_alloc(struct minrpc_arena *arena, uint32_t size, uint32_t alignment,
			 enum minrpc_arena_kind kind)
{
	struct header *block = at(arena->base, 0U);
	uint32_t span = span_of(arena, size);
	uint32_t room;
	uint32_t gap;

	if (span == 0U || alignment > arena->size) {
		return NULL;
	}
	while (block != end(arena) && (block->kind != MINRPC_ARENA_FREE ||
				       !holds(block->span, gap_at(block, alignment), span))) {
		block = after(block);
	}
	gap = gap_at(block, alignment);
	if (block == end(arena)) {
		room = gap + span;
		if (!holds(arena->top - arena->end, gap, span)) {
			return NULL;
		}
		arena->end += room;
	} else {
		room = block->span;
	}
	if (gap != 0U) {
		seal(block, gap, MINRPC_ARENA_FREE);
		block = after(block);
		room -= gap;
	}
	if (room != span) {
		seal(at(block, span), room - span, MINRPC_ARENA_FREE);
	}
	block->requested = size;
	seal(block, span, (uint32_t)kind);
	put_guards(block);
	arena->used += span;
	note_peak(arena);
	return block + 1;
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

bool minrpc_arena_free(struct minrpc_arena *arena, uintptr_t pointer, uint32_t kinds)
{
	struct header *block;
	uint32_t size;

	if (!minrpc_arena_find(arena, pointer, kinds, &size)) {
		return false;
	}
	block = (struct header *)pointer - 1;
	seal(block, block->span, MINRPC_ARENA_FREE);
	arena->used -= block->span;
	minrpc_arena_release(arena, 0U);
	return true;
}

void minrpc_arena_set_kind(uintptr_t pointer, enum minrpc_arena_kind kind)
{
	struct header *block = (struct header *)pointer - 1;

	seal(block, block->span, (uint32_t)kind);
}

void minrpc_arena_release(struct minrpc_arena *arena, uint32_t kinds)
{
	struct header *block = at(arena->base, 0U);
	struct header *before = NULL; /* the free block directly before, if any */

	while (block != end(arena)) {
		struct header *next = after(block);

		if ((block->kind & kinds) != 0U) {
			seal(block, block->span, MINRPC_ARENA_FREE);
			arena->used -= block->span;
		}
		if (block->kind != MINRPC_ARENA_FREE) {
			before = NULL;
		} else if (before == NULL) {
			before = block;
		} else {
			seal(before, before->span + block->span, MINRPC_ARENA_FREE);
		}
		block = next;
	}
	if (before != NULL) {
		arena->end = (uint32_t)((uint8_t *)before - arena->base);
	}
}

uint32_t minrpc_arena_largest_free(const struct minrpc_arena *arena)
{
	const struct header *block = at(arena->base, 0U);
	uint32_t largest = arena->top - arena->end;

	for (; block != end(arena); block = after(block)) {
		if (block->kind == MINRPC_ARENA_FREE && block->span > largest) {
			largest = block->span;
		}
	}
	return largest < OVERHEAD ? 0U : largest - OVERHEAD;
}

/* ------------------------------------------------------------------- workspace */

void *minrpc_workspace_alloc(struct minrpc_arena *arena, uint32_t size, uint32_t alignment)
{
	uint32_t span = span_of(arena, size);
	struct header *block;
	uint32_t gap;

	if (span == 0U || alignment > arena->size || span > arena->top - arena->end) {
		return NULL;
	}
	block = at(arena->base, arena->top - span);
	gap = (uint32_t)((uintptr_t)(block + 1) & (alignment - 1U));
	if (span + gap > arena->top - arena->end) {
		return NULL;
	}
	arena->top -= span + gap;
	block = at(arena->base, arena->top);
	block->requested = size;
	seal(block, span + gap, MINRPC_ARENA_FREE);
	put_guards(block);
	note_peak(arena);
	return block + 1;
}

enum minrpc_damage minrpc_workspace_free(struct minrpc_arena *arena, const void *pointer)
{
	const struct header *block = at(arena->base, arena->top);

	if (arena->top == arena->size || pointer != block + 1) {
		return MINRPC_DAMAGE_FOREIGN;
	}
#if MINRPC_GUARDS
	if (block->guard != FRONT_GUARD || block->check != check_of(block)) {
		return MINRPC_DAMAGE_BEFORE;
	}
#endif
	arena->top += block->span;
#if MINRPC_GUARDS
	if (!is_rear_whole(block)) {
		return MINRPC_DAMAGE_PAST;
	}
#endif
	return MINRPC_DAMAGE_NONE;
}

/* ---------------------------------------------------------------------- guards */

#if MINRPC_GUARDS

/* True when the header's check is right and the block ends at `last` or before. */
static inline __attribute__((always_inline)) bool is_sound(const struct header *block,
							   const struct header *last)
{
	uint32_t mixed =
		block->span ^ block->requested ^ block->kind ^ (uint32_t)block->check << 16;

	/* A span of 0 wraps to the largest number, so it fails, too. */
	return (uint16_t)(mixed ^ mixed >> 16) == UINT16_MAX &&
	       block->span - 1U < (uint32_t)((uintptr_t)last - (uintptr_t)block);
}

enum minrpc_damage minrpc_arena_inspect(struct minrpc_arena *arena, const void **array)
{
	enum minrpc_damage damage = MINRPC_DAMAGE_NONE;
	struct header *block = at(arena->base, 0U);
	const struct header *last = end(arena);

	for (; block != last; block = after(block)) {
		if (!is_sound(block, last)) {
			return MINRPC_DAMAGE_HEADERS;
		}
		if (block->kind == MINRPC_ARENA_FREE) {
			continue;
		}
		if (damage == MINRPC_DAMAGE_NONE) {
			*array = block + 1;
		}
		if (block->guard == FRONT_GUARD && is_rear_whole(block)) {
			continue;
		}
		if (damage == MINRPC_DAMAGE_NONE) {
			damage = block->guard == FRONT_GUARD ? MINRPC_DAMAGE_PAST
							     : MINRPC_DAMAGE_BEFORE;
		}
		put_guards(block);
	}
	return damage;
}

#endif
