/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numbered messages: each request runs once however often it arrives, and its reply can be had again, whatever
 * else comes over the link in between.
 */
#include "check.h"
#include "functions.h"
#include "host.h"

#define TYPE_NUMBERED 0x11U
#define TYPE_RESEND   0x12U
#define TYPE_PROBE    0x13U

/* Appends the frame of a numbered request; `body` is freed. */
static void put_numbered(struct host *host, struct bytes *wire, uint8_t sequence, uint32_t code,
			 struct bytes *body)
{
	struct bytes message = {0};

	put_u16(&message, host->session);
	put_u8(&message, TYPE_NUMBERED);
	put_u8(&message, sequence);
	put_u64(&message, 4U + body->size);
	put_u32(&message, code);
	put(&message, body->data, body->size);
	put_u32(&message, wire_crc32(message.data, message.size));
	put_frame(wire, message.data, message.size);
	bytes_free(&message);
	bytes_free(body);
}

static void put_call(struct host *host, struct bytes *wire, uint8_t sequence, uint64_t function,
		     struct args *args)
{
	struct bytes body = {0};

	put_u64(&body, function);
	put_args(&body, args);
	put_numbered(host, wire, sequence, RPC_CALL_FUNC, &body);
}

/* Takes a numbered reply and leaves its RPC packet, code first, in `packet`. */
static void take_reply(struct host *host, uint8_t sequence, struct bytes *packet)
{
	const struct bytes *body = &host->message.body;
	struct bytes whole = {0};

	do {
		CHECK(host_take(host));
	} while (host->message.type == TYPE_LOG);
	CHECK_EQ(host->message.type, TYPE_NUMBERED);
	CHECK_EQ(host->message.session, host->session);
	CHECK(body->size > 17U);
	CHECK_EQ(body->data[0], sequence);
	put_u16(&whole, host->session);
	put_u8(&whole, TYPE_NUMBERED);
	put(&whole, body->data, body->size - 4U);
	CHECK_EQ(get_u32(body->data + body->size - 4U), wire_crc32(whole.data, whole.size));
	bytes_free(&whole);
	CHECK_EQ(get_u64(body->data + 1), body->size - 13U);
	packet->size = 0U;
	put(packet, body->data + 9, body->size - 13U);
}

static void expect_resend(struct host *host, uint8_t sequence)
{
	do {
		CHECK(host_take(host));
	} while (host->message.type == TYPE_LOG);
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

/* As large as the receive buffer, and damaged. */
static void overwrite_buffer(struct host *host)
{
	struct bytes body = {0};
	struct bytes wire = {0};

	for (uint32_t i = 0U; i < 8192U - 3U; i++) {
		put_u8(&body, 0xeeU);
	}
	put_message(&wire, host->session, TYPE_NORMAL, body.data, body.size);
	wire.data[wire.size - 1U] ^= 0x01U;
	bytes_free(&body);
	host_give(host, &wire);
}

/* The reply to `sequence` is had again, byte for byte, after the receive buffer was overwritten. */
static void check_kept(struct host *host, uint8_t sequence)
{
	struct bytes first = {0};
	struct bytes again = {0};

	take_reply(host, sequence, &first);
	host_expect_silence(host);
	overwrite_buffer(host);
	expect_resend(host, sequence);
	probe(host, sequence);
	take_reply(host, sequence, &again);
	CHECK_EQ(again.size, first.size);
	CHECK_MEM(again.data, first.data, first.size);
	host_expect_silence(host);
	bytes_free(&first);
	bytes_free(&again);
}

TEST(a_request_that_arrives_twice_runs_once)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");
	struct args args = {0};
	struct bytes wire = {0};
	struct bytes first = {0};
	struct bytes again = {0};

	put_call(host, &wire, 1U, tick, &args);
	host_receive(host, &wire);
	take_reply(host, 1U, &first);
	host_give(host, &wire);
	take_reply(host, 1U, &again);
	CHECK_EQ(host_functions.calls, 1U);
	CHECK_EQ(again.size, first.size);
	CHECK_MEM(again.data, first.data, first.size);
	host_expect_silence(host);
	bytes_free(&first);
	bytes_free(&again);
	host_stop(host);
}

TEST(an_old_request_is_dropped)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");
	struct bytes reply = {0};

	for (uint8_t sequence = 1U; sequence <= 2U; sequence++) {
		struct args args = {0};
		struct bytes wire = {0};

		put_call(host, &wire, sequence, tick, &args);
		host_give(host, &wire);
		take_reply(host, sequence, &reply);
	}
	for (uint32_t sequence = 4U; sequence <= 257U; sequence++) {
		struct args args = {0};
		struct bytes wire = {0};

		/* All but the last and the next. */
		put_call(host, &wire, (uint8_t)sequence, tick, &args);
		host_give(host, &wire);
		host_expect_silence(host);
	}
	CHECK_EQ(host_functions.calls, 2U);
	bytes_free(&reply);
	host_stop(host);
}

TEST(the_sequence_goes_round)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");
	struct bytes reply = {0};

	for (uint32_t i = 1U; i <= 600U; i++) {
		struct args args = {0};
		struct bytes wire = {0};

		put_call(host, &wire, (uint8_t)i, tick, &args);
		host_give(host, &wire);
		take_reply(host, (uint8_t)i, &reply);
	}
	CHECK_EQ(host_functions.calls, 600U);
	bytes_free(&reply);
	host_stop(host);
}

