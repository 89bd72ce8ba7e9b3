/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Where arrays and code lie, changed in a session: live blocks stay, or nothing changes.
 */
#include <string.h>

#include "check.h"
#include "host.h"

enum {
	MORE = 4096,
};

static _Alignas(64) uint8_t more[MORE];

static struct host *start(void)
{
	struct host *host = host_start();

	host->config.more_memory = more;
	host->config.more_memory_size = MORE;
	return host;
}

static uint64_t arena_at(const struct host *host)
{
	return (uintptr_t)host->config.arena;
}

static const struct answer *lay_out(struct host *host, uint64_t arena, uint64_t arena_size,
				    uint64_t code, uint64_t code_size)
{
	struct args args = {0};

	arg(&args, ARG_HANDLE, arena);
	arg(&args, ARG_INT, arena_size);
	arg(&args, ARG_HANDLE, code);
	arg(&args, ARG_INT, code_size);
	return host_call(host, host_global(host, "minrpc.layout"), &args);
}

static void expect_done(const struct answer *answer, uint64_t done)
{
	CHECK_EQ(get_u64(expect_returned(answer, ARG_INT)), done);
}

static const struct answer *code_alloc(struct host *host, uint64_t size)
{
	struct args args = {0};

	arg(&args, ARG_INT, size);
	return host_call(host, host_global(host, "minrpc.code_alloc"), &args);
}

static uint64_t code_block(struct host *host, uint64_t size)
{
	return get_u64(expect_returned(code_alloc(host, size), ARG_HANDLE));
}

static bool is_in(uint64_t address, uint64_t base, uint64_t size)
{
	return address - base < size;
}

TEST(a_smaller_arena_keeps_what_is_in_it)
{
	struct host *host = start();
	uint64_t data = host_alloc(host, 100U);
	uint8_t bytes[100];

	host_write(host, data, memset(bytes, 7, sizeof(bytes)), sizeof(bytes));
	expect_done(lay_out(host, arena_at(host), 4096U, 0U, 0U), 1U);
	CHECK_EQ(host->server.arena.size, 4096U);
	CHECK_EQ(host->server.arena.top, 4096U);
	CHECK_EQ(arena_check(&host->server.arena), 1U);
	expect_exception(host_try_alloc(host, 4096U, 64U), "of 4096; enlarge the arena");
	memset(bytes, 0, sizeof(bytes));
	host_read(host, data, bytes, sizeof(bytes));
	CHECK(bytes[0] == 7U && bytes[99] == 7U);
	/* The layout goes back: the arena's end is free again. */
	expect_done(lay_out(host, arena_at(host), host->config.arena_size, 0U, 0U), 1U);
	host_free_data(host, host_alloc(host, 8192U));
	host_free_data(host, data);
	host_still_serves(host);
	host_stop(host);
}

TEST(blocks_in_the_way_leave_all_as_it_was)
{
	struct host *host = start();
	uint64_t data = host_alloc(host, 8192U);
	struct minrpc_arena before = host->server.arena;

	expect_done(lay_out(host, arena_at(host), 4096U, 0U, 0U), 0U);
	expect_done(lay_out(host, (uintptr_t)more, MORE, 0U, 0U), 0U);
	/* Code would fit; the arrays' place is refused. */
	expect_done(lay_out(host, (uintptr_t)more, MORE, arena_at(host) + 32768U, 4096U), 0U);
	CHECK_EQ(memcmp(&before, &host->server.arena, sizeof(before)), 0);
	CHECK_EQ(host->server.code.size, 0U);
	host_free_data(host, data);
	expect_done(lay_out(host, (uintptr_t)more, MORE, 0U, 0U), 1U);
	data = host_alloc(host, 100U);
	CHECK(is_in(data, (uintptr_t)more, MORE));
	host_still_serves(host);
	host_stop(host);
}

TEST(what_lies_behind_a_gap_is_in_the_way)
{
	struct host *host = start();
	uint64_t first = host_alloc(host, 8192U);
	uint64_t behind = host_alloc(host, 16U);
	struct minrpc_arena before = host->server.arena;

	/* Few bytes are used, but they end beyond the requested arena. */
	host_free_data(host, first);
	CHECK(host->server.arena.used < 4096U);
	expect_done(lay_out(host, arena_at(host), 4096U, 0U, 0U), 0U);
	CHECK_EQ(host->server.arena.size, before.size);
	host_free_data(host, behind);
	expect_done(lay_out(host, arena_at(host), 4096U, 0U, 0U), 1U);
	host_still_serves(host);
	host_stop(host);
}

TEST(a_layout_begins_the_arenas_peak_anew)
{
	struct host *host = start();

	host_free_data(host, host_alloc(host, 8192U));
	CHECK(host->server.arena.peak >= 8192U);
	expect_done(lay_out(host, arena_at(host), 4096U, 0U, 0U), 1U);
	CHECK(host->server.arena.peak <= 4096U);
	host_stop(host);
}

