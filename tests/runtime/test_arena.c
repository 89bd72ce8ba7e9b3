/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include <minrpc/arena.h>

#include "check.h"
#include "host.h"

#define GRANULE  MINRPC_ARENA_GRANULE
/* A header, and a guard of 8 bytes. */
#define OVERHEAD (GRANULE + 8U)

static struct minrpc_arena arena;
static _Alignas(64) uint8_t buffer[4096];

static void fresh(void)
{
	minrpc_arena_init(&arena, buffer, sizeof(buffer));
}

static uint8_t *take(uint32_t size, uint32_t alignment, enum minrpc_arena_kind kind)
{
	void *block = minrpc_arena_alloc(&arena, size, alignment, kind);

	CHECK(block != NULL);
	(void)arena_check(&arena);
	return block;
}

static void give(void *block, uint32_t kinds)
{
	CHECK(minrpc_arena_free(&arena, (uintptr_t)block, kinds));
	(void)arena_check(&arena);
}

static void refuse(uint32_t size, uint32_t alignment)
{
	CHECK(minrpc_arena_alloc(&arena, size, alignment, MINRPC_ARENA_DATA) == NULL);
	(void)arena_check(&arena);
}

TEST(neighbours_merge_in_any_order)
{
	static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
					{1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

	fresh();
	for (size_t i = 0U; i < sizeof(orders) / sizeof(orders[0]); i++) {
		uint8_t *blocks[3];
		uint32_t all = minrpc_arena_largest_free(&arena);

		for (int j = 0; j < 3; j++) {
			blocks[j] = take(100U, 1U, MINRPC_ARENA_DATA);
		}
		for (int j = 0; j < 3; j++) {
			give(blocks[orders[i][j]], MINRPC_ARENA_DATA);
		}
		CHECK_EQ(minrpc_arena_largest_free(&arena), all);
		CHECK_EQ(arena.used, 0U);
	}
}

TEST(a_hole_is_used_again)
{
	uint8_t *first;

	fresh();
	first = take(64U, 1U, MINRPC_ARENA_DATA);
	(void)take(64U, 1U, MINRPC_ARENA_DATA);
	give(first, MINRPC_ARENA_DATA);
	CHECK(take(64U, 1U, MINRPC_ARENA_DATA) == first);
}

TEST(every_alignment_is_kept_and_nothing_overlaps)
{
	for (uint32_t alignment = 1U; alignment <= 1024U; alignment *= 2U) {
		uint8_t *first;
		uint8_t *second;

		fresh();
		first = take(10U, alignment, MINRPC_ARENA_DATA);
		second = take(10U, alignment, MINRPC_ARENA_DATA);
		CHECK_EQ((uintptr_t)first % alignment, 0U);
		CHECK_EQ((uintptr_t)second % alignment, 0U);
		CHECK(second >= first + 10);
		give(first, MINRPC_ARENA_DATA);
		give(second, MINRPC_ARENA_DATA);
		CHECK_EQ(arena_check(&arena), 0U);
		CHECK_EQ(minrpc_arena_largest_free(&arena), sizeof(buffer) - OVERHEAD);
	}
}

TEST(an_unaligned_buffer_is_aligned)
{
	for (uint32_t shift = 0U; shift < 20U; shift++) {
		uint8_t *block;

		minrpc_arena_init(&arena, buffer + shift, sizeof(buffer) - 32U);
		block = take(minrpc_arena_largest_free(&arena), 1U, MINRPC_ARENA_DATA);
		CHECK_EQ((uintptr_t)block % GRANULE, 0U);
		CHECK(block >= buffer + shift);
		CHECK(block + minrpc_arena_largest_free(&arena) <=
		      buffer + shift + sizeof(buffer) - 32U);
	}
}

TEST(a_buffer_too_small_holds_nothing)
{
	for (uint32_t size = 0U; size < 2U * GRANULE; size++) {
		minrpc_arena_init(&arena, buffer, size);
		refuse(0U, 1U);
		CHECK_EQ(minrpc_arena_largest_free(&arena), 0U);
		CHECK(!minrpc_arena_free(&arena, (uintptr_t)buffer, UINT32_MAX));
	}
}

TEST(exhaustion_is_an_error_and_changes_nothing)
{
	uint32_t largest;

	fresh();
	largest = minrpc_arena_largest_free(&arena);
	CHECK_EQ(largest, sizeof(buffer) - OVERHEAD);
	refuse(largest + 1U, 1U);
	give(take(largest, 1U, MINRPC_ARENA_DATA), MINRPC_ARENA_DATA);
	(void)take(largest, 1U, MINRPC_ARENA_DATA);
	refuse(0U, 1U);
	CHECK_EQ(minrpc_arena_largest_free(&arena), 0U);
}

TEST(sizes_near_the_end_of_32_bits_are_refused)
{
	fresh();
	for (uint32_t size = UINT32_MAX; size > UINT32_MAX - 80U; size--) {
		refuse(size, 1U);
		refuse(size, 64U);
	}
	refuse(1U, 0x80000000U);
	refuse(1U, 8192U);
}

TEST(a_double_free_is_an_error)
{
	uint8_t *block;

	fresh();
	block = take(32U, 1U, MINRPC_ARENA_DATA);
	give(block, MINRPC_ARENA_DATA);
	CHECK(!minrpc_arena_free(&arena, (uintptr_t)block, MINRPC_ARENA_DATA));
	(void)arena_check(&arena);
}

TEST(foreign_pointers_are_errors)
{
	uint8_t *block;
	uint32_t size;

	fresh();
	block = take(64U, 1U, MINRPC_ARENA_DATA);
	/* Bytes like a header's inside a block are no header. */
	memset(block, 0x10, 64U);
	for (uintptr_t at = (uintptr_t)buffer - 64U; at < (uintptr_t)buffer + 256U; at++) {
		if (at != (uintptr_t)block) {
			CHECK(!minrpc_arena_free(&arena, at, UINT32_MAX));
			CHECK(!minrpc_arena_find(&arena, at, UINT32_MAX, &size));
		}
	}
	CHECK(!minrpc_arena_free(&arena, 0U, UINT32_MAX));
	CHECK(!minrpc_arena_free(&arena, UINTPTR_MAX, UINT32_MAX));
	give(block, MINRPC_ARENA_DATA);
}

TEST(a_block_is_freed_only_as_what_it_is)
{
	uint8_t *block;
	uint32_t size = 0U;

	fresh();
	block = take(33U, 1U, MINRPC_ARENA_OBJECT);
	CHECK(!minrpc_arena_free(&arena, (uintptr_t)block, MINRPC_ARENA_DATA));
	CHECK(!minrpc_arena_find(&arena, (uintptr_t)block, MINRPC_ARENA_DATA, &size));
	CHECK(minrpc_arena_find(&arena, (uintptr_t)block, MINRPC_ARENA_DATA | MINRPC_ARENA_OBJECT,
				&size));
	CHECK_EQ(size, 33U);
	give(block, MINRPC_ARENA_OBJECT | MINRPC_ARENA_NDARRAY);
}

TEST(zero_bytes_are_an_allocation_of_their_own)
{
	uint8_t *first;
	uint32_t size = 1U;

	fresh();
	first = take(0U, 1U, MINRPC_ARENA_DATA);
	CHECK(take(0U, 1U, MINRPC_ARENA_DATA) != first);
	CHECK(minrpc_arena_find(&arena, (uintptr_t)first, MINRPC_ARENA_DATA, &size));
	CHECK_EQ(size, 0U);
}

TEST(peak_is_the_most_that_was_used)
{
	uint8_t *first;
	uint8_t *second;

	fresh();
	first = take(100U, 1U, MINRPC_ARENA_DATA);
	second = take(200U, 1U, MINRPC_ARENA_DATA);
	CHECK_EQ(arena.used, 128U + 224U);
	CHECK_EQ(arena.peak, arena.used);
	give(second, MINRPC_ARENA_DATA);
	give(first, MINRPC_ARENA_DATA);
	(void)take(50U, 1U, MINRPC_ARENA_DATA);
	CHECK_EQ(arena.peak, 128U + 224U);
}

TEST(release_frees_these_kinds_only)
{
	uint8_t *data;
	uint8_t *kept;
	uint32_t size;

	fresh();
	data = take(40U, 1U, MINRPC_ARENA_DATA);
	(void)take(40U, 1U, MINRPC_ARENA_RESULT);
	kept = take(40U, 1U, MINRPC_ARENA_LIBRARY);
	(void)take(40U, 64U, MINRPC_ARENA_OBJECT);
	minrpc_arena_release(&arena, MINRPC_ARENA_OBJECT | MINRPC_ARENA_RESULT);
	CHECK_EQ(arena_check(&arena), 2U);
	CHECK(minrpc_arena_find(&arena, (uintptr_t)data, MINRPC_ARENA_DATA, &size));
	minrpc_arena_release(&arena, MINRPC_ARENA_SESSION);
	CHECK_EQ(arena_check(&arena), 1U);
	CHECK(minrpc_arena_find(&arena, (uintptr_t)kept, MINRPC_ARENA_LIBRARY, &size));
}

/* The smallest request: 8 bytes, or a stack of this size. */
TEST(an_arena_of_two_granules)
{
	minrpc_arena_init(&arena, buffer, 2U * GRANULE);
	CHECK_EQ(minrpc_arena_largest_free(&arena), 8U);
	refuse(9U, 1U);
	give(take(8U, 1U, MINRPC_ARENA_DATA), MINRPC_ARENA_DATA);
	give(take(0U, 1U, MINRPC_ARENA_DATA), MINRPC_ARENA_DATA);
	CHECK(minrpc_workspace_alloc(&arena, 9U, 1U) == NULL);
	CHECK(minrpc_workspace_alloc(&arena, 8U, 1U) != NULL);
	refuse(0U, 1U);
}

/*
 * An arena of nearly 4 GiB is only its numbers here: a copy that does not fit is refused before
 * memory is touched.
 */
TEST(sizes_near_those_of_a_huge_arena_do_not_wrap)
{
	fresh();
	arena.size = 0xfffffff0U;
	arena.end = 0U;
	arena.top = 64U;
	for (uint32_t size = UINT32_MAX; size > 0xffffff00U; size--) {
		CHECK(minrpc_arena_alloc(&arena, size, 1U, MINRPC_ARENA_DATA) == NULL);
		CHECK(minrpc_arena_alloc(&arena, size, 64U, MINRPC_ARENA_DATA) == NULL);
		CHECK(minrpc_workspace_alloc(&arena, size, 1U) == NULL);
		CHECK(minrpc_workspace_alloc(&arena, size, 64U) == NULL);
	}
}

/* --------------------------------------------------------------- workspace */

static uint8_t *push(uint32_t size, uint32_t alignment)
{
	uint8_t *block = minrpc_workspace_alloc(&arena, size, alignment);

	CHECK(block != NULL);
	CHECK_EQ((uintptr_t)block % alignment, 0U);
	memset(block, 0x33, size);
	(void)arena_check(&arena);
	return block;
}

TEST(workspace_is_a_stack)
{
	uint8_t *first;
	uint8_t *second;

	fresh();
	(void)take(100U, 1U, MINRPC_ARENA_DATA);
	first = push(100U, 64U);
	second = push(0U, 64U);
	CHECK(second < first);
	CHECK_EQ(minrpc_workspace_free(&arena, first), MINRPC_DAMAGE_FOREIGN);
	CHECK_EQ(minrpc_workspace_free(&arena, second + 1), MINRPC_DAMAGE_FOREIGN);
	CHECK_EQ(minrpc_workspace_free(&arena, NULL), MINRPC_DAMAGE_FOREIGN);
	CHECK_EQ(minrpc_workspace_free(&arena, second), MINRPC_DAMAGE_NONE);
	CHECK_EQ(minrpc_workspace_free(&arena, second), MINRPC_DAMAGE_FOREIGN);
	CHECK_EQ(minrpc_workspace_free(&arena, first), MINRPC_DAMAGE_NONE);
	CHECK_EQ(arena.top, arena.size);
	CHECK_EQ(minrpc_workspace_free(&arena, first), MINRPC_DAMAGE_FOREIGN);
	CHECK_EQ(minrpc_workspace_free(&arena, arena.base + arena.size + GRANULE),
		 MINRPC_DAMAGE_FOREIGN);
}

TEST(workspace_and_blocks_share_the_room)
{
	uint32_t largest;

	fresh();
	(void)take(1000U, 1U, MINRPC_ARENA_DATA);
	(void)push(1000U, 1U);
	largest = minrpc_arena_largest_free(&arena);
	CHECK_EQ(largest, sizeof(buffer) - 2U * 1024U - OVERHEAD);
	CHECK(minrpc_workspace_alloc(&arena, largest + 1U, 1U) == NULL);
	refuse(largest + 1U, 1U);
	(void)push(largest, 1U);
	refuse(0U, 1U);
	CHECK_EQ(minrpc_arena_largest_free(&arena), 0U);
	CHECK_EQ(arena.peak, arena.size);
	CHECK(minrpc_workspace_alloc(&arena, 0U, 1U) == NULL);
	CHECK(minrpc_workspace_alloc(&arena, 0U, 8192U) == NULL);
}

TEST(every_alignment_of_workspace)
{
	for (uint32_t alignment = 1U; alignment <= 1024U; alignment *= 2U) {
		uint8_t *blocks[3];

		fresh();
		for (uint32_t i = 0U; i < 3U; i++) {
			blocks[i] = push(10U + i, alignment);
		}
		for (uint32_t i = 3U; i-- != 0U;) {
			CHECK_EQ(minrpc_workspace_free(&arena, blocks[i]), MINRPC_DAMAGE_NONE);
		}
		CHECK_EQ(arena.top, arena.size);
	}
}

/* Bytes that alignment leaves free count, too: else workspace would begin in a block. */
TEST(aligned_workspace_never_reaches_the_blocks)
{
	for (uint32_t alignment = 1U; alignment <= 1024U; alignment *= 2U) {
		for (uint32_t taken = 1900U; taken < 4000U; taken += GRANULE) {
			fresh();
			(void)take(taken, 1U, MINRPC_ARENA_DATA);
			if (minrpc_workspace_alloc(&arena, 100U, alignment) != NULL) {
				CHECK(arena.top >= arena.end);
			} else {
				CHECK_EQ(arena.top, arena.size);
			}
			(void)arena_check(&arena);
		}
	}
}

TEST(writes_beside_workspace_are_noticed)
{
	uint8_t *block;

	for (int beside = 0; beside < 8; beside++) {
		fresh();
		block = push(33U, 64U);
		block[33 + beside] ^= 1U;
		CHECK_EQ(minrpc_workspace_free(&arena, block), MINRPC_DAMAGE_PAST);
		CHECK_EQ(arena.top, arena.size);
	}
	for (int beside = 1; beside <= 16; beside++) {
		fresh();
		block = push(33U, 64U);
		block[-beside] ^= 1U;
		CHECK_EQ(minrpc_workspace_free(&arena, block), MINRPC_DAMAGE_BEFORE);
	}
}

/* ------------------------------------------------------------------- guards */

static enum minrpc_damage inspect(const void **array)
{
	*array = NULL;
	return minrpc_arena_inspect(&arena, array);
}

TEST(a_byte_beside_an_array_is_noticed_and_mended)
{
	static const uint32_t sizes[] = {0U, 1U, 7U, 8U, 9U, 15U, 16U, 33U, 100U};

	for (size_t i = 0U; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const void *array;
		uint8_t *block;

		fresh();
		(void)take(50U, 64U, MINRPC_ARENA_DATA);
		block = take(sizes[i], 64U, MINRPC_ARENA_DATA);
		(void)take(50U, 64U, MINRPC_ARENA_LIBRARY);
		CHECK_EQ(inspect(&array), MINRPC_DAMAGE_NONE);
		for (uint32_t j = 0U; j < 8U; j++) {
			block[sizes[i] + j] ^= 0x80U;
			CHECK_EQ(inspect(&array), MINRPC_DAMAGE_PAST);
			CHECK(array == block);
			CHECK_EQ(inspect(&array), MINRPC_DAMAGE_NONE);
		}
		for (int j = 1; j <= 4; j++) {
			block[-j] ^= 0x80U;
			CHECK_EQ(inspect(&array), MINRPC_DAMAGE_BEFORE);
			CHECK(array == block);
			CHECK_EQ(inspect(&array), MINRPC_DAMAGE_NONE);
		}
		CHECK_EQ(arena_check(&arena), 3U);
	}
}

/* The header is overwritten with any bytes. */
TEST(a_damaged_header_is_noticed)
{
	for (uint32_t byte = 0U; byte < 12U; byte++) {
		for (uint32_t bit = 0U; bit < 8U; bit++) {
			const void *array;
			uint8_t *block;
			uint8_t *next;

			fresh();
			block = take(64U, 1U, MINRPC_ARENA_DATA);
			next = take(64U, 1U, MINRPC_ARENA_DATA);
			(void)take(64U, 1U, MINRPC_ARENA_DATA);
			next[(int)byte - 16] ^= (uint8_t)(1U << bit);
			CHECK_EQ(inspect(&array), MINRPC_DAMAGE_HEADERS);
			CHECK(array == block);
		}
	}
}

TEST(a_run_over_an_array_and_the_next_header_is_laid_on_the_first)
{
	const void *array;
	uint8_t *block;

	fresh();
	block = take(64U, 1U, MINRPC_ARENA_DATA);
	(void)take(64U, 1U, MINRPC_ARENA_DATA);
	memset(block, 0, 100U);
	CHECK_EQ(inspect(&array), MINRPC_DAMAGE_HEADERS);
	CHECK(array == block);
}

TEST(what_is_free_has_no_guards)
{
	const void *array;
	uint8_t *block;

	fresh();
	block = take(64U, 1U, MINRPC_ARENA_DATA);
	(void)take(64U, 1U, MINRPC_ARENA_DATA);
	give(block, MINRPC_ARENA_DATA);
	memset(block - 4, 0, 64U + 8U + 4U);
	CHECK_EQ(inspect(&array), MINRPC_DAMAGE_NONE);
	CHECK(take(64U, 1U, MINRPC_ARENA_DATA) == block);
	CHECK_EQ(inspect(&array), MINRPC_DAMAGE_NONE);
}

/* A small generator in this file, so that a failure can be repeated. */
static uint32_t next(uint32_t *state)
{
	*state = *state * 1664525U + 1013904223U;
	return *state >> 8;
}

TEST(many_random_steps_keep_every_byte)
{
	static uint8_t *blocks[24];
	static uint32_t sizes[24];
	uint32_t state = 1U;

	fresh();
	memset(blocks, 0, sizeof(blocks));
	for (uint32_t step = 0U; step < 20000U; step++) {
		uint32_t slot = next(&state) % 24U;

		if (blocks[slot] != NULL) {
			for (uint32_t i = 0U; i < sizes[slot]; i++) {
				CHECK_EQ(blocks[slot][i], slot);
			}
			give(blocks[slot], MINRPC_ARENA_DATA);
			blocks[slot] = NULL;
			continue;
		}
		sizes[slot] = next(&state) % 400U;
		blocks[slot] = minrpc_arena_alloc(&arena, sizes[slot], 1U << next(&state) % 9U,
						  MINRPC_ARENA_DATA);
		if (blocks[slot] != NULL) {
			memset(blocks[slot], (int)slot, sizes[slot]);
		}
		(void)arena_check(&arena);
	}
}

CHECK_MAIN(CASE(neighbours_merge_in_any_order), CASE(a_hole_is_used_again),
	   CASE(every_alignment_is_kept_and_nothing_overlaps), CASE(an_unaligned_buffer_is_aligned),
	   CASE(a_buffer_too_small_holds_nothing), CASE(exhaustion_is_an_error_and_changes_nothing),
	   CASE(sizes_near_the_end_of_32_bits_are_refused), CASE(a_double_free_is_an_error),
	   CASE(foreign_pointers_are_errors), CASE(a_block_is_freed_only_as_what_it_is),
	   CASE(zero_bytes_are_an_allocation_of_their_own), CASE(peak_is_the_most_that_was_used),
	   CASE(release_frees_these_kinds_only), CASE(an_arena_of_two_granules),
	   CASE(sizes_near_those_of_a_huge_arena_do_not_wrap), CASE(workspace_is_a_stack),
	   CASE(workspace_and_blocks_share_the_room), CASE(every_alignment_of_workspace),
	   CASE(aligned_workspace_never_reaches_the_blocks),
	   CASE(writes_beside_workspace_are_noticed),
	   CASE(a_byte_beside_an_array_is_noticed_and_mended), CASE(a_damaged_header_is_noticed),
	   CASE(a_run_over_an_array_and_the_next_header_is_laid_on_the_first),
	   CASE(what_is_free_has_no_guards), CASE(many_random_steps_keep_every_byte))
