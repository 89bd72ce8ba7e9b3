/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * malloc, for all code of the device: the firmware and loaded code. The heap grows from the end of
 * the data up to arrays or code. Without room there a block is taken from the memory for arrays.
 * Guards surround each block; a header tells a live block from a free block. A freed block is
 * filled: a write to it changes the fill, and a pointer read from it leads nowhere.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <minrpc/baremetal.h>
#include <minrpc/stack.h>
#include <minrpc/text.h>

#include "machine.h"
#include "port.h"

#define GRANULE 16U
#define REAR    0xeda55ed1U
#define LIVE    0x5ca1ab1eU
#define FREE    0x0f4eeb10U
/* No memory has this address. */
#define FILL    0xfeeefeeeU
/* Bytes of a free block that are filled; the heap keeps as many of a freed last block. */
#define FILLED  (256U * MINRPC_GUARDS)

struct block {
	size_t span; /* bytes of header, payload and guard; a multiple of the granule */
	union {
		size_t requested;   /* of a live block */
		struct block *next; /* of a free block: the next free block by address */
	};
	uint32_t check;
	uint32_t front; /* directly in front of the payload */
} __attribute__((aligned(GRANULE)));

#define OVERHEAD (sizeof(struct block) + sizeof(uint32_t))

/* Symbols of the linker script: the RAM beside data and stacks. */
extern uint8_t __heap_start[], __heap_end[];

static struct block *free_list;
static uint8_t *heap_top;
static uint32_t used;
static uint32_t most;
/* The return address of the last called function of the heap. */
static const void *caller;

static uint8_t *heap_base(void)
{
	return (uint8_t *)(((uintptr_t)__heap_start + GRANULE - 1U) & ~(uintptr_t)(GRANULE - 1U));
}

#if MINRPC_LAYOUT && defined(MACHINE_ARENA_BASE)
static struct minrpc_config *config;

/* A layout can give arrays the memory behind the heap. */
static void set_top(uint8_t *top)
{
	heap_top = top;
	if (config != NULL) {
		config->more_memory = top;
		config->more_memory_size = (uint32_t)(__heap_end - top);
	}
}

void heap_init(struct minrpc_config *server)
{
	config = server;
	set_top(heap_top == NULL ? heap_base() : heap_top);
}
#else
static void set_top(uint8_t *top)
{
	heap_top = top;
}
#endif

static uint8_t *end_of(const struct block *block)
{
	return (uint8_t *)block + block->span;
}

static uint32_t check_of(const struct block *block, uint32_t state)
{
	return state ^ (uint32_t)(uintptr_t)block ^ (uint32_t)block->span;
}

static bool is(const struct block *block, uint32_t state)
{
	return block->check == check_of(block, state);
}

/* The rear guard directly follows the payload, at any alignment. */
static bool is_rear_whole(const struct block *block)
{
	uint32_t rear;

	memcpy(&rear, (const uint8_t *)(block + 1) + block->requested, sizeof(rear));
	return rear == REAR;
}

static void count(size_t taken)
{
	used += (uint32_t)taken;
	most = most < used ? used : most;
}

static void *make_live(struct block *block, size_t requested)
{
	static const uint32_t rear = REAR;

	block->requested = requested;
	block->check = check_of(block, LIVE);
	block->front = LIVE;
	memcpy((uint8_t *)(block + 1) + requested, &rear, sizeof(rear));
	return block + 1;
}

/* The largest end of the heap: arrays and code may have been moved into its memory. */
static uint8_t *limit(void)
{
	const struct minrpc_server *server = minrpc_device();
	const struct minrpc_arena *others[] = {
		&server->arena,
#if MINRPC_CODE_LOADING
		&server->code,
#endif
	};
#ifdef MACHINE_ARENA_BASE
	uint8_t *end = __heap_end;
#else
	uint8_t *end = heap_base(); /* the rest is for arrays, also before the server starts */
#endif

	for (size_t i = 0U; i < sizeof(others) / sizeof(others[0]); i++) {
		if (others[i]->size != 0U && others[i]->base < end &&
		    others[i]->base + others[i]->size > heap_top) {
			end = others[i]->base;
		}
	}
	return end;
}

static __attribute__((noreturn)) void damaged(const void *pointer, const char *what)
{
	char text[128];

	minrpc_text(text, sizeof(text), "fatal: heap: the block at 0x%lx %s; lr 0x%lx",
		    (unsigned long)(uintptr_t)pointer, what, (unsigned long)(uintptr_t)caller);
	fault_report(text, (uintptr_t)minrpc_stack_pointer());
}