TEST(code_gets_memory_of_its_own_and_goes_back_among_the_arrays)
{
	struct host *host = start();
	uint64_t half = host->config.arena_size / 2U;
	uint64_t before = code_block(host, 64U);
	uint64_t code;

	CHECK(is_in(before, arena_at(host), half));
	expect_done(lay_out(host, arena_at(host), half, arena_at(host) + half, half), 1U);
	code = code_block(host, 64U);
	CHECK(is_in(code, arena_at(host) + half, half));
	CHECK(is_in(host_alloc(host, 64U), arena_at(host), half));
	/* Blocks from the time before it had this memory are given back, too. */
	host_free_data(host, before);
	expect_done(lay_out(host, arena_at(host), 2U * half, 0U, 0U), 0U);
	host_free_data(host, code);
	expect_done(lay_out(host, arena_at(host), 2U * half, 0U, 0U), 1U);
	CHECK(is_in(code_block(host, 64U), arena_at(host), half));
	host_stop(host);
}

TEST(code_lies_in_memory_that_the_port_gave_for_it_only)
{
	struct host *host = start();
	static _Alignas(64) uint8_t code[2048];

	host->config.code = code;
	host->config.code_size = sizeof(code);
	expect_exception(lay_out(host, arena_at(host), 4096U, arena_at(host) + 8192U, 4096U),
			 "no memory for code: 4096 bytes");
	expect_done(lay_out(host, arena_at(host), 4096U, (uintptr_t)code + 1024U, 1024U), 1U);
	CHECK(is_in(code_block(host, 64U), (uintptr_t)code + 1024U, 1024U));
	host_open(host, 9U);
	CHECK_EQ(host->server.code.size, sizeof(code));
	CHECK(is_in(code_block(host, 64U), (uintptr_t)code, 1024U));
	host_stop(host);
}

TEST(what_is_no_memory_is_refused)
{
	struct host *host = start();
	uint64_t at = arena_at(host);
	uint32_t size = host->config.arena_size;
	struct minrpc_arena before = host->server.arena;

	expect_exception(lay_out(host, at, size + 16U, 0U, 0U), "no memory for arrays");
	expect_exception(lay_out(host, at + 16U, size, 0U, 0U), "no memory for arrays");
	expect_exception(lay_out(host, at - 16U, 1024U, 0U, 0U), "no memory for arrays");
	expect_exception(lay_out(host, at, 0U, 0U, 0U), "no memory for arrays: 0 bytes");
	expect_exception(lay_out(host, at, 31U, 0U, 0U), "no memory for arrays: 31 bytes");
	expect_exception(lay_out(host, at, UINT64_MAX, 0U, 0U), "no memory for arrays");
	expect_exception(lay_out(host, 0U, 1024U, 0U, 0U),
			 "no memory for arrays: 1024 bytes at 0x0");
	expect_exception(lay_out(host, (uintptr_t)more + 16U, MORE, 0U, 0U),
			 "no memory for arrays");
	expect_exception(lay_out(host, at, 4096U, at + size - 16U, 1024U), "no memory for code");
	expect_exception(lay_out(host, at, 4096U, 0U, 1024U), "no memory for code");
	expect_exception(lay_out(host, at, 4096U, at + 4080U, 1024U), "would overlap");
	expect_exception(lay_out(host, at + 1008U, 4096U, at, 1024U), "would overlap");
	expect_exception(lay_out(host, at, 4096U, at, 4096U), "would overlap");
	CHECK_EQ(memcmp(&before, &host->server.arena, sizeof(before)), 0);
	CHECK_EQ(host->server.code.size, 0U);
	/* Side by side they do not overlap. */
	expect_done(lay_out(host, at, 4096U, at + 4096U, 1024U), 1U);
	expect_done(lay_out(host, at + 1024U, 4096U, at, 1024U), 1U);
	host_still_serves(host);
	host_stop(host);
}

static const struct answer *numbered_lay_out(struct host *host, uint8_t sequence, uint64_t layout,
					     uint64_t size)
{
	static struct answer answer;
	struct bytes wire = {0};
	struct bytes body = {0};
	struct args args = {0};

	arg(&args, ARG_HANDLE, arena_at(host));
	arg(&args, ARG_INT, size);
	arg(&args, ARG_HANDLE, 0U);
	arg(&args, ARG_INT, 0U);
	put_u64(&body, layout);
	put_args(&body, &args);
	put_numbered_request(&wire, host->session, sequence, RPC_CALL_FUNC, &body);
	host_give(host, &wire);
	host_take_next(host);
	CHECK_EQ(open_numbered(&host->message), sequence);
	answer.code = get_u32(host->message.body.data + 8);
	answer.body = host->message.body.data + 12;
	return &answer;
}

