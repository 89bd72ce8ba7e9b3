/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Counters beside a time, of a port with scripted counters.
 */
#include <minrpc/counter.h>

#include "check.h"
#include "functions.h"
#include "host.h"

struct scripted {
	uint64_t before; /* its value before a batch */
	uint64_t after;
	uint32_t reads;
	uint32_t starts;
	uint32_t stops;
	bool refuses;
	bool stays; /* can't be stopped */
};

static struct scripted narrow;
static struct scripted word;
static struct scripted full;
static struct scripted later;

static uint64_t read_scripted(void *context)
{
	struct scripted *counter = context;

	return counter->reads++ % 2U == 0U ? counter->before : counter->after;
}

static bool enable_scripted(void *context, bool on)
{
	struct scripted *counter = context;

	if (on && counter->refuses) {
		return false;
	}
	*(on ? &counter->starts : &counter->stops) += 1U;
	return on || !counter->stays;
}

static const struct minrpc_counter counters[] = {
	{"narrow", "cycles", 8U, read_scripted, enable_scripted, &narrow},
	{"word", "", 32U, read_scripted, enable_scripted, &word},
	{"full", "", 64U, read_scripted, enable_scripted, &full},
	{"later", "", 16U, read_scripted, enable_scripted, &later},
	{.name = NULL},
};

static struct host *start(void)
{
	struct host *host = host_start();

	narrow = (struct scripted){.before = 250U, .after = 4U};
	word = (struct scripted){.before = 0xfffffff0U, .after = 0x10U};
	full = (struct scripted){.before = 1U, .after = 1ULL << 40};
	later = (struct scripted){.before = 7U, .after = 9U};
	host->config.counters = counters;
	host_reboot(host);
	CHECK(host_take(host));
	host_open(host, 0x25U);
	return host;
}

static const struct answer *create_repeated(struct host *host, const char *name, uint64_t repeat,
					    const char *chosen)
{
	struct args args = {0};

	arg(&args, ARG_MODULE, 0x8000U);
	arg_string(&args, name);
	for (uint32_t i = 0U; i < 3U; i++) {
		arg(&args, ARG_INT, 1U); /* device type and id, number */
	}
	arg(&args, ARG_INT, repeat);
	arg(&args, ARG_INT, 0U);
	arg_string(&args, chosen);
	return host_call(host, host_global(host, "minrpc.time_evaluator"), &args);
}

static const struct answer *create(struct host *host, const char *name, const char *chosen)
{
	return create_repeated(host, name, 1U, chosen);
}

static const struct answer *run(struct host *host, const char *name, const char *chosen)
{
	uint64_t evaluator = get_u64(expect_returned(create(host, name, chosen), ARG_FUNCTION));
	struct args args = {0};

	return host_call(host, evaluator, &args);
}

/* A column's count in the only repeat; checks the number of columns. */
static uint64_t column(const struct answer *answer, uint32_t columns, uint32_t index)
{
	const uint8_t *header = expect_returned(answer, ARG_BYTES) + 8;
	uint64_t sizes = get_u64(header);

	CHECK_EQ(sizes >> 48, columns);
	return get_u64(header + (sizes >> 16 & 0xffffU) + 16U + 8U * index);
}

TEST(differences_are_modulo_a_counters_width)
{
	struct host *host = start();
	const struct answer *answer = run(host, "tick", "narrow,word,full,later");

	CHECK_EQ(column(answer, 4U, 0U), 10U);
	CHECK_EQ(column(answer, 4U, 1U), 0x20U);
	CHECK_EQ(column(answer, 4U, 2U), (1ULL << 40) - 1U);
	CHECK_EQ(column(answer, 4U, 3U), 2U);
	CHECK_EQ(narrow.starts, 1U);
	CHECK_EQ(narrow.stops, 1U);
	host_stop(host);
}

