/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numbered messages: each request runs once however often it arrives, and its reply can be had
 * again, with any bytes on the link in between.
 */
#include "check.h"
#include "functions.h"
#include "host.h"

/* A block of 512 bytes. */
#define SPARE 544U

static void put_numbered_call(struct host *host, struct bytes *wire, uint8_t sequence,
			      uint64_t function, struct args *args)
{
	struct bytes body = {0};

	put_u64(&body, function);
	put_args(&body, args);
	put_numbered_request(wire, host->session, sequence, RPC_CALL_FUNC, &body);
}

static void give_call(struct host *host, uint8_t sequence, uint64_t function, struct args *args)
{
	struct bytes wire = {0};

	put_numbered_call(host, &wire, sequence, function, args);
	host_give(host, &wire);
}

/*
 * The packet of the next reply, which must be a numbered reply. It stays until the next message is
 * taken.
 */
static const struct bytes *take_reply(struct host *host, uint8_t sequence)
{
	const struct bytes *packet = &host->message.body;

	host_take_next(host);
	CHECK_EQ(host->message.type, TYPE_NUMBERED);
	CHECK_EQ(host->message.session, host->session);
	CHECK_EQ(open_numbered(&host->message), sequence);
	CHECK(packet->size > 12U);
	CHECK_EQ(get_u64(packet->data), packet->size - 8U);
	return packet;
}

/* The same reply as `first`, byte for byte, and nothing more. */
static void expect_again(struct host *host, uint8_t sequence, const struct bytes *first)
{
	const struct bytes *again = take_reply(host, sequence);

	CHECK_EQ(again->size, first->size);
	CHECK_MEM(again->data, first->data, first->size);
	host_expect_silence(host);
}

/* Calls `tick`, which has no arguments, and takes the reply. */
static const struct bytes *call_tick(struct host *host, uint8_t sequence, uint64_t tick)
{
	struct args args = {0};

	give_call(host, sequence, tick, &args);
	return take_reply(host, sequence);
}

static void expect_resend(struct host *host, uint8_t sequence)
{
	host_take_next(host);
	CHECK_EQ(host->message.type, TYPE_RESEND);
	CHECK_EQ(host->message.session, host->session);
	CHECK_EQ(host->message.body.size, 1U);
	CHECK_EQ(host->message.body.data[0], sequence);
}

static void probe(struct host *host, uint8_t sequence)
{
	struct bytes wire = {0};

	put_message(&wire, host->session, TYPE_PROBE, &sequence, 1U);
	host_give(host, &wire);
}

/* The request is as large as the receive buffer, and damaged. */
static void overwrite_buffer(struct host *host)
{
	struct bytes body = {0};
	struct bytes wire = {0};

	put_fill(&body, 0xeeU, 8192U - 3U);
	put_corrupt(&wire, host->session, TYPE_NORMAL, body.data, body.size);
	bytes_free(&body);
	host_give(host, &wire);
}

/* The reply to `sequence` is had again, byte for byte, after the receive buffer was overwritten. */
static void check_kept(struct host *host, uint8_t sequence)
{
	const struct bytes *reply = take_reply(host, sequence);
	struct bytes first = {0};

	put(&first, reply->data, reply->size);
	host_expect_silence(host);
	overwrite_buffer(host);
	expect_resend(host, sequence);
	probe(host, sequence);
	expect_again(host, sequence, &first);
	bytes_free(&first);
}

TEST(a_request_that_arrives_twice_runs_once)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");
	const struct bytes *reply = call_tick(host, 1U, tick);
	struct args args = {0};
	struct bytes first = {0};

	put(&first, reply->data, reply->size);
	give_call(host, 1U, tick, &args);
	expect_again(host, 1U, &first);
	CHECK_EQ(host_functions.calls, 1U);
	bytes_free(&first);
	host_stop(host);
}

/* The request is not run, and the client learns the device's last sequence. */
TEST(an_old_request_is_dropped)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");
	struct args args = {0};

	(void)call_tick(host, 1U, tick);
	(void)call_tick(host, 2U, tick);
	/* All sequences except the last and the next. */
	for (uint32_t sequence = 4U; sequence <= 257U; sequence++) {
		give_call(host, (uint8_t)sequence, tick, &args);
		CHECK(host_take(host));
		CHECK_EQ(host->message.type, TYPE_RESEND);
		CHECK_EQ(host->message.body.data[0], 2U);
		host_expect_silence(host);
	}
	CHECK_EQ(host_functions.calls, 2U);
	host_stop(host);
}

