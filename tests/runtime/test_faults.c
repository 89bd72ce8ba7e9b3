/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Input that stops TVM's own device runtime must not stop ours: after each fault the good request
 * is answered.
 */
#include <stdio.h>

#include "check.h"
#include "functions.h"
#include "host.h"

/* The bytes of `wire` (freed) get no answer, and do no harm. */
static void expect_ignored(struct host *host, struct bytes *wire)
{
	host_give(host, wire);
	host_expect_silence(host);
	host_still_serves(host);
}

/* The bytes of `wire` (freed) are answered by an exception, before anything else. */
static void expect_refused(struct host *host, struct bytes *wire)
{
	host_give(host, wire);
	CHECK(host_take(host));
	CHECK_EQ(get_u32(host->message.body.data + 8), RPC_EXCEPTION);
	host_still_serves(host);
}

TEST(a_wrong_crc_is_dropped_and_not_carried_out)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");
	struct bytes wire = {0};

	put_call(&wire, host->session, tick);
	wire.data[wire.size - 1U] ^= 0x01U;
	expect_ignored(host, &wire);
	CHECK_EQ(host_functions.calls, 0U);
	CHECK_EQ(host->server.counters[MINRPC_CRC_ERRORS], 1U);
	host_stop(host);
}

TEST(a_corrupt_session_start_changes_nothing)
{
	struct host *host = host_start();
	struct bytes wire = {0};

	put_corrupt(&wire, 0x44U, TYPE_INIT, (const uint8_t[]){1}, 1U);
	put_corrupt(&wire, 0U, TYPE_TERMINATE, NULL, 0U);
	expect_ignored(host, &wire);
	host_stop(host);
}

/* Cut after each of its bytes, a frame is forgotten when the next begins. */
TEST(a_frame_cut_anywhere_costs_only_itself)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");
	struct bytes wire = {0};
	uint32_t whole;

	put_call(&wire, host->session, tick);
	whole = wire.size;
	for (wire.size = 0U; wire.size < whole; wire.size++) {
		/*
		 * A byte ff at the cut waits for its second: a restarted writer sends fe first.
		 */
		struct bytes resync = {0};

		host_receive(host, &wire);
		put_u8(&resync, 0xfeU);
		host_give(host, &resync);
		host_still_serves(host);
	}
	bytes_free(&wire);
	CHECK_EQ(host_functions.calls, 0U);
	host_stop(host);
}

TEST(a_log_from_the_client_is_ignored)
{
	struct host *host = host_start();
	struct bytes wire = {0};

	put_message(&wire, 0U, TYPE_LOG, (const uint8_t *)"hello", 5U);
	put_message(&wire, host->session, TYPE_LOG, (const uint8_t *)"hello", 5U);
	put_message(&wire, 0U, TYPE_LOG, NULL, 0U);
	expect_ignored(host, &wire);
	host_stop(host);
}

TEST(foreign_session_ids_are_ignored)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");
	struct bytes wire = {0};

	put_call(&wire, (uint16_t)(host->session + 1U), tick);
	put_call(&wire, 0U, tick);
	put_call(&wire, host->session & 0xffU, tick);
	expect_ignored(host, &wire);
	CHECK_EQ(host_functions.calls, 0U);
	CHECK_EQ(host->server.counters[MINRPC_STALE_MESSAGES], 3U);
	host_stop(host);
}

TEST(a_request_of_the_last_session_is_not_answered)
{
	struct host *host = host_start();
	uint16_t old = host->session;
	struct bytes wire = {0};

	host_open(host, 0x23U);
	CHECK(host->session != old);
	put_call(&wire, old, host_function(host, "tick"));
	expect_ignored(host, &wire);
	host_stop(host);
}

TEST(five_thousand_session_starts_without_a_call)
{
	struct host *host = host_start();

	for (uint32_t i = 0U; i < 5000U; i++) {
		host_open(host, (uint8_t)(1U + i % 255U));
	}
	host_still_serves(host);
	CHECK_EQ(host->server.arena.used, 0U);
	host_stop(host);
}