/* The top bit of a width counts, and differences may be half of the range or more. */
TEST(differences_of_half_a_counters_width)
{
	static const uint64_t differences[] = {0U, 1U, 127U, 128U, 129U, 200U, 255U};
	struct host *host = start();

	for (size_t i = 0U; i < sizeof(differences) / sizeof(differences[0]); i++) {
		narrow = (struct scripted){.before = 100U, .after = 100U + differences[i]};
		later = (struct scripted){.before = 0xffffU,
					  .after = 0xffffU + 0x100U * differences[i]};
		word = (struct scripted){.before = 1U, .after = 1U + (differences[i] << 24)};
		full = (struct scripted){.before = UINT64_MAX,
					 .after = (differences[i] << 56) - 1U};
		(void)run(host, "tick", "narrow,word,full,later");
		CHECK_EQ(column(&host->answer, 4U, 0U), differences[i]);
		CHECK_EQ(column(&host->answer, 4U, 1U), differences[i] << 24);
		CHECK_EQ(column(&host->answer, 4U, 2U), differences[i] << 56);
		CHECK_EQ(column(&host->answer, 4U, 3U), 0x100U * differences[i]);
	}
	host_stop(host);
}

static uint64_t read_place(void *context)
{
	(void)context;
	return 0U;
}

/*
 * 31 counters are known, the runtime's five among them. A set has no room for the next counter:
 * that bit means that interrupts are masked.
 */
TEST(the_32nd_counter_is_not_known)
{
	static char names[27][4];
	static struct minrpc_counter many[28];
	struct host *host = host_start();
	uint64_t list = host_global(host, "minrpc.counters");
	struct args args = {0};
	char all[200] = "";
	const uint8_t *text;

	for (uint32_t i = 0U; i < 27U; i++) {
		names[i][0] = 'c';
		names[i][1] = (char)('0' + i / 10U);
		names[i][2] = (char)('0' + i % 10U);
		many[i] = (struct minrpc_counter){names[i], "", 32U, read_place, NULL, NULL};
		if (i < 26U) {
			strcat(all, names[i]);
			strcat(all, ",");
		}
	}
	host->config.counters = many;
	text = expect_returned(host_call(host, list, &args), ARG_BYTES);
	/* The peaks of stack and heap are missing, since this port does not have them. */
	CHECK_MEM(text + get_u64(text), "c25,,32\n", 8U);
	(void)column(run(host, "tick", "c25"), 1U, 0U);
	(void)column(run(host, "tick", strcat(all, "link_sent,link_received,arena_bytes")), 29U,
		     0U);
	expect_exception(create(host, "tick", "c26"), "no counter c26");
	host_stop(host);
}

/* Names and zeros up to a multiple of 8, over any bytes. */
TEST(names_are_filled_up_with_zeros)
{
	static const char *const columns[] = {"word", "word,full", "narrow", "narrow,later,full"};
	/* The names are in the order of their numbers. */
	static const char names[][24] = {"word", "word\0full", "narrow", "narrow\0full\0later"};
	static const uint32_t sizes[] = {8U, 16U, 8U, 24U};
	struct host *host = start();

	for (size_t i = 0U; i < sizeof(columns) / sizeof(columns[0]); i++) {
		const uint8_t *header;

		memset(host->server.arena.base + host->server.arena.end, 0xa5, 1000U);
		header = expect_returned(run(host, "tick", columns[i]), ARG_BYTES) + 8;
		CHECK_EQ(get_u64(header) >> 16 & 0xffffU, 16U + sizes[i]);
		CHECK_MEM(header + 16, names[i], sizes[i]);
	}
	host_stop(host);
}

/* Bytes of the link in a batch in which a function logs: frames and all. */
TEST(the_links_bytes_are_counted)
{
	struct host *host = start();
	const struct answer *answer;

	host_functions.log_size = 100U;
	answer = run(host, "talk", "link_sent,link_received");
	CHECK_EQ(column(answer, 2U, 0U), 0U);
	/* ff fd, the length, a session header, the text, the CRC. */
	CHECK_EQ(column(answer, 2U, 1U), 2U + 4U + 3U + 100U + 2U);
	host_stop(host);
}

TEST(those_before_one_that_can_not_be_had_are_stopped)
{
	struct host *host = start();

	full.refuses = true;
	expect_exception(run(host, "tick", "later,full,word,narrow"),
			 "no slot for the counter full");
	CHECK_EQ(narrow.starts, 1U);
	CHECK_EQ(narrow.stops, 1U);
	CHECK_EQ(word.starts, 1U);
	CHECK_EQ(word.stops, 1U);
	CHECK_EQ(later.starts, 0U);
	CHECK_EQ(narrow.reads, 0U);
	host_still_serves(host);
	host_stop(host);
}

