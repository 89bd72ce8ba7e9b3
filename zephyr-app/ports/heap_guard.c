/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Guards surround each block, and a list has all of them. A freed block is filled and kept for a
 * while: a write to it changes the fill. Blocks that the C library took by itself, as in strdup,
 * are not in the list; the C library's own functions handle them.
 */
#include "heap_guard.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LIVE   ((size_t)0x5ca1ab1eU)
#define FREE   ((size_t)0x0f4eeb10U)
#define REAR   0xa7beedfeeda55ed1U
#define FILL   0xeeU
/* Largest number of bytes of a freed block that are filled. */
#define FILLED 256U

/* Number of freed blocks that are kept. */
#ifndef HEAP_GUARD_KEPT
#define HEAP_GUARD_KEPT 64U
#endif
#define KEPT_BYTES (1024U * 1024U)

struct block {
	struct block *next;
	struct block *previous;
	size_t size;
	size_t check; /* of the fields above; directly in front of the payload */
};

/* The rear guard directly follows the payload, at any alignment. */
#define OVERHEAD (sizeof(struct block) + sizeof(uint64_t))

/* The ring of live blocks, and the ring of freed blocks, the oldest first. */
static struct block live = {.next = &live, .previous = &live};
static struct block freed = {.next = &freed, .previous = &freed};
static size_t kept;
static size_t kept_bytes;

void *__real_malloc(size_t size);
void *__real_calloc(size_t number, size_t size);
void *__real_realloc(void *pointer, size_t size);
void __real_free(void *pointer);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t number, size_t size);
void *__wrap_realloc(void *pointer, size_t size);
void __wrap_free(void *pointer);

static size_t check_of(const struct block *block, size_t state)
{
	return state ^ (size_t)block ^ (size_t)block->next ^ (size_t)block->previous ^ block->size;
}

static bool is(const struct block *block, size_t state)
{
	return block->check == check_of(block, state);
}

static uint8_t *payload(struct block *block)
{
	return (uint8_t *)(block + 1);
}

static bool is_rear_whole(struct block *block)
{
	uint64_t rear;

	memcpy(&rear, payload(block) + block->size, sizeof(rear));
	return rear == REAR;
}

static void put_rear(struct block *block)
{
	static const uint64_t rear = REAR;

	memcpy(payload(block) + block->size, &rear, sizeof(rear));
}

static void join(struct block *first, struct block *second, size_t state)
{
	first->next = second;
	second->previous = first;
	first->check = check_of(first, state);
	second->check = check_of(second, state);
}

static void append(struct block *ring, struct block *block, size_t state)
{
	join(ring->previous, block, state);
	join(block, ring, state);
}

/* Ends the program unless the neighbouring blocks are undamaged. */
static void take_out(struct block *block, size_t state, const void *caller)
{
	struct block *beside[] = {block->previous, block->next};

	for (size_t i = 0U; i < 2U; i++) {
		if (beside[i] != &live && beside[i] != &freed && !is(beside[i], state)) {
			heap_guard_damaged(beside[i] + 1, "was written before its begin", caller);
		}
	}
	join(block->previous, block->next, state);
}

static size_t filled(const struct block *block)
{
	return block->size < FILLED ? block->size : FILLED;
}

static const uint8_t *written(struct block *block)
{
	const uint8_t *at = payload(block);

	for (size_t left = filled(block); left != 0U; left--, at++) {
		if (*at != FILL) {
			return at;
		}
	}
	return NULL;
}

static void give_back_oldest(const void *caller)
{
	struct block *block = freed.next;

	if (!is(block, FREE) || written(block) != NULL) {
		heap_guard_damaged(block + 1, "was written after it was freed", caller);
	}
	take_out(block, FREE, caller);
	kept--;
	kept_bytes -= block->size;
	/* Stays until the memory is allocated again: the block may be freed a second time. */
	block->check = FREE ^ (size_t)block;
	__real_free(block);
}

static void *none(void)
{
	errno = ENOMEM;
	return NULL;
}

static void *make_live(struct block *block, size_t size)
{
	if (block == NULL) {
		return NULL;
	}
	block->size = size;
	append(&live, block, LIVE);
	put_rear(block);
	return payload(block);
}

static void *take(size_t size, bool zeroed, const void *caller)
{
	size_t all;
	struct block *block;

	if (__builtin_add_overflow(size, OVERHEAD, &all)) {
		return none();
	}
	block = zeroed ? __real_calloc(1U, all) : __real_malloc(all);
	while (block == NULL && freed.next != &freed) {
		give_back_oldest(caller);
		block = zeroed ? __real_calloc(1U, all) : __real_malloc(all);
	}
	return make_live(block, size);
}

/* Returns the block of a pointer from `take`; NULL: the pointer is from the C library. */
static struct block *block_of(void *pointer, const void *caller)
{
	struct block *block = (struct block *)pointer - 1;
	struct block *other = live.next;

	if (((uintptr_t)pointer & (_Alignof(struct block) - 1U)) != 0U) {
		return NULL;
	}
	if (is(block, FREE) || block->check == (FREE ^ (size_t)block)) {
		heap_guard_damaged(pointer, "was freed before", caller);
	}
	if (is(block, LIVE)) {
		if (!is_rear_whole(block)) {
			heap_guard_damaged(pointer, "was written past its end", caller);
		}
		return block;
	}
	while (other != &live && other != block && is(other, LIVE)) {
		other = other->next;
	}
	if (other != &live) {
		heap_guard_damaged(other + 1, "was written before its begin", caller);
	}
	return NULL;
}