TEST(the_sequence_goes_round)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");

	for (uint32_t i = 1U; i <= 600U; i++) {
		(void)call_tick(host, (uint8_t)i, tick);
	}
	CHECK_EQ(host_functions.calls, 600U);
	host_stop(host);
}

TEST(a_probe_gets_the_reply_or_learns_that_no_request_came)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");

	probe(host, 1U);
	expect_resend(host, 0U);
	(void)call_tick(host, 1U, tick);
	probe(host, 1U);
	(void)take_reply(host, 1U);
	probe(host, 2U);
	expect_resend(host, 1U);
	CHECK_EQ(host_functions.calls, 1U);
	host_stop(host);
}

/* The frame's CRC lets it through; the message's own does not. */
TEST(a_message_whose_own_check_fails_is_asked_for_again)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");

	for (uint32_t at = 3U; at < 32U; at++) {
		struct args args = {0};
		struct bytes wire = {0};
		struct bytes payload = {0};
		const uint8_t *from;

		put_numbered_call(host, &wire, 1U, tick, &args);
		from = wire.data;
		CHECK(take_frame(&from, wire.data + wire.size, &payload));
		if (at < payload.size) {
			payload.data[at] ^= 0x08U;
		} else {
			payload.size -= 1U;
		}
		wire.size = 0U;
		put_frame(&wire, payload.data, payload.size);
		bytes_free(&payload);
		host_give(host, &wire);
		expect_resend(host, 0U);
	}
	CHECK_EQ(host_functions.calls, 0U);
	host_stop(host);
}

TEST(a_damaged_frame_is_asked_for_again)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");
	struct args args = {0};
	struct bytes wire = {0};

	(void)call_tick(host, 1U, tick);
	put_numbered_call(host, &wire, 2U, tick, &args);
	wire.data[20] ^= 0x20U;
	host_give(host, &wire);
	expect_resend(host, 1U);
	host_expect_silence(host);
	CHECK_EQ(host_functions.calls, 1U);
	host_stop(host);
}

/*
 * A frame is cut short by a new frame, which gets an answer: a request to resend would bring the
 * answer twice.
 */
TEST(after_a_frame_that_was_cut_short_nothing_is_asked)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");
	struct args args = {0};
	struct bytes wire = {0};

	(void)call_tick(host, 1U, tick);
	put_numbered_call(host, &wire, 2U, tick, &args);
	wire.size -= 5U;
	put_numbered_call(host, &wire, 2U, tick, &args);
	host_give(host, &wire);
	(void)take_reply(host, 2U);
	host_expect_silence(host);
	CHECK_EQ(host->server.counters[MINRPC_SHORT_PACKETS], 1U);
	CHECK_EQ(host_functions.calls, 2U);
	host_stop(host);
}

/* The front of it, as much as the buffer holds, is a message whose check is right. */
TEST(a_numbered_message_over_the_buffer_is_asked_for_again)
{
	static const uint8_t zeros[8148];
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");
	struct args args = {0};
	struct bytes front = {0};
	struct bytes wire = {0};
	const uint8_t *at;
	struct bytes message = {0};

	(void)call_tick(host, 1U, tick);
	arg_bytes(&args, zeros, sizeof(zeros));
	put_numbered_call(host, &front, 2U, tick, &args);
	at = front.data;
	CHECK(take_frame(&at, front.data + front.size, &message));
	CHECK_EQ(message.size, 8192U);
	put_u8(&message, 0U);
	put_frame(&wire, message.data, message.size);
	host_give(host, &wire);
	expect_resend(host, 1U);
	host_expect_silence(host);
	CHECK_EQ(host_functions.calls, 1U);
	bytes_free(&message);
	bytes_free(&front);
	host_stop(host);
}

TEST(messages_too_short_to_be_numbered)
{
	struct host *host = host_start();

	for (uint32_t size = 0U; size < 6U; size++) {
		struct bytes wire = {0};

		put_message(&wire, host->session, TYPE_NUMBERED, (const uint8_t[6]){0}, size);
		host_give(host, &wire);
		expect_resend(host, 0U);
		put_message(&wire, host->session, TYPE_PROBE, NULL, 0U);
		host_give(host, &wire);
		expect_resend(host, 0U);
	}
	host_still_serves(host);
	host_stop(host);
}