static uint32_t *fill_end(struct block *block)
{
	size_t room = block->span - sizeof(*block);

	return (uint32_t *)((uint8_t *)(block + 1) + (room > FILLED ? FILLED : room));
}

static void fill(struct block *block)
{
	for (uint32_t *at = (uint32_t *)(block + 1); at < fill_end(block); at++) {
		*at = FILL;
	}
}

/* The first word of a free block that was written since; NULL: there is none. */
static const uint32_t *written(struct block *block)
{
	for (const uint32_t *at = (const uint32_t *)(block + 1); at < fill_end(block); at++) {
		if (*at != FILL) {
			return at;
		}
	}
	return NULL;
}

static void require_unwritten(struct block *block)
{
	if (written(block) != NULL) {
		damaged(block + 1, "was written after it was freed");
	}
}

/* The link to the free block at the heap's end; the link to NULL when there is none. */
static struct block **last_free(void)
{
	struct block **link = &free_list;

	while (*link != NULL && end_of(*link) != heap_top) {
		link = &(*link)->next;
	}
	return link;
}

/* Creates a block at the end of the heap. Returns NULL if there is no room. */
static struct block *grown(size_t span)
{
	struct block **last;
	struct block *block;
	uint8_t *end;

	if (heap_top == NULL) {
		heap_top = heap_base();
	}
	last = last_free();
	block = *last == NULL ? (void *)heap_top : *last;
	end = limit();
	if (end < (uint8_t *)block || (size_t)(end - (uint8_t *)block) < span) {
		return NULL;
	}
	if (*last != NULL) {
		require_unwritten(block);
		*last = NULL;
	}
	block->span = span;
	set_top(end_of(block));
	return block;
}

/* The first free block that is large enough, cut to the span. */
static struct block *reused(size_t span)
{
	struct block **link = &free_list;
	struct block *block;
	struct block *rest;

	while (*link != NULL && (*link)->span < span) {
		link = &(*link)->next;
	}
	block = *link;
	if (block == NULL) {
		return NULL;
	}
	require_unwritten(block);
	*link = block->next;
	if (block->span - span >= 2U * GRANULE) {
		rest = (void *)((uint8_t *)block + span);
		rest->span = block->span - span;
		rest->next = *link;
		rest->check = check_of(rest, FREE);
		fill(rest);
		*link = rest;
		block->span = span;
	}
	return block;
}

static void *none(void)
{
	errno = ENOMEM;
	return NULL;
}

static void *take(size_t size)
{
	size_t span = (size + OVERHEAD + GRANULE - 1U) & ~(size_t)(GRANULE - 1U);
	struct block *block = span < size ? NULL : reused(span);
	void *array;

	if (block == NULL && span >= size) {
		block = grown(span);
	}
	if (block != NULL) {
		count(block->span);
		return make_live(block, size);
	}
	array = size > UINT32_MAX ? NULL
				  : minrpc_arena_alloc(&minrpc_device()->arena, (uint32_t)size,
						       GRANULE, MINRPC_ARENA_LIBRARY);
	count(array == NULL ? 0U : size);
	return array == NULL ? none() : array;
}

static bool in_heap(const void *pointer)
{
	return (const uint8_t *)pointer > heap_base() && (const uint8_t *)pointer < heap_top;
}

/* Returns the live block of a pointer from malloc; does not return for any other pointer. */
static struct block *block_of(void *pointer)
{
	struct block *block = (struct block *)pointer - 1;

	if (((uintptr_t)pointer & (GRANULE - 1U)) != 0U) {
		damaged(pointer, "is not of malloc");
	}
	if (is(block, FREE) || block->check == FILL) {
		damaged(pointer, "was freed before");
	}
	if (!is(block, LIVE) || block->requested > block->span - OVERHEAD) {
		damaged(pointer, "is not of malloc, or was written before its begin");
	}
	if (block->front != LIVE) {
		damaged(pointer, "was written before its begin");
	}
	if (!is_rear_whole(block)) {
		damaged(pointer, "was written past its end");
	}
	return block;
}

/* Gives back the memory of the last block, except for the bytes that are filled. */
static void shorten(struct block **last)
{
	struct block *block = *last;
	size_t kept = sizeof(*block) + FILLED;

	if (!MINRPC_GUARDS) {
		*last = NULL;
		kept = 0U;
	}
	block->span = block->span < kept ? block->span : kept;
	set_top(end_of(block));
}