/* In the smallest arena that is taken, with and without blocks, the session goes on. */
TEST(an_arena_has_room_for_what_each_request_needs)
{
	static const uint32_t kept[] = {0U, 100U, 1000U};

	for (size_t i = 0U; i < sizeof(kept) / sizeof(kept[0]); i++) {
		struct host *host = start();
		uint64_t layout = host_global(host, "minrpc.layout");
		uint8_t sequence = 0U;
		uint32_t size = 0U;
		bool done = false;

		if (kept[i] != 0U) {
			(void)host_alloc(host, kept[i]);
		}
		for (; !done; size += 16U) {
			const struct answer *answer =
				numbered_lay_out(host, ++sequence, layout, size);

			CHECK(answer->code == RPC_RETURN || answer->code == RPC_EXCEPTION);
			done = answer->code == RPC_RETURN && get_u64(answer->body + 20) == 1U;
		}
		CHECK_EQ(host->server.arena.size, size - 16U);
		CHECK(size < 700U + 2U * kept[i]);
		(void)arena_check(&host->server.arena);
		CHECK_EQ(numbered_lay_out(host, ++sequence, layout, host->config.arena_size)->code,
			 RPC_RETURN);
		CHECK_EQ(host->server.arena.size, host->config.arena_size);
		expect_exception(lay_out(host, arena_at(host), 96U, 0U, 0U),
				 "too little memory for arrays: 96 bytes");
		host_still_serves(host);
		host_stop(host);
	}
}

TEST(the_next_session_has_the_configurations)
{
	struct host *host = start();
	uint64_t at = arena_at(host);

	expect_done(lay_out(host, (uintptr_t)more, 1024U, at, 8192U), 1U);
	(void)host_alloc(host, 64U);
	(void)code_block(host, 64U);
	host_open(host, 9U);
	CHECK_EQ((uintptr_t)host->server.arena.base, at);
	CHECK_EQ(host->server.arena.size, host->config.arena_size);
	CHECK_EQ(host->server.code.size, 0U);
	CHECK_EQ(arena_check(&host->server.arena), 0U);
	host_still_serves(host);
	host_stop(host);
}

TEST(what_functions_keep_between_sessions_stays_where_it_is)
{
	struct host *host = start();
	void *kept;

	expect_done(lay_out(host, (uintptr_t)more, MORE, 0U, 0U), 1U);
	kept = minrpc_arena_alloc(&host->server.arena, 64U, 16U, MINRPC_ARENA_LIBRARY);
	CHECK(kept != NULL);
	host_open(host, 9U);
	CHECK(host->server.arena.base == more);
	CHECK(minrpc_arena_free(&host->server.arena, (uintptr_t)kept, MINRPC_ARENA_LIBRARY));
	host_open(host, 10U);
	CHECK_EQ((uintptr_t)host->server.arena.base, arena_at(host));
	host_stop(host);
}

TEST(a_numbered_request_takes_memory_for_its_answer_anew)
{
	struct host *host = start();
	struct bytes wire = {0};
	struct bytes body = {0};
	struct args args = {0};
	uint64_t layout = host_global(host, "minrpc.layout");

	arg(&args, ARG_HANDLE, (uintptr_t)more);
	arg(&args, ARG_INT, MORE);
	arg(&args, ARG_HANDLE, 0U);
	arg(&args, ARG_INT, 0U);
	put_u64(&body, layout);
	put_args(&body, &args);
	put_numbered_request(&wire, host->session, 1U, RPC_CALL_FUNC, &body);
	host_give(host, &wire);
	host_take_next(host);
	CHECK_EQ(host->message.type, TYPE_NUMBERED);
	CHECK_EQ(open_numbered(&host->message), 1U);
	CHECK(host->server.arena.base == more);
	CHECK(host->server.spare == NULL);
	host_stop(host);
}

CHECK_MAIN(CASE(a_smaller_arena_keeps_what_is_in_it), CASE(blocks_in_the_way_leave_all_as_it_was),
	   CASE(what_lies_behind_a_gap_is_in_the_way), CASE(a_layout_begins_the_arenas_peak_anew),
	   CASE(code_gets_memory_of_its_own_and_goes_back_among_the_arrays),
	   CASE(code_lies_in_memory_that_the_port_gave_for_it_only),
	   CASE(what_is_no_memory_is_refused), CASE(an_arena_has_room_for_what_each_request_needs),
	   CASE(the_next_session_has_the_configurations),
	   CASE(what_functions_keep_between_sessions_stays_where_it_is),
	   CASE(a_numbered_request_takes_memory_for_its_answer_anew))