TEST(counters_stop_when_the_timed_function_fails)
{
	struct host *host = start();

	host_functions.fail_at = 2U;
	expect_exception(run(host, "fail_at", "narrow,later"), "");
	CHECK_EQ(narrow.starts, 1U);
	CHECK_EQ(narrow.stops, 1U);
	CHECK_EQ(later.stops, 1U);
	host_stop(host);
}

TEST(only_whole_names_are_known)
{
	static const char *const none[] = {"narro", "narrowed", "narrow,", ",", "narrow,wor"};
	struct host *host = start();

	(void)expect_returned(create(host, "tick", none[2]), ARG_FUNCTION);
	for (size_t i = 0U; i < sizeof(none) / sizeof(none[0]); i++) {
		if (i != 2U) {
			expect_exception(create(host, "tick", none[i]), "no counter ");
		}
	}
	host_still_serves(host);
	host_stop(host);
}

/* A row has 16 bytes and 8 for each counter: with two or more the largest repeat is over 4 GiB. */
TEST(results_with_columns_that_do_not_fit_are_exceptions)
{
	static const char *const columns[] = {
		"",
		"narrow",
		"link_received,link_sent",
		"narrow,word,full,later,arena_bytes,link_received,link_sent",
	};
	static const uint64_t repeats[] = {8192U,       1U << 20,    0x04000000U,
					   0x05555556U, 0x07ffffffU, 0x08000000U};
	struct host *host = start();
	const uint32_t used = host->server.arena.used;

	for (size_t i = 0U; i < sizeof(columns) / sizeof(columns[0]); i++) {
		for (size_t j = 0U; j < sizeof(repeats) / sizeof(repeats[0]); j++) {
			struct args args = {0};
			uint64_t evaluator = get_u64(expect_returned(
				create_repeated(host, "tick", repeats[j], columns[i]),
				ARG_FUNCTION));

			expect_exception(host_call(host, evaluator, &args), "out of device memory");
			arg(&args, ARG_HANDLE, evaluator);
			arg(&args, ARG_INT, ARG_FUNCTION);
			expect_void(host_syscall(host, RPC_FREE_HANDLE, &args));
		}
		expect_exception(create_repeated(host, "tick", 0x08000001U, columns[i]),
				 "argument 5: expected 1 to 134217728");
	}
	CHECK_EQ(host_functions.calls, 0U);
	CHECK_EQ(narrow.starts, 0U);
	CHECK_EQ(host->server.arena.used, used);
	host_still_serves(host);
	host_stop(host);
}

/* The largest repeat that fits the arena, and one more. */
TEST(results_with_columns_up_to_the_arenas_end)
{
	static const char *const columns[] = {"", "link_sent", "link_received,link_sent"};

	for (uint32_t count = 0U; count < 3U; count++) {
		struct host *host = start();
		uint32_t row = 16U + 8U * count;
		uint32_t repeat = 64000U / row;
		const struct answer *answer;

		for (;; repeat++) {
			struct args args = {0};
			uint64_t evaluator = get_u64(expect_returned(
				create_repeated(host, "tick", repeat, columns[count]),
				ARG_FUNCTION));

			answer = host_call(host, evaluator, &args);
			(void)arena_check(&host->server.arena);
			if (answer->code == RPC_EXCEPTION) {
				break;
			}
			CHECK_EQ(get_u64(expect_returned(answer, ARG_BYTES) + 8) >> 48, count);
			arg(&args, ARG_HANDLE, evaluator);
			arg(&args, ARG_INT, ARG_FUNCTION);
			expect_void(host_syscall(host, RPC_FREE_HANDLE, &args));
		}
		expect_exception(answer, "out of device memory");
		CHECK(repeat * row > 65000U);
		host_stop(host);
	}
}

/* The peak of use stays the same. */
TEST(a_calls_peak_is_above_what_was_in_use)
{
	struct host *host = start();
	uint64_t data = host_alloc(host, 30000U);
	uint64_t bytes;
	uint32_t peak;

	host_free_data(host, data);
	peak = host->server.arena.peak;
	bytes = column(run(host, "leak", "arena_bytes"), 1U, 0U);
	CHECK(bytes >= 1000U);
	CHECK(bytes < 1100U);
	CHECK_EQ(host->server.arena.peak, peak);
	CHECK_EQ(column(run(host, "tick", "arena_bytes"), 1U, 0U), 0U);
	host_stop(host);
}