TEST(a_length_over_the_buffer_is_skipped_and_answered)
{
	struct host *host = host_start();
	struct bytes body = {0};

	put_u64(&body, 0U);
	for (uint32_t i = 0U; i < 20000U; i++) {
		put_u8(&body, (uint8_t)i);
	}
	expect_exception(host_request(host, RPC_CALL_FUNC, &body), "20023 bytes");
	CHECK_CONTAINS(host->answer.text, "8192");
	CHECK_EQ(host->server.counters[MINRPC_OVERSIZE_FRAMES], 1U);
	host_still_serves(host);
	host_stop(host);
}

TEST(a_nonsense_length_is_skipped_and_said_in_the_log)
{
	static const uint32_t lengths[] = {8193U, 0x10000U, 0x7f7f7f7fU, 0x80000000U, 0xfefefefeU};

	for (size_t i = 0U; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct host *host = host_start();
		struct bytes wire = {0};

		put(&wire, (const uint8_t[]){0xff, 0xfd}, 2U);
		put_u32(&wire, lengths[i]);
		put_fill(&wire, 0x20U, 10000U);
		if (lengths[i] == 8193U) {
			wire.size = 500U;
		}
		put_message(&wire, 0U, TYPE_LOG, (const uint8_t *)"x", 1U);
		host_give(host, &wire);
		host_expect_log(host, "8192");
		host_expect_silence(host);
		host_still_serves(host);
		host_stop(host);
	}
}

/*
 * Bytes like a session start at the front of a frame that never ends well must not end the session.
 */
TEST(an_oversize_session_start_without_a_good_crc_changes_nothing)
{
	static const uint8_t types[] = {TYPE_INIT,   TYPE_TERMINATE, TYPE_REPLY,
					TYPE_NORMAL, TYPE_NUMBERED,  TYPE_PROBE};

	for (size_t i = 0U; i < sizeof(types); i++) {
		struct host *host = host_start();
		struct bytes body = {0};
		struct bytes wire = {0};

		put_fill(&body, 1U, 9000U);
		put_corrupt(&wire, host->session, types[i], body.data, body.size);
		bytes_free(&body);
		host_give(host, &wire);
		host_expect_log(host, "9003 bytes");
		host_expect_silence(host);
		host_still_serves(host);
		host_stop(host);
	}
}

TEST(an_oversize_frame_is_told_once)
{
	struct host *host = host_start();
	struct bytes body = {0};
	struct bytes wire = {0};

	put_fill(&body, 1U, 9000U);
	expect_exception(host_request(host, RPC_CALL_FUNC, &body), "9015 bytes");
	/* The next frame is cut before its length is known. */
	put(&wire, (const uint8_t[]){0xff, 0xfd, 0x01}, 3U);
	put_message(&wire, 0U, TYPE_LOG, (const uint8_t *)"x", 1U);
	expect_ignored(host, &wire);
	/* The same holds for a frame after a damaged frame that was too long, and was reported. */
	put_fill(&body, 1U, 9000U);
	put_corrupt(&wire, host->session, TYPE_NORMAL, body.data, body.size);
	bytes_free(&body);
	host_give(host, &wire);
	host_expect_log(host, "skipped 9003 bytes");
	put(&wire, (const uint8_t[]){0xff, 0xfd, 0x01}, 3U);
	put_message(&wire, 0U, TYPE_LOG, (const uint8_t *)"x", 1U);
	expect_ignored(host, &wire);
	host_stop(host);
}

TEST(unknown_rpc_codes_are_exceptions)
{
	static const uint32_t codes[] = {0U, 4U, 5U, 8U, 22U, 23U, 255U, 0x80000003U, UINT32_MAX};
	struct host *host = host_start();

	for (size_t i = 0U; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct bytes body = {0};
		char number[16];

		(void)snprintf(number, sizeof(number), "%u", (unsigned int)codes[i]);
		expect_exception(host_request(host, codes[i], &body), number);
		host_still_serves(host);
	}
	host_stop(host);
}

TEST(unknown_type_codes_are_exceptions)
{
	static const uint32_t codes[] = {13U, 14U, 16U, 99U, 0x80000000U, UINT32_MAX};
	struct host *host = host_start();
	uint64_t inc = host_function(host, "inc");

	for (size_t i = 0U; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct args args = {0};
		char number[16];

		(void)snprintf(number, sizeof(number), "%u", (unsigned int)codes[i]);
		arg(&args, codes[i], 1U);
		expect_exception(host_call(host, inc, &args), number);
		host_still_serves(host);
	}
	host_stop(host);
}