TEST(a_probe_gets_the_reply_or_learns_that_no_request_came)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");
	struct args args = {0};
	struct bytes wire = {0};
	struct bytes reply = {0};

	probe(host, 1U);
	expect_resend(host, 0U);
	put_call(host, &wire, 1U, tick, &args);
	host_give(host, &wire);
	take_reply(host, 1U, &reply);
	probe(host, 1U);
	take_reply(host, 1U, &reply);
	probe(host, 2U);
	expect_resend(host, 1U);
	CHECK_EQ(host_functions.calls, 1U);
	bytes_free(&reply);
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

		put_call(host, &wire, 1U, tick, &args);
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
	struct bytes reply = {0};

	put_call(host, &wire, 1U, tick, &args);
	host_give(host, &wire);
	take_reply(host, 1U, &reply);
	put_call(host, &wire, 2U, tick, &args);
	wire.data[20] ^= 0x20U;
	host_give(host, &wire);
	expect_resend(host, 1U);
	host_expect_silence(host);
	CHECK_EQ(host_functions.calls, 1U);
	bytes_free(&reply);
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
	struct bytes wire = {0};

	put_call(host, &wire, 1U, info, &args);
	host_give(host, &wire);
	check_kept(host, 1U);
	arg_string(&args, "a text that came as an argument");
	put_call(host, &wire, 2U, echo, &args);
	host_give(host, &wire);
	check_kept(host, 2U);
	arg_bytes(&args, "bytes that came as an argument", 30U);
	put_call(host, &wire, 3U, echo, &args);
	host_give(host, &wire);
	check_kept(host, 3U);
	arg_string(&args, "");
	put_call(host, &wire, 4U, echo, &args);
	host_give(host, &wire);
	check_kept(host, 4U);
	arg_bytes(&args, "", 0U);
	put_call(host, &wire, 5U, echo, &args);
	host_give(host, &wire);
	check_kept(host, 5U);
	host_stop(host);
}

TEST(a_result_that_can_not_be_kept_is_an_exception)
{
	struct host *host = host_start();
	uint64_t echo = host_function(host, "echo");
	struct args args = {0};
	struct bytes wire = {0};
	struct bytes reply = {0};

	(void)host_alloc(host, host->server.arena.size - 256U);
	arg_bytes(&args, host->config.arena, 2000U);
	put_call(host, &wire, 1U, echo, &args);
	host_give(host, &wire);
	take_reply(host, 1U, &reply);
	CHECK_EQ(get_u32(reply.data), RPC_EXCEPTION);
	bytes_free(&reply);
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
	host_write(host, data, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 64U);
	used = host->server.arena.used;

	put_call(host, &wire, 1U, 0x7777U, &args);
	host_give(host, &wire);
	check_kept(host, 1U);
	put_call(host, &wire, 2U, evaluator, &args);
	host_give(host, &wire);
	check_kept(host, 2U);
	put_copy(&body, V8, &tensor, 64U);
	put_numbered(host, &wire, 3U, RPC_COPY_FROM, &body);
	host_give(host, &wire);
	check_kept(host, 3U);
	CHECK_EQ(host->server.arena.used, used);
	host_stop(host);
}

/* A normal request between two numbered ones: nothing that it freed is sent again. */
TEST(a_probe_after_a_normal_request)
{
	struct host *host = host_start();
	uint64_t echo = host_function(host, "echo");
	struct args args = {0};
	struct bytes wire = {0};
	struct bytes reply = {0};

	arg_string(&args, "numbered");
	put_call(host, &wire, 1U, echo, &args);
	host_give(host, &wire);
	take_reply(host, 1U, &reply);
	arg_string(&args, "normal");
	(void)expect_returned(host_call(host, echo, &args), ARG_STRING);
	CHECK_EQ(host->server.arena.used, 0U);
	overwrite_buffer(host);
	probe(host, 1U);
	while (host_take(host)) {
		CHECK(host->message.type != TYPE_NUMBERED);
	}
	host_still_serves(host);
	bytes_free(&reply);
	host_stop(host);
}

TEST(a_new_session_counts_anew)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");
	struct args args = {0};
	struct bytes wire = {0};
	struct bytes reply = {0};

	put_call(host, &wire, 1U, tick, &args);
	host_give(host, &wire);
	take_reply(host, 1U, &reply);
	host_open(host, 0x51U);
	probe(host, 1U);
	expect_resend(host, 0U);
	put_call(host, &wire, 1U, tick, &args);
	host_give(host, &wire);
	take_reply(host, 1U, &reply);
	CHECK_EQ(host_functions.calls, 2U);
	bytes_free(&reply);
	host_stop(host);
}

/* TVM's clients never send a numbered message, and must never see one. */
TEST(normal_requests_get_normal_replies)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");
	struct args args = {0};
	struct bytes wire = {0};
	struct bytes reply = {0};

	overwrite_buffer(host);
	host_expect_silence(host);
	put_call(host, &wire, 1U, tick, &args);
	host_give(host, &wire);
	take_reply(host, 1U, &reply);
	host_still_serves(host);
	overwrite_buffer(host);
	host_expect_silence(host);
	bytes_free(&reply);
	host_stop(host);
}

CHECK_MAIN(CASE(a_request_that_arrives_twice_runs_once), CASE(an_old_request_is_dropped),
	   CASE(the_sequence_goes_round), CASE(a_probe_gets_the_reply_or_learns_that_no_request_came),
	   CASE(a_message_whose_own_check_fails_is_asked_for_again),
	   CASE(a_damaged_frame_is_asked_for_again), CASE(messages_too_short_to_be_numbered),
	   CASE(a_reply_from_the_receive_buffer_is_kept),
	   CASE(a_result_that_can_not_be_kept_is_an_exception),
	   CASE(exceptions_data_and_evaluators_results_are_kept), CASE(a_probe_after_a_normal_request),
	   CASE(a_new_session_counts_anew), CASE(normal_requests_get_normal_replies))