TEST(a_counter_that_can_not_be_stopped_is_no_failure)
{
	struct host *host = start();

	narrow.stays = true;
	CHECK_EQ(column(run(host, "tick", "narrow,word"), 2U, 0U), 10U);
	CHECK_EQ(word.starts, word.stops);
	host_stop(host);
}

/* The port has a stack of 1,000 bytes, and a heap with 100 bytes in use before the call. */
static uint32_t stack_peak;
static uint32_t heap_peak;

static void paint_scripted(void *context)
{
	(void)context;
}

static void stack_scripted(void *context, uint32_t *size, uint32_t *peak)
{
	(void)context;
	*size = 1000U;
	*peak = stack_peak;
}

static void heap_scripted(void *context, uint32_t *used, uint32_t *peak, bool reset)
{
	(void)context;
	*used = 100U;
	*peak = reset ? 100U : heap_peak;
}

static struct host *start_with_peaks(void)
{
	struct host *host = start();

	host->platform.stack_paint = paint_scripted;
	host->platform.stack_use = stack_scripted;
	host->platform.heap_use = heap_scripted;
	return host;
}

TEST(a_call_that_used_all_of_the_stack_has_no_figure)
{
	struct host *host = start_with_peaks();

	stack_peak = 999U;
	CHECK_EQ(column(run(host, "tick", "stack_bytes"), 1U, 0U), 999U);
	stack_peak = 1000U;
	expect_exception(run(host, "tick", "stack_bytes"), "used all 1000 bytes of the stack");
	host_stop(host);
}

TEST(a_calls_share_of_the_heap_is_above_what_was_in_use)
{
	struct host *host = start_with_peaks();

	heap_peak = 164U;
	CHECK_EQ(column(run(host, "tick", "heap_bytes"), 1U, 0U), 64U);
	heap_peak = 60U; /* the call freed memory of other blocks */
	CHECK_EQ(column(run(host, "tick", "heap_bytes"), 1U, 0U), 0U);
	host_stop(host);
}

TEST(the_list_tells_which_can_not_be_had)
{
	struct host *host = start();
	struct args args = {0};
	const uint8_t *list;
	char text[200] = "";

	word.refuses = true;
	list = expect_returned(host_call(host, host_global(host, "minrpc.counters"), &args),
			       ARG_BYTES);
	CHECK(get_u64(list) < sizeof(text));
	memcpy(text, list + 8, get_u64(list));
	CHECK_CONTAINS(text, "arena_bytes,bytes,32\n");
	CHECK_CONTAINS(text, "narrow,cycles,8\nword,,0\nfull,,64\nlater,,16\n");
	CHECK(strstr(text, "heap_bytes") == NULL);
	CHECK_EQ(narrow.starts, narrow.stops);
	host_stop(host);
}

static uint32_t masked;
static uint32_t unmasked;
static bool was_masked; /* when the counter was read */

static void mask(void *context, bool now)
{
	(void)context;
	CHECK_EQ(masked - unmasked, now ? 0U : 1U);
	*(now ? &masked : &unmasked) += 1U;
}

static uint64_t read_masked(void *context)
{
	(void)context;
	was_masked = masked != unmasked;
	return 0U;
}

static int no_clock(void *context)
{
	(void)context;
	return -1;
}

/* Around each batch, also a batch that fails, or is not timed; and never without a request. */
TEST(interrupts_are_masked_around_a_batch)
{
	static const struct minrpc_counter looking[] = {
		{.name = "look", .unit = "", .bits = 32U, .read = read_masked}, {.name = NULL}};
	struct host *host = start();

	masked = 0U;
	unmasked = 0U;
	expect_exception(create(host, "tick", "interrupts_masked"), "no counter interrupts_masked");
	host->platform.interrupts_mask = mask;
	host->config.counters = looking;
	host_reboot(host);
	CHECK(host_take(host));
	host_open(host, 0x26U);
	(void)column(run(host, "tick", "look"), 1U, 0U);
	CHECK_EQ(masked, 0U);
	CHECK(!was_masked);
	(void)column(run(host, "tick", "look,interrupts_masked"), 1U, 0U);
	CHECK_EQ(masked, 1U);
	CHECK_EQ(unmasked, 1U);
	CHECK(was_masked);
	host_functions.calls = 0U;
	host_functions.fail_at = 2U;
	expect_exception(run(host, "fail_at", "interrupts_masked"), "");
	CHECK_EQ(masked, 2U);
	CHECK_EQ(unmasked, 2U);
	host->platform.clock_begin = no_clock;
	expect_exception(run(host, "tick", "interrupts_masked"), "timer error");
	CHECK_EQ(masked, 3U);
	CHECK_EQ(unmasked, 3U);
	host_still_serves(host);
	host_stop(host);
}

