/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The arena: memory for arrays, objects, results and workspace, each block with guards around it.
 *
 * Blocks lie back to back from the arena's start: a header, the payload, a guard. There is no free
 * list: walking the headers is the look-up, the validation and the search, and costs no memory
 * beyond the headers. Behind the last block nothing is kept; from the other end workspace grows
 * towards it, as a stack.
 *
 *     0         blocks          end      free       top      workspace      size
 */
#include <minrpc/arena.h>
#include <minrpc/minrpc_config.h>

#include <string.h>

struct header {
	uint32_t span;      /* header, payload and guard, a multiple of the granule */
	uint32_t requested; /* what alloc was asked for */
	uint16_t kind;
	/* Without guards the rest is not used: payloads start on a granule all the same. */
	uint16_t check; /* of all before it */
	uint32_t guard; /* directly in front of the payload */
};

_Static_assert(sizeof(struct header) == MINRPC_ARENA_GRANULE, "payloads start on a granule");

/* Directly behind the payload, at any alignment. */
#define GUARD_SIZE (8U * MINRPC_GUARDS)
#define OVERHEAD   ((uint32_t)sizeof(struct header) + GUARD_SIZE)

/* By integers: C has no sum of NULL, which an empty arena's base may be, and 0. */
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

/* In line, here and below: each array is looked at after each call. */
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

/* Each change of a header ends with this. Not inlined: there are many. */
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
 * Bytes that a block of `size` takes; 0, or more than there is, when the arena has not so much.
 * That of no bytes, where the limit goes round, gives what is over 4 GiB as 0, too.
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
 * Bytes to leave free in front of a header so that the payload is aligned: none, or enough for a
 * block.
 */
static uint32_t gap_at(const struct header *block, uint32_t alignment)
{
	return (uint32_t)(-(uintptr_t)(block + 1) & (alignment - 1U));
}

/* Whether `room` bytes hold a gap and a span. */
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
	struct header *before = NULL; /* a free neighbour */

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

/* Whether the header's check is right and the block ends at `last` at the latest. */
static inline __attribute__((always_inline)) bool is_sound(const struct header *block,
							   const struct header *last)
{
	uint32_t mixed =
		block->span ^ block->requested ^ block->kind ^ (uint32_t)block->check << 16;

	/* A span of 0 becomes the largest there is. */
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