TEST(every_short_body_is_an_exception)
{
	struct host *host = host_start();

	for (uint32_t code = RPC_INIT_SERVER; code <= RPC_CURRENT_STREAM; code++) {
		for (uint32_t size = 0U; size < 24U; size++) {
			struct bytes body = {0};

			put_fill(&body, 0xeeU, size);
			expect_exception(host_request(host, code, &body), "");
		}
	}
	host_still_serves(host);
	host_stop(host);
}

TEST(a_packet_length_that_lies_is_an_exception)
{
	static const uint64_t lengths[] = {15U, 17U, 0xffffffffU, 0x100000010U, UINT64_MAX};
	struct host *host = host_start();

	for (size_t i = 0U; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct bytes packet = {0};
		struct bytes wire = {0};

		put_u64(&packet, lengths[i]);
		put_u32(&packet, RPC_CALL_FUNC);
		put_u64(&packet, 0x80008000U);
		put_u32(&packet, 0U);
		put_message(&wire, host->session, TYPE_NORMAL, packet.data, packet.size);
		bytes_free(&packet);
		expect_refused(host, &wire);
	}
	host_stop(host);
}

TEST(a_message_too_short_for_a_packet)
{
	struct host *host = host_start();

	for (uint32_t size = 0U; size < 8U; size++) {
		struct bytes wire = {0};

		put_message(&wire, host->session, TYPE_NORMAL, (const uint8_t[8]){0}, size);
		expect_refused(host, &wire);
	}
	host_stop(host);
}

TEST(an_empty_packet_is_ignored)
{
	struct host *host = host_start();
	struct bytes wire = {0};

	put_message(&wire, host->session, TYPE_NORMAL, (const uint8_t[8]){0}, 8U);
	expect_ignored(host, &wire);
	host_stop(host);
}

TEST(frames_of_no_or_little_content_are_ignored)
{
	struct host *host = host_start();

	for (uint32_t size = 0U; size < 3U; size++) {
		struct bytes wire = {0};

		put_frame(&wire, (const uint8_t[]){0, 0, 0}, size);
		expect_ignored(host, &wire);
	}
	host_stop(host);
}

static void expect_no_room(struct host *host, uint64_t size, const char *asked)
{
	expect_exception(host_try_alloc(host, size, 128U), asked);
	CHECK_CONTAINS(host->answer.text, "of 65536");
	CHECK_CONTAINS(host->answer.text, "enlarge the arena");
}

TEST(an_allocation_over_the_arena_says_what_was_asked_and_what_is_free)
{
	struct host *host = host_start();
	struct args args = {0};

	/* An earlier error, whose text must not come back. */
	expect_exception(host_call(host, 0x7000U, &args), "0x7000");
	expect_no_room(host, 1U << 30, "asked for 1073741824 bytes, largest free 65512");
	expect_no_room(host, 65513U, "asked for 65513 bytes");
	expect_no_room(host, 0xffffffffffffffffU, "asked for 4294967295 bytes");
	expect_no_room(host, 1ULL << 40, "asked for");
	host_still_serves(host);
	host_free_data(host, host_alloc(host, 60000U));
	host_stop(host);
}

static const struct answer *copy(struct host *host, uint32_t code, enum dialect dialect,
				 const struct tensor *tensor, uint32_t nbytes)
{
	struct bytes body = {0};

	put_copy(&body, dialect, tensor, nbytes);
	put_fill(&body, 0x77U, code == RPC_COPY_TO ? nbytes : 0U);
	return host_request(host, code, &body);
}

