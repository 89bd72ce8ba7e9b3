/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Questions of a running function: the answer is the next request. After any other message the
 * function goes on or ends, and the device serves the next requests.
 */
#include <string.h>

#include <minrpc/ask.h>

#include "check.h"
#include "functions.h"
#include "host.h"
#include "rpc.h"

/* A session of this project's client, which knows a function that only this runtime has. */
static struct host *start_own(void)
{
	struct host *host = host_start();

	(void)host_global(host, "minrpc.device_info");
	return host;
}

static const struct answer *call_ask(struct host *host,
				     void (*waiting)(struct host *, uint32_t, struct bytes *))
{
	uint64_t ask = host_function(host, "ask");
	struct args args = {0};

	host->waiting = waiting;
	return host_call(host, ask, &args);
}

/* Takes the question, which must be `ask`'s, in a normal or a numbered message. */
static void take_question(struct host *host)
{
	const struct bytes *packet = &host->message.body;

	host_take_next(host);
	if (host->message.type == TYPE_NUMBERED) {
		(void)open_numbered(&host->message);
	}
	CHECK_EQ(packet->size, 8U + 4U + 4U + 4U);
	CHECK_EQ(get_u64(packet->data), packet->size - 8U);
	CHECK_EQ(get_u32(packet->data + 8U), RPC_ASK);
	CHECK(get_u32(packet->data + 12U) >= 128U);
	CHECK_MEM(packet->data + 16U, "why?", 4U);
}

static void put_answer(struct host *host, struct bytes *wire, const char *text)
{
	struct bytes body = {0};

	put(&body, text, (uint32_t)strlen(text));
	put_request(wire, host->session, RPC_ANSWER, &body);
}

/* A request refused meanwhile is not the function's failure. */
static void expect_seven(const struct answer *answer)
{
	CHECK_EQ(get_u64(expect_returned(answer, ARG_INT)), '7');
	CHECK_EQ(host_functions.calls, 1U);
	CHECK_EQ(host_current()->server.error[0], '\0');
}

static void answers(struct host *host, uint32_t turn, struct bytes *wire)
{
	CHECK_EQ(turn, 0U);
	take_question(host);
	put_answer(host, wire, "7");
}

TEST(an_answer_arrives)
{
	struct host *host = start_own();

	expect_seven(call_ask(host, answers));
	host_still_serves(host);
	host_stop(host);
}

static void answers_byte_by_byte(struct host *host, uint32_t turn, struct bytes *wire)
{
	struct bytes whole = {0};

	if (turn == 0U) {
		take_question(host);
	}
	put_answer(host, &whole, "7");
	CHECK(turn < whole.size);
	put_u8(wire, whole.data[turn]);
	bytes_free(&whole);
}

TEST(an_answer_arrives_in_pieces)
{
	struct host *host = start_own();

	expect_seven(call_ask(host, answers_byte_by_byte));
	host_still_serves(host);
	host_stop(host);
}

static void ends(struct host *host, uint32_t turn, struct bytes *wire)
{
	CHECK_EQ(turn, 0U);
	take_question(host);
	put_answer(host, wire, "");
}

static void ends_with_workspace(struct host *host, uint32_t turn, struct bytes *wire)
{
	CHECK(TVMBackendAllocWorkspace(1, 0, 1000U, 0, 8) != NULL);
	ends(host, turn, wire);
}

/* The function does not go on, and its workspace is freed. */
TEST(the_client_ends_the_function)
{
	struct host *host = start_own();
	uint32_t room = minrpc_arena_largest_free(&host->server.arena);

	expect_exception(call_ask(host, ends_with_workspace), "the client ended the function");
	CHECK_EQ(minrpc_arena_largest_free(&host->server.arena), room);
	CHECK_EQ(host_functions.calls, 0U);
	host_still_serves(host);
	host_stop(host);
}

static void calls_first(struct host *host, uint32_t turn, struct bytes *wire)
{
	if (turn == 0U) {
		take_question(host);
		put_call(wire, host->session, 0x80008000U);
		return;
	}
	host_take_next(host);
	CHECK_EQ(get_u32(host->message.body.data + 8U), RPC_EXCEPTION);
	put_answer(host, wire, "7");
}

TEST(another_request_is_refused_meanwhile)
{
	struct host *host = start_own();

	expect_seven(call_ask(host, calls_first));
	host_still_serves(host);
	host_stop(host);
}

static void sends_too_much_first(struct host *host, uint32_t turn, struct bytes *wire)
{
	struct bytes body = {0};

	if (turn == 0U) {
		take_question(host);
		put_fill(&body, '7', 9000U);
		put_request(wire, host->session, RPC_ANSWER, &body);
		return;
	}
	host_take_next(host);
	CHECK_EQ(get_u32(host->message.body.data + 8U), RPC_EXCEPTION);
	put_answer(host, wire, "7");
}

TEST(an_answer_that_does_not_fit_is_refused)
{
	struct host *host = start_own();

	expect_seven(call_ask(host, sends_too_much_first));
	host_still_serves(host);
	host_stop(host);
}