/* Puts the block into the list, which is sorted by address, and merges it with its neighbours. */
static void give_back(struct block *block)
{
	struct block **link = &free_list;
	struct block *merged;

	while (*link != NULL && end_of(*link) < (uint8_t *)block) {
		link = &(*link)->next;
	}
	/*
	 * Marks also a block that is merged with the block before it: it may be freed a second
	 * time.
	 */
	block->check = check_of(block, FREE);
	merged = *link;
	if (merged != NULL && end_of(merged) == (uint8_t *)block) {
		require_unwritten(merged);
		merged->span += block->span;
	} else {
		block->next = merged;
		*link = merged = block;
	}
	if (merged->next != NULL && end_of(merged) == (uint8_t *)merged->next) {
		require_unwritten(merged->next);
		merged->span += merged->next->span;
		merged->next = merged->next->next;
	}
	if (end_of(merged) == heap_top) {
		shorten(link);
	}
	merged->check = check_of(merged, FREE);
	fill(merged);
}

static void release(void *pointer)
{
	struct minrpc_arena *arena = &minrpc_device()->arena;
	struct block *block;
	uint32_t size;

	if (!in_heap(pointer)) {
		if (!minrpc_arena_find(arena, (uintptr_t)pointer, MINRPC_ARENA_LIBRARY, &size)) {
			damaged(pointer, "is not of malloc, or was freed before");
		}
		(void)minrpc_arena_free(arena, (uintptr_t)pointer, MINRPC_ARENA_LIBRARY);
		used -= size;
		return;
	}
	block = block_of(pointer);
	used -= (uint32_t)block->span;
	give_back(block);
}

static size_t size_of(void *pointer)
{
	uint32_t size = 0U;

	if (in_heap(pointer)) {
		return block_of(pointer)->requested;
	}
	if (!minrpc_arena_find(&minrpc_device()->arena, (uintptr_t)pointer, MINRPC_ARENA_LIBRARY,
			       &size)) {
		damaged(pointer, "is not of malloc, or was freed before");
	}
	return size;
}

void *malloc(size_t size)
{
	caller = __builtin_return_address(0);
	return take(size);
}

void free(void *pointer)
{
	caller = __builtin_return_address(0);
	if (pointer != NULL) {
		release(pointer);
	}
}

void *calloc(size_t number, size_t size)
{
	size_t all;
	void *pointer;

	caller = __builtin_return_address(0);
	pointer = __builtin_mul_overflow(number, size, &all) ? none() : take(all);
	return pointer == NULL ? NULL : memset(pointer, 0, all);
}

void *realloc(void *pointer, size_t size)
{
	size_t before;
	void *moved;

	caller = __builtin_return_address(0);
	before = pointer == NULL ? 0U : size_of(pointer);
	if (pointer != NULL && in_heap(pointer)) {
		struct block *block = (struct block *)pointer - 1;

		if (size <= block->span - OVERHEAD && size >= before / 2U) {
			return make_live(block, size);
		}
	}
	moved = take(size);
	if (moved != NULL && pointer != NULL) {
		memcpy(moved, pointer, before < size ? before : size);
		release(pointer);
	}
	return moved;
}

size_t malloc_usable_size(void *pointer);

size_t malloc_usable_size(void *pointer)
{
	caller = __builtin_return_address(0);
	return pointer == NULL ? 0U : size_of(pointer);
}

/* aligned_alloc of C11, up to the alignment that each block has. */
void *aligned_alloc(size_t alignment, size_t size)
{
	caller = __builtin_return_address(0);
	return alignment <= GRANULE ? take(size) : none();
}

#if MINRPC_GUARDS
/* The written place of a block, which is repaired; NULL: there is none. */
static const void *inspect(struct block *block, const char **where)
{
	const uint32_t *word;

	if (is(block, LIVE)) {
		*where = "beside the memory of malloc";
		if (block->front == LIVE && is_rear_whole(block)) {
			return NULL;
		}
		return make_live(block, block->requested);
	}
	if (!is(block, FREE)) {
		damaged(block + 1, "was written before its begin");
	}
	*where = "to memory that was freed,";
	word = written(block);
	fill(block);
	return word;
}

const void *heap_inspect(const char **where)
{
	const void *found = NULL;
	const char *other;

	caller = NULL;
	for (struct block *block = (void *)heap_base(); (uint8_t *)block < heap_top;
	     block = (void *)end_of(block)) {
		const void *place = inspect(block, found == NULL ? where : &other);

		found = found == NULL ? place : found;
	}
	return found;
}
#endif

void heap_use(uint32_t *now, uint32_t *peak, bool reset)
{
	*now = used;
	*peak = most;
	most = reset ? used : most;
}
