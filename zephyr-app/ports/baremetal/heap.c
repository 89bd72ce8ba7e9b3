/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * What malloc has taken: picolibc's heap grows from the end of the data, and what is freed is in a
 * list. It zeroes what it hands out, so what was free and is painted tells what was used since.
 */
#include <stddef.h>
#include <stdint.h>

#include "machine.h"
#include "port.h"

#ifdef MACHINE_ARENA_BASE

#define PAINT 0x5ac35ac3U

/* As picolibc's nano-malloc has it (newlib/libc/stdlib/nano-malloc*). */
struct free_chunk {
	size_t size; /* of all of it */
	struct free_chunk *next;
};

/* Where nothing calls malloc it is not linked, and these are nowhere. */
extern struct free_chunk *__malloc_free_list __attribute__((weak));
extern char *__malloc_sbrk_start __attribute__((weak));
extern char *__malloc_sbrk_top __attribute__((weak));

/* When the peak was reset: in use, where the heap ended, and how many words were painted. */
static struct {
	uint32_t used;
	char *top;
	uint32_t painted;
} since;

static uint32_t *body_of(struct free_chunk *chunk)
{
	return (uint32_t *)(void *)(chunk + 1);
}

static uint32_t body_words(const struct free_chunk *chunk)
{
	return chunk->size > sizeof(*chunk)
		       ? (uint32_t)((chunk->size - sizeof(*chunk)) / sizeof(uint32_t))
		       : 0U;
}

static uint32_t in_use(void)
{
	uint32_t used = (uint32_t)(__malloc_sbrk_top - __malloc_sbrk_start);

	for (struct free_chunk *chunk = __malloc_free_list; chunk != NULL; chunk = chunk->next) {
		used -= (uint32_t)chunk->size;
	}
	return used;
}

/* Words of paint in what the heap had when the peak was reset. */
static uint32_t still_painted(void)
{
	uint32_t words = 0U;

	for (struct free_chunk *chunk = __malloc_free_list; chunk != NULL; chunk = chunk->next) {
		const volatile uint32_t *at = body_of(chunk);

		for (uint32_t i = 0U; i < body_words(chunk); i++) {
			words += at[i] == PAINT;
		}
	}
	return words;
}

static void reset_peak(void)
{
	since.used = in_use();
	since.top = __malloc_sbrk_top;
	since.painted = 0U;
	for (struct free_chunk *chunk = __malloc_free_list; chunk != NULL; chunk = chunk->next) {
		volatile uint32_t *at = body_of(chunk);

		for (uint32_t i = 0U; i < body_words(chunk); i++) {
			at[i] = PAINT;
		}
		since.painted += body_words(chunk);
	}
}

void heap_use(uint32_t *used, uint32_t *peak, bool reset)
{
	uint32_t touched;

	*used = 0U;
	*peak = 0U;
	if (&__malloc_free_list == NULL) {
		return;
	}
	touched = since.painted - still_painted();
	*used = in_use();
	*peak = since.used + (uint32_t)(__malloc_sbrk_top - since.top) +
		touched * (uint32_t)sizeof(uint32_t);
	*peak = *peak < *used ? *used : *peak;
	if (reset) {
		reset_peak();
	}
}

#else

void heap_use(uint32_t *used, uint32_t *peak, bool reset)
{
	(void)reset;
	*used = 0U;
	*peak = 0U;
}

/* Behind the data lies the arena: there is no heap, and malloc gives nothing. */
void *sbrk(ptrdiff_t more);

void *sbrk(ptrdiff_t more)
{
	(void)more;
	return (void *)-1;
}

#endif