/* Sends each message as if it were the answer "x", and then the answer. */
static const uint8_t begins_no_session[] = {1U};
static uint32_t wrong;

static void sends_what_is_no_answer_first(struct host *host, uint32_t turn, struct bytes *wire)
{
	struct bytes packet = {0};
	uint32_t size = 5U;
	uint32_t more = 1U;

	if (turn == 1U) {
		host_take_next(host);
		CHECK_EQ(get_u32(host->message.body.data + 8U), RPC_EXCEPTION);
		put_answer(host, wire, "7");
		return;
	}
	take_question(host);
	if (wrong == 0U) { /* bytes behind the packet */
		more = 3U;
	} else if (wrong == 1U) { /* a packet as long as the room, in a longer message */
		size = minrpc_inbox_size(&host->server) - 3U - 8U;
		more = size;
	} else { /* a start of no session: it has no answer */
		put_message(wire, 0U, TYPE_INIT, begins_no_session, 1U);
		put_answer(host, wire, "7");
		return;
	}
	put_u64(&packet, size);
	put_u32(&packet, RPC_ANSWER);
	put_fill(&packet, 'x', more);
	put_message(wire, host->session, TYPE_NORMAL, packet.data, packet.size);
	bytes_free(&packet);
}

TEST(what_is_no_answer_is_none)
{
	for (wrong = 0U; wrong < 3U; wrong++) {
		struct host *host = start_own();

		host_functions.calls = 0U;
		expect_seven(call_ask(host, sends_what_is_no_answer_first));
		host_still_serves(host);
		host_stop(host);
	}
}

static uint64_t received;

static void asks_again(struct host *host, uint32_t turn, struct bytes *wire)
{
	uint32_t size;

	received = host->server.link_received;
	answers(host, turn, wire);
	CHECK(minrpc_ask(&host->server, "why?", 4U, &size) == NULL);
	host_expect_silence(host);
}

/* The call comes as in an interrupt, while a function waits. */
TEST(there_is_one_question_at_a_time)
{
	struct host *host = start_own();

	expect_seven(call_ask(host, asks_again));
	CHECK_EQ(host->server.link_received - received, host->arrived.size);
	host_still_serves(host);
	host_stop(host);
}

static void begins_a_session(struct host *host, uint32_t turn, struct bytes *wire)
{
	CHECK_EQ(turn, 0U);
	take_question(host);
	put_message(wire, 0x0021U, TYPE_INIT, (const uint8_t *)"\1", 1U);
}

/* A function that waits for a client that has gone ends, and the new session is served. */
TEST(a_new_session_ends_the_function)
{
	struct host *host = start_own();
	uint64_t ask = host_function(host, "ask");
	struct bytes wire = {0};

	host->waiting = begins_a_session;
	put_call(&wire, host->session, ask);
	host_give(host, &wire);
	host_take_next(host);
	CHECK_EQ(host->message.type, TYPE_REPLY);
	host_expect_silence(host);
	CHECK_EQ(host_functions.calls, 0U);
	host_open(host, 0x33U);
	host_still_serves(host);
	host_stop(host);
}

static void says_goodbye(struct host *host, uint32_t turn, struct bytes *wire)
{
	CHECK_EQ(turn, 0U);
	take_question(host);
	put_message(wire, host->session, TYPE_TERMINATE, NULL, 0U);
}

TEST(the_end_of_the_session_ends_the_function)
{
	struct host *host = start_own();
	uint64_t ask = host_function(host, "ask");
	struct bytes wire = {0};

	host->waiting = says_goodbye;
	put_call(&wire, host->session, ask);
	host_give(host, &wire);
	host_expect_silence(host);
	CHECK_EQ(host_functions.calls, 0U);
	host_open(host, 0x33U);
	host_still_serves(host);
	host_stop(host);
}

/* A client that never asked for a function of this runtime, such as TVM's. */
TEST(a_foreign_client_is_asked_nothing)
{
	struct host *host = host_start();
	uint64_t ask = host_function(host, "ask");
	struct args args = {0};

	host->server.own_client = false; /* host_function asks as our client does */
	expect_exception(host_call(host, ask, &args), "the client can't answer");
	CHECK_EQ(host_functions.calls, 0U);
	host_stop(host);
}

TEST(a_port_that_can_not_wait)
{
	struct host *host = start_own();

	host->platform.receive = NULL;
	expect_exception(call_ask(host, NULL), "the port can't wait");
	host_still_serves(host);
	host_stop(host);
}

TEST(arguments_outlast_an_answer)
{
	struct host *host = start_own();
	uint64_t ask = host_function(host, "ask");
	struct args args = {0};

	arg(&args, ARG_INT, 5U);
	arg(&args, ARG_INT, 0x1122334455667788U);
	host->waiting = answers;
	expect_seven(host_call(host, ask, &args));
	host_stop(host);
}