TEST(a_reply_from_the_receive_buffer_is_kept)
{
	struct host *host = host_start();
	uint64_t echo = host_function(host, "echo");
	uint64_t info = host_global(host, "minrpc.device_info");
	struct args args = {0};

	give_call(host, 1U, info, &args);
	check_kept(host, 1U);
	arg_string(&args, "a text that came as an argument");
	give_call(host, 2U, echo, &args);
	check_kept(host, 2U);
	arg_bytes(&args, "bytes that came as an argument", 30U);
	give_call(host, 3U, echo, &args);
	check_kept(host, 3U);
	arg_string(&args, "");
	give_call(host, 4U, echo, &args);
	check_kept(host, 4U);
	arg_bytes(&args, "", 0U);
	give_call(host, 5U, echo, &args);
	check_kept(host, 5U);
	host_stop(host);
}

/* Sizes from below to above the bytes that are always kept for a reply, and up to the receive
 * buffer's size. */
TEST(a_long_reply_from_the_receive_buffer_is_kept)
{
	static const uint32_t sizes[] = {400U, 500U,  505U, 511U,  512U, 513U,
					 600U, 1500U, 513U, 5000U, 100U};
	static uint8_t text[5000];
	struct host *host = host_start();
	uint64_t echo = host_function(host, "echo");
	uint8_t sequence = 0U;

	for (size_t i = 0U; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t *guard;
		struct args args = {0};

		memset(text, (int)('a' + i), sizeof(text));
		/* An array lies behind the memory that is kept for the reply. */
		guard = (uint8_t *)(uintptr_t)host_alloc(host, 16U);
		memset(guard, 0x77, 16U);
		arg_bytes(&args, text, sizes[i]);
		give_call(host, ++sequence, echo, &args);
		check_kept(host, sequence);
		CHECK_MEM(host->message.body.data + host->message.body.size - sizes[i], text,
			  sizes[i]);
		(void)arena_check(&host->server.arena);
		for (uint32_t j = 0U; j < 16U; j++) {
			CHECK_EQ(guard[j], 0x77U);
		}
	}
	host_stop(host);
}

/* Memory for the answer is taken before: a request that can't be answered does not run. */
TEST(a_call_whose_answer_could_not_be_kept_does_not_run)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");
	struct args args = {0};

	(void)host_alloc(host, host->server.arena.size - 1024U);
	arg_bytes(&args, host->config.arena, 2000U);
	give_call(host, 1U, tick, &args);
	CHECK_EQ(get_u32(take_reply(host, 1U)->data + 8), RPC_EXCEPTION);
	CHECK_EQ(host_functions.calls, 0U);
	/* A short one does. */
	(void)call_tick(host, 2U, tick);
	CHECK_EQ(host_functions.calls, 1U);
	host_stop(host);
}

TEST(with_a_full_arena_numbered_requests_are_answered)
{
	struct host *host = host_start();
	uint64_t echo = host_function(host, "echo");
	uint64_t info = host_global(host, "minrpc.device_info");
	struct args args = {0};

	give_call(host, 1U, host_function(host, "tick"), &args);
	(void)take_reply(host, 1U);
	while (host_try_alloc(host, 1U, 1U)->code == RPC_RETURN) {
	}
	give_call(host, 2U, info, &args);
	check_kept(host, 2U);
	arg_string(&args, "a text that came as an argument");
	give_call(host, 3U, echo, &args);
	check_kept(host, 3U);
	host_stop(host);
}

TEST(exceptions_data_and_evaluators_results_are_kept)
{
	struct host *host = host_start();
	uint64_t create = host_global(host, "runtime.RPCTimeEvaluator");
	uint64_t data = host_alloc(host, 64U);
	struct tensor tensor = tensor_1d(data, 0U, 8U, 64);
	struct args args = {0};
	struct bytes wire = {0};
	struct bytes body = {0};
	uint64_t evaluator;
	uint32_t used;

	arg(&args, ARG_MODULE, 0x8000U);
	arg_string(&args, "tick");
	for (int i = 0; i < 5; i++) {
		arg(&args, ARG_INT, 3U);
	}
	arg_string(&args, "");
	evaluator = get_u64(expect_returned(host_call(host, create, &args), ARG_FUNCTION));
	host_write(host, data, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		   64U);
	used = host->server.arena.used;

	give_call(host, 1U, 0x7777U, &args);
	check_kept(host, 1U);
	give_call(host, 2U, evaluator, &args);
	check_kept(host, 2U);
	put_copy(&body, V8, &tensor, 64U);
	put_numbered_request(&wire, host->session, 3U, RPC_COPY_FROM, &body);
	host_give(host, &wire);
	check_kept(host, 3U);
	/* The memory for answers stays, which a session takes once. */
	CHECK_EQ(host->server.arena.used, used + SPARE);
	host_stop(host);
}