static void answers_once(struct host *host, uint32_t turn, struct bytes *wire)
{
	struct bytes body = {0};

	host_take_next(host);
	put(&body, "7", turn == 0U ? 1U : 0U);
	put_request(wire, host->session, RPC_ANSWER, &body);
}

/* The client answers the warm-up call, and ends the call in the batch. */
TEST(interrupts_are_unmasked_when_the_client_ends_the_function)
{
	struct host *host = start();

	masked = 0U;
	unmasked = 0U;
	host->platform.interrupts_mask = mask;
	host->waiting = answers_once;
	expect_exception(run(host, "ask", "interrupts_masked"), "the client ended the function");
	CHECK_EQ(masked, 1U);
	CHECK_EQ(unmasked, 1U);
	host_still_serves(host);
	host_stop(host);
}

/* The largest number of counters, in a session whose answers are kept to be sent again. */
TEST(a_long_list_is_kept_where_it_fits)
{
	static struct minrpc_counter many[28];
	struct host *host = start();
	uint64_t list = host_global(host, "minrpc.counters");
	uint8_t *array = (uint8_t *)(uintptr_t)host_alloc(host, 8U);
	struct bytes body = {0};
	struct bytes wire = {0};

	for (uint32_t i = 0U; i < 27U; i++) {
		many[i] = counters[0];
		many[i].name = "a_counter_of_an_application_with_a_name_of_its_own";
	}
	host->config.counters = many;
	memset(array, 0x5a, 8U);
	put_u64(&body, list);
	put_u32(&body, 0U);
	put_numbered_request(&wire, host->session, 1U, RPC_CALL_FUNC, &body);
	host_give(host, &wire);
	for (uint32_t times = 0U; times < 2U; times++) {
		const uint8_t probed = 1U;
		const uint8_t *text;

		host_take_next(host);
		CHECK_EQ(open_numbered(&host->message), 1U);
		CHECK_EQ(get_u32(host->message.body.data + 8), RPC_RETURN);
		text = host->message.body.data + host->message.body.size - 9U;
		CHECK_MEM(text, "cycles,8\n", 9U);
		put_message(&wire, host->session, TYPE_PROBE, &probed, 1U);
		host_give(host, &wire);
	}
	(void)arena_check(&host->server.arena);
	CHECK_EQ(array[7], 0x5aU);
	host_take_next(host);
	host_still_serves(host);
	host_stop(host);
}

/* If there is no room for it, the call fails, and the next call does not. */
TEST(a_list_needs_memory)
{
	struct host *host = start();
	uint64_t list = host_global(host, "minrpc.counters");
	uint64_t all = host_alloc(host, host->server.arena.size - 200U);
	struct args args = {0};

	expect_exception(host_call(host, list, &args), "out of device memory");
	host_free_data(host, all);
	(void)expect_returned(host_call(host, list, &args), ARG_BYTES);
	host_stop(host);
}

CHECK_MAIN(CASE(differences_are_modulo_a_counters_width),
	   CASE(differences_of_half_a_counters_width), CASE(the_32nd_counter_is_not_known),
	   CASE(names_are_filled_up_with_zeros), CASE(the_links_bytes_are_counted),
	   CASE(those_before_one_that_can_not_be_had_are_stopped),
	   CASE(counters_stop_when_the_timed_function_fails), CASE(only_whole_names_are_known),
	   CASE(a_calls_peak_is_above_what_was_in_use), CASE(the_list_tells_which_can_not_be_had),
	   CASE(a_counter_that_can_not_be_stopped_is_no_failure),
	   CASE(a_call_that_used_all_of_the_stack_has_no_figure),
	   CASE(a_calls_share_of_the_heap_is_above_what_was_in_use),
	   CASE(a_long_list_is_kept_where_it_fits), CASE(a_list_needs_memory),
	   CASE(results_with_columns_that_do_not_fit_are_exceptions),
	   CASE(results_with_columns_up_to_the_arenas_end),
	   CASE(interrupts_are_masked_around_a_batch),
	   CASE(interrupts_are_unmasked_when_the_client_ends_the_function))