/* The arguments of a call stay where they are. */
TEST(arguments_that_leave_no_room)
{
	struct host *host = start_own();
	uint64_t ask = host_function(host, "ask");
	char text[8000];
	struct args args = {0};

	memset(text, 'x', sizeof(text) - 1U);
	text[sizeof(text) - 1U] = '\0';
	arg_string(&args, text);
	host->waiting = answers;
	expect_exception(host_call(host, ask, &args), "no room for an answer");
	host_still_serves(host);
	host_stop(host);
}

/* The timer and the batch's counts end as in any function that fails: see host_stop. */
TEST(a_function_that_is_timed_ends)
{
	struct host *host = start_own();
	uint64_t create = host_global(host, "runtime.RPCTimeEvaluator");
	struct args args = {0};
	struct args none = {0};
	uint64_t evaluator;

	arg(&args, ARG_MODULE, 0x8000U);
	arg_string(&args, "ask");
	for (uint32_t i = 0U; i < 5U; i++) {
		arg(&args, ARG_INT, i == 0U || i == 2U || i == 3U);
	}
	arg_string(&args, "");
	evaluator = get_u64(expect_returned(host_call(host, create, &args), ARG_FUNCTION));
	host->waiting = ends;
	expect_exception(host_call(host, evaluator, &none), "the client ended the function");
	CHECK_EQ(host->clock.begun, host->clock.ended);
	host_still_serves(host);
	host_stop(host);
}

TEST(there_is_no_question_outside_a_call)
{
	struct host *host = start_own();
	uint32_t size;

	CHECK(minrpc_ask(&host->server, "why?", 4U, &size) == NULL);
	host_expect_silence(host);
	expect_seven(call_ask(host, answers));
	CHECK(minrpc_ask(&host->server, "why?", 4U, &size) == NULL);
	host_expect_silence(host);
	host_stop(host);
}

/* ---------------------------------------------------------------- numbered */

static void put_numbered_answer(struct host *host, struct bytes *wire, uint8_t sequence)
{
	struct bytes body = {0};

	put(&body, "7", 1U);
	put_numbered_request(wire, host->session, sequence, RPC_ANSWER, &body);
}

static void put_first_call(struct host *host, struct bytes *wire, uint64_t function)
{
	struct bytes body = {0};

	put_u64(&body, function);
	put_u32(&body, 0U);
	put_numbered_request(wire, host->session, 1U, RPC_CALL_FUNC, &body);
}

static uint64_t asking;

/* All faults of a link for the question and the answer, and finally the answer. */
static void suffers(struct host *host, uint32_t turn, struct bytes *wire)
{
	static const uint8_t first = 1U;

	switch (turn) {
	case 0U: /* the question was lost: the client probes */
		take_question(host);
		put_message(wire, host->session, TYPE_PROBE, &first, 1U);
		break;
	case 1U: /* the request came twice */
		take_question(host);
		put_first_call(host, wire, asking);
		break;
	case 2U: /* the answer came damaged */
		take_question(host);
		put_numbered_answer(host, wire, 2U);
		wire->data[wire->size - 4U] ^= 1U;
		break;
	case 3U: /* the device asks for it; now a message of another session */
		host_take_next(host);
		CHECK_EQ(host->message.type, TYPE_RESEND);
		put_message(wire, (uint16_t)(host->session + 1U), TYPE_NORMAL, NULL, 0U);
		break;
	default:
		CHECK_EQ(turn, 4U);
		put_numbered_answer(host, wire, 2U);
		put_numbered_answer(host, wire, 2U); /* behind it, once more */
		break;
	}
}

TEST(numbered_questions_survive_a_bad_link)
{
	struct host *host = start_own();
	struct bytes wire = {0};

	asking = host_function(host, "ask");
	host->waiting = suffers;
	put_first_call(host, &wire, asking);
	host_give(host, &wire);
	/* The reply, which is sent again for the answer that came twice. */
	for (uint32_t i = 0U; i < 2U; i++) {
		host_take_next(host);
		CHECK_EQ(host->message.type, TYPE_NUMBERED);
		CHECK_EQ(open_numbered(&host->message), 2U);
		CHECK_EQ(get_u32(host->message.body.data + 8U), RPC_RETURN);
	}
	host_expect_silence(host);
	CHECK_EQ(host_functions.calls, 1U);
	host_stop(host);
}

CHECK_MAIN(CASE(an_answer_arrives), CASE(an_answer_arrives_in_pieces),
	   CASE(the_client_ends_the_function), CASE(another_request_is_refused_meanwhile),
	   CASE(an_answer_that_does_not_fit_is_refused), CASE(a_new_session_ends_the_function),
	   CASE(what_is_no_answer_is_none), CASE(there_is_one_question_at_a_time),
	   CASE(the_end_of_the_session_ends_the_function), CASE(a_foreign_client_is_asked_nothing),
	   CASE(a_port_that_can_not_wait), CASE(arguments_outlast_an_answer),
	   CASE(arguments_that_leave_no_room), CASE(a_function_that_is_timed_ends),
	   CASE(there_is_no_question_outside_a_call), CASE(numbered_questions_survive_a_bad_link))