TEST(copies_outside_of_what_was_allocated_are_exceptions)
{
	static const uint32_t codes[] = {RPC_COPY_FROM, RPC_COPY_TO};
	struct host *host = host_start();
	uint64_t data = host_alloc(host, 100U);
	const struct {
		uint64_t data;
		uint64_t offset;
		uint32_t size;
	} bad[] = {
		{0U, 0U, 1U},
		{1U, 0U, 1U},
		{UINT64_MAX, 0U, 1U},
		{data + 16U, 0U, 16U},
		{data - 16U, 0U, 1U},
		{data + (1ULL << 32), 0U, 1U},
		{(uintptr_t)host, 0U, 8U},
		{(uintptr_t)host->config.receive_buffer, 0U, 8U},
		{data, 0U, 101U},
		{data, 100U, 1U},
		{data, 99U, 2U},
		{data, 101U, 1U},
		{data, UINT64_MAX, 1U},
		{data, UINT64_MAX, 2U},
		{data, 1ULL << 32, 1U},
		{data, (1ULL << 32) - 1U, 2U},
	};

	for (size_t i = 0U; i < sizeof(bad) / sizeof(bad[0]); i++) {
		for (int code = 0; code < 2; code++) {
			struct tensor tensor = tensor_1d(bad[i].data, 0U, 8U, bad[i].size);

			tensor.offset = bad[i].offset;
			expect_exception(copy(host, codes[code], V8, &tensor, bad[i].size), "");
			expect_exception(copy(host, codes[code], V7, &tensor, bad[i].size), "");
			host_still_serves(host);
		}
	}
	host_free_data(host, data);
	host_stop(host);
}

TEST(a_copy_to_freed_memory_is_an_exception)
{
	struct host *host = host_start();
	uint64_t data = host_alloc(host, 100U);
	struct tensor tensor = tensor_1d(data, 0U, 8U, 100);

	host_free_data(host, data);
	expect_exception(copy(host, RPC_COPY_TO, V8, &tensor, 100U), "0x");
	expect_exception(copy(host, RPC_COPY_FROM, V8, &tensor, 100U), "0x");
	expect_exception(host_try_free(host, data), "0x");
	host_still_serves(host);
	host_stop(host);
}

TEST(counts_of_the_wire_are_checked_before_they_are_used)
{
	/* 2^29 times 8 bytes are 2^32. */
	static const uint32_t counts[] = {2U,          3U,          1000U,       0x1fffffffU,
					  0x20000000U, 0x20000001U, 0x3fffffffU, 0x40000000U,
					  0x80000000U, UINT32_MAX};
	struct host *host = host_start();
	uint64_t inc = host_function(host, "inc");

	for (size_t i = 0U; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct bytes body = {0};

		/* The count says several arguments, but there is one argument. */
		put_u64(&body, inc);
		put_u32(&body, counts[i]);
		put_u32(&body, ARG_INT);
		put_u64(&body, 1U);
		expect_exception(host_request(host, RPC_CALL_FUNC, &body), "");
		/* A tensor with this number of dimensions. */
		put_u64(&body, inc);
		put_u32(&body, 1U);
		put_u32(&body, ARG_TENSOR);
		put_u64(&body, 0U);
		put_u64(&body, 1U);
		put_u32(&body, counts[i]);
		put_u32(&body, 0x00010800U);
		put_u64(&body, 1U);
		expect_exception(host_request(host, RPC_CALL_FUNC, &body), "malformed arguments");
		/* A string with this number of bytes. */
		put_u64(&body, inc);
		put_u32(&body, 1U);
		put_u32(&body, ARG_STRING);
		put_u64(&body, counts[i] + (i % 2U == 0U ? 0U : 0xffffffff00000000U));
		put_u8(&body, 'x');
		expect_exception(host_request(host, RPC_CALL_FUNC, &body), "");
	}
	host_still_serves(host);
	host_stop(host);
}

static uint64_t make_evaluator(struct host *host, const char *name, uint64_t number,
			       uint64_t repeat)
{
	uint64_t create = host_global(host, "runtime.RPCTimeEvaluator");
	struct args args = {0};

	arg(&args, ARG_MODULE, 0x8000U);
	arg_string(&args, name);
	arg(&args, ARG_INT, 1U);
	arg(&args, ARG_INT, 0U);
	arg(&args, ARG_INT, number);
	arg(&args, ARG_INT, repeat);
	arg(&args, ARG_INT, 0U);
	arg_string(&args, "");
	return get_u64(expect_returned(host_call(host, create, &args), ARG_FUNCTION));
}

TEST(a_timed_function_that_fails_leaves_the_timer_free)
{
	struct host *host = host_start();
	uint64_t evaluator = make_evaluator(host, "fail_at", 10U, 3U);
	struct args args = {0};

	/* In the first batch: calls 2 to 11. */
	host_functions.fail_at = 5U;
	expect_exception(host_call(host, evaluator, &args), "-1");
	CHECK_EQ(host->clock.begun, host->clock.ended);
	host_functions.fail_at = 0U;
	(void)expect_returned(host_call(host, evaluator, &args), ARG_BYTES);
	host_stop(host);
}