static void release(struct block *block, const void *caller)
{
	take_out(block, LIVE, caller);
	memset(payload(block), FILL, filled(block));
	append(&freed, block, FREE);
	kept++;
	kept_bytes += block->size;
	while (kept > HEAP_GUARD_KEPT || (kept != 0U && kept_bytes > KEPT_BYTES)) {
		give_back_oldest(caller);
	}
}

void *__wrap_malloc(size_t size)
{
	void *pointer;

	heap_guard_lock();
	pointer = take(size, false, __builtin_return_address(0));
	heap_guard_unlock();
	return pointer;
}

void *__wrap_calloc(size_t number, size_t size)
{
	size_t all;
	void *pointer;

	if (__builtin_mul_overflow(number, size, &all)) {
		return none();
	}
	heap_guard_lock();
	pointer = take(all, true, __builtin_return_address(0));
	heap_guard_unlock();
	return pointer;
}

void __wrap_free(void *pointer)
{
	struct block *block;

	if (pointer == NULL) {
		return;
	}
	heap_guard_lock();
	block = block_of(pointer, __builtin_return_address(0));
	if (block == NULL) {
		__real_free(pointer);
	} else {
		release(block, __builtin_return_address(0));
	}
	heap_guard_unlock();
}

/* Lets the C library enlarge the block, which needs less memory than a second block. */
static void *resized(struct block *block, size_t size, const void *caller)
{
	size_t before = block->size;
	struct block *fresh;

	if (size > SIZE_MAX - OVERHEAD) {
		return none();
	}
	take_out(block, LIVE, caller);
	fresh = __real_realloc(block, size + OVERHEAD);
	if (fresh == NULL) {
		(void)make_live(block, before);
	}
	return make_live(fresh, size);
}

/* Blocks that are kept after free() are also kept after a move. */
static void *moved(void *pointer, size_t size, const void *caller)
{
	struct block *block = pointer == NULL ? NULL : block_of(pointer, caller);
	void *fresh;

	if (pointer != NULL && block == NULL) {
		return __real_realloc(pointer, size);
	}
	if (block != NULL && HEAP_GUARD_KEPT == 0U) {
		return resized(block, size, caller);
	}
	fresh = take(size, false, caller);
	if (fresh != NULL && block != NULL) {
		memcpy(fresh, pointer, block->size < size ? block->size : size);
		release(block, caller);
	}
	return fresh;
}

void *__wrap_realloc(void *pointer, size_t size)
{
	void *fresh;

	heap_guard_lock();
	fresh = moved(pointer, size, __builtin_return_address(0));
	heap_guard_unlock();
	return fresh;
}

/* ------------------------------------------------ functions that look behind a pointer of malloc
 */

#ifdef HEAP_GUARD_GLIBC
#include <stdio.h>

size_t __real_malloc_usable_size(void *pointer);
ssize_t __real_getdelim(char **line, size_t *room, int end, FILE *file);
void *__wrap_reallocarray(void *pointer, size_t number, size_t size);
size_t __wrap_malloc_usable_size(void *pointer);
ssize_t __wrap_getdelim(char **line, size_t *room, int end, FILE *file);
ssize_t __wrap_getline(char **line, size_t *room, FILE *file);

void *__wrap_reallocarray(void *pointer, size_t number, size_t size)
{
	size_t all;

	return __builtin_mul_overflow(number, size, &all) ? none() : __wrap_realloc(pointer, all);
}

size_t __wrap_malloc_usable_size(void *pointer)
{
	struct block *block = NULL;

	heap_guard_lock();
	if (pointer != NULL) {
		block = block_of(pointer, __builtin_return_address(0));
	}
	heap_guard_unlock();
	return block == NULL ? __real_malloc_usable_size(pointer) : block->size;
}

/* The C library enlarges the caller's block, so it gets a block of its own instead. */
ssize_t __wrap_getdelim(char **line, size_t *room, int end, FILE *file)
{
	if (line != NULL && room != NULL && *line != NULL &&
	    __wrap_malloc_usable_size(*line) != 0U && is((struct block *)*line - 1, LIVE)) {
		__wrap_free(*line);
		*line = NULL;
		*room = 0U;
	}
	return __real_getdelim(line, room, end, file);
}

ssize_t __wrap_getline(char **line, size_t *room, FILE *file)
{
	return __wrap_getdelim(line, room, '\n', file);
}
#endif

/* -------------------------------------------------------------------------- after each call */

/* Returns the written place of a block, and repairs the block; NULL: there is none. */
static const void *inspect(struct block *block)
{
	const uint8_t *place;

	if (is(block, LIVE)) {
		place = is_rear_whole(block) ? NULL : payload(block);
		put_rear(block);
		return place;
	}
	place = written(block);
	memset(payload(block), FILL, filled(block));
	return place;
}

static const void *inspect_ring(struct block *ring, size_t state)
{
	const void *found = NULL;

	for (struct block *block = ring->next; block != ring; block = block->next) {
		const void *place;

		if (!is(block, state)) {
			heap_guard_damaged(block + 1, "was written before its begin", NULL);
		}
		place = inspect(block);
		found = found == NULL ? place : found;
	}
	return found;
}

const void *heap_guard_inspect(const char **where)
{
	const void *in_live;
	const void *in_freed;

	heap_guard_lock();
	in_live = inspect_ring(&live, LIVE);
	in_freed = inspect_ring(&freed, FREE);
	heap_guard_unlock();
	*where = in_live != NULL ? "beside the memory of malloc" : "to memory that was freed,";
	return in_live != NULL ? in_live : in_freed;
}