/* A normal request between two numbered requests: no data that it freed is sent again. */
TEST(a_probe_after_a_normal_request)
{
	struct host *host = host_start();
	uint64_t echo = host_function(host, "echo");
	struct args args = {0};

	arg_string(&args, "numbered");
	give_call(host, 1U, echo, &args);
	(void)take_reply(host, 1U);
	arg_string(&args, "normal");
	(void)expect_returned(host_call(host, echo, &args), ARG_STRING);
	CHECK_EQ(host->server.arena.used, SPARE);
	overwrite_buffer(host);
	/* The reply is gone, and the client is told so. */
	probe(host, 1U);
	host_take_next(host);
	CHECK_EQ(host->message.type, TYPE_RESEND);
	CHECK_EQ(host->message.body.data[0], 1U);
	host_expect_silence(host);
	host_still_serves(host);
	host_stop(host);
}

/* There is no reply of the last session either, whose data has been freed. */
TEST(a_probe_right_after_a_session_start)
{
	struct host *host = host_start();
	uint64_t info = host_global(host, "minrpc.device_info");
	struct args args = {0};

	for (uint32_t sequence = 1U; sequence <= 256U; sequence++) {
		give_call(host, (uint8_t)sequence, info, &args);
		(void)take_reply(host, (uint8_t)sequence);
	}
	host_open(host, 0x33U);
	probe(host, 0U);
	expect_resend(host, 0U);
	host_expect_silence(host);
	host_stop(host);
}

/* A packet without an answer, after a packet whose answer is kept. */
TEST(nothing_is_sent_again_unasked)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");
	struct bytes wire = {0};

	(void)call_tick(host, 1U, tick);
	put_message(&wire, host->session, TYPE_NORMAL, (const uint8_t[8]){0}, 8U);
	host_give(host, &wire);
	host_expect_silence(host);
	probe(host, 1U);
	expect_resend(host, 1U);
	host_stop(host);
}

TEST(a_new_session_counts_anew)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");

	(void)call_tick(host, 1U, tick);
	host_open(host, 0x51U);
	probe(host, 1U);
	expect_resend(host, 0U);
	(void)call_tick(host, 1U, tick);
	CHECK_EQ(host_functions.calls, 2U);
	host_stop(host);
}

/* TVM's clients never send a numbered message, and must never get a numbered message. */
TEST(normal_requests_get_normal_replies)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");

	overwrite_buffer(host);
	host_expect_silence(host);
	(void)call_tick(host, 1U, tick);
	host_still_serves(host);
	overwrite_buffer(host);
	host_expect_silence(host);
	host_stop(host);
}

CHECK_MAIN(CASE(a_request_that_arrives_twice_runs_once), CASE(an_old_request_is_dropped),
	   CASE(the_sequence_goes_round),
	   CASE(a_probe_gets_the_reply_or_learns_that_no_request_came),
	   CASE(a_message_whose_own_check_fails_is_asked_for_again),
	   CASE(a_damaged_frame_is_asked_for_again),
	   CASE(after_a_frame_that_was_cut_short_nothing_is_asked),
	   CASE(a_numbered_message_over_the_buffer_is_asked_for_again),
	   CASE(messages_too_short_to_be_numbered), CASE(a_reply_from_the_receive_buffer_is_kept),
	   CASE(a_long_reply_from_the_receive_buffer_is_kept),
	   CASE(a_call_whose_answer_could_not_be_kept_does_not_run),
	   CASE(with_a_full_arena_numbered_requests_are_answered),
	   CASE(exceptions_data_and_evaluators_results_are_kept),
	   CASE(a_probe_after_a_normal_request), CASE(a_probe_right_after_a_session_start),
	   CASE(nothing_is_sent_again_unasked), CASE(a_new_session_counts_anew),
	   CASE(normal_requests_get_normal_replies))