TEST(freeing_the_system_library_leaves_it)
{
	static const uint32_t types[] = {ARG_MODULE, ARG_OBJECT};
	struct host *host = host_start();

	for (int i = 0; i < 2; i++) {
		struct args args = {0};

		arg(&args, ARG_HANDLE, 0x8000U);
		arg(&args, ARG_INT, types[i]);
		expect_void(host_syscall(host, RPC_FREE_HANDLE, &args));
		host_still_serves(host);
	}
	host_stop(host);
}

TEST(after_a_shutdown_the_next_session_is_served)
{
	struct host *host = host_start();
	struct bytes wire = {0};

	put_message(&wire, host->session, TYPE_NORMAL,
		    (const uint8_t[]){4, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}, 12U);
	host_give(host, &wire);
	host_expect_silence(host);
	host_open(host, 0x31U);
	host_still_serves(host);
	host_stop(host);
}

/* The dead session sends nothing more: neither for a damaged frame nor for a numbered message. */
TEST(a_shutdown_ends_the_session)
{
	struct host *host = host_start();
	struct bytes body = {0};
	struct bytes wire = {0};

	(void)host_alloc(host, 100U);
	put_numbered_request(&wire, host->session, 1U, RPC_SHUTDOWN, &body);
	host_give(host, &wire);
	host_expect_silence(host);
	CHECK_EQ(arena_check(&host->server.arena), 0U);
	put_message(&wire, host->session, TYPE_NORMAL, (const uint8_t[8]){0}, 8U);
	wire.data[wire.size - 1U] ^= 1U;
	host_give(host, &wire);
	host_expect_silence(host);
	host_open(host, 0x31U);
	host_still_serves(host);
	host_stop(host);
}

TEST(an_evaluator_after_an_evaluator_both_work)
{
	struct host *host = host_start();
	uint64_t first = make_evaluator(host, "tick", 1U, 1U);
	uint64_t second = make_evaluator(host, "tick", 1U, 2U);
	struct args args = {0};

	CHECK(first != second);
	CHECK_EQ(get_u64(expect_returned(host_call(host, first, &args), ARG_BYTES)), 8U);
	CHECK_EQ(get_u64(expect_returned(host_call(host, second, &args), ARG_BYTES)), 16U);
	CHECK_EQ(get_u64(expect_returned(host_call(host, first, &args), ARG_BYTES)), 8U);
	host_stop(host);
}

CHECK_MAIN(CASE(a_wrong_crc_is_dropped_and_not_carried_out),
	   CASE(a_corrupt_session_start_changes_nothing),
	   CASE(a_frame_cut_anywhere_costs_only_itself), CASE(a_log_from_the_client_is_ignored),
	   CASE(foreign_session_ids_are_ignored),
	   CASE(a_request_of_the_last_session_is_not_answered),
	   CASE(five_thousand_session_starts_without_a_call),
	   CASE(a_length_over_the_buffer_is_skipped_and_answered),
	   CASE(a_nonsense_length_is_skipped_and_said_in_the_log),
	   CASE(an_oversize_session_start_without_a_good_crc_changes_nothing),
	   CASE(an_oversize_frame_is_told_once), CASE(unknown_rpc_codes_are_exceptions),
	   CASE(unknown_type_codes_are_exceptions), CASE(every_short_body_is_an_exception),
	   CASE(a_packet_length_that_lies_is_an_exception), CASE(a_message_too_short_for_a_packet),
	   CASE(an_empty_packet_is_ignored), CASE(frames_of_no_or_little_content_are_ignored),
	   CASE(an_allocation_over_the_arena_says_what_was_asked_and_what_is_free),
	   CASE(copies_outside_of_what_was_allocated_are_exceptions),
	   CASE(a_copy_to_freed_memory_is_an_exception),
	   CASE(counts_of_the_wire_are_checked_before_they_are_used),
	   CASE(a_timed_function_that_fails_leaves_the_timer_free),
	   CASE(freeing_the_system_library_leaves_it),
	   CASE(after_a_shutdown_the_next_session_is_served), CASE(a_shutdown_ends_the_session),
	   CASE(an_evaluator_after_an_evaluator_both_work))
