/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The time evaluator, with a scripted clock: it advances by `host_functions.cost` with each call of
 * tick.
 */
#include <stdio.h>

#include "check.h"
#include "functions.h"
#include "host.h"

struct options {
	int64_t number;
	int64_t repeat;
	int64_t min_repeat_ms;
	int64_t limit_zero;
	int64_t cooldown_ms;
	int64_t repeats_to_cooldown;
};

/* The number of arguments that TVM v0.8 (8), v0.9 (10), v0.10 (11) or v0.14 (12) sends. */
static const struct answer *create(struct host *host, const char *global, const char *name,
				   uint32_t arity, const struct options *options)
{
	uint64_t function = host_global(host, global);
	struct args args = {0};

	arg(&args, ARG_MODULE, 0x8000U);
	arg_string(&args, name);
	arg(&args, ARG_INT, 1U);
	arg(&args, ARG_INT, 0U);
	arg(&args, ARG_INT, (uint64_t)options->number);
	arg(&args, ARG_INT, (uint64_t)options->repeat);
	arg(&args, ARG_INT, (uint64_t)options->min_repeat_ms);
	if (arity >= 11U) {
		arg(&args, ARG_INT, (uint64_t)options->limit_zero);
	}
	if (arity >= 10U) {
		arg(&args, ARG_INT, (uint64_t)options->cooldown_ms);
		arg(&args, ARG_INT, (uint64_t)options->repeats_to_cooldown);
	}
	if (arity >= 12U) {
		arg(&args, ARG_INT, 4096U); /* cache_flush_bytes */
	}
	arg_string(&args, "");
	return host_call(host, function, &args);
}

static uint64_t made(struct host *host, const char *name, uint32_t arity,
		     const struct options *options)
{
	return get_u64(expect_returned(
		create(host, "runtime.RPCTimeEvaluator", name, arity, options), ARG_FUNCTION));
}

static const struct answer *run(struct host *host, uint64_t evaluator)
{
	struct args args = {0};

	return host_call(host, evaluator, &args);
}

/* Result number i in seconds; there must be `repeat` results. */
static double seconds(const struct answer *answer, uint32_t repeat, uint32_t i)
{
	const uint8_t *result = expect_returned(answer, ARG_BYTES);

	CHECK_EQ(get_u64(result), 8U * repeat);
	return get_f64(result + 8U + 8U * i);
}

static void free_evaluator(struct host *host, uint64_t evaluator)
{
	struct args args = {0};

	arg(&args, ARG_HANDLE, evaluator);
	arg(&args, ARG_INT, ARG_FUNCTION);
	expect_void(host_syscall(host, RPC_FREE_HANDLE, &args));
}

TEST(one_untimed_call_then_number_calls_a_repeat)
{
	struct host *host = host_start();
	uint64_t evaluator = made(host, "tick", 8U, &(struct options){.number = 7, .repeat = 3});

	host_functions.cost = 5U;
	(void)run(host, evaluator);
	CHECK_EQ(host_functions.calls, 1U + 3U * 7U);
	for (uint32_t i = 0U; i < 3U; i++) {
		/* Five cycles of a microsecond. */
		CHECK(seconds(&host->answer, 3U, i) == 35e-6 / 7);
	}
	host_stop(host);
}

TEST(every_arity_is_understood)
{
	static const uint32_t arities[] = {8U, 10U, 11U, 12U};
	const struct options options = {20, 3, 40, 100, 0, 1};

	for (size_t i = 0U; i < sizeof(arities) / sizeof(arities[0]); i++) {
		struct host *host = host_start();

		(void)run(host, made(host, "tick", arities[i], &options));
		for (uint32_t j = 0U; j < 3U; j++) {
			CHECK(seconds(&host->answer, 3U, j) == 1e-6);
		}
		host_stop(host);
	}
}

TEST(other_numbers_of_arguments_are_exceptions)
{
	struct host *host = host_start();
	uint64_t create_function = host_global(host, "runtime.RPCTimeEvaluator");

	for (uint32_t count = 0U; count < 20U; count++) {
		struct args args = {0};

		if (count == 8U || count == 10U || count == 11U || count == 12U) {
			continue;
		}
		for (uint32_t i = 0U; i < count; i++) {
			if (i == 0U) {
				arg(&args, ARG_MODULE, 0x8000U);
			} else if (i == 1U || i == count - 1U) {
				arg_string(&args, "tick");
			} else {
				arg(&args, ARG_INT, 1U);
			}
		}
		expect_exception(host_call(host, create_function, &args), "arguments");
	}
	CHECK_EQ(host->server.arena.used, 0U);
	host_stop(host);
}

TEST(batches_grow_until_the_time_is_reached)
{
	struct host *host = host_start();
	/* A call of 10 us: 1 ms takes 100 of them. */
	uint64_t evaluator = made(host, "tick", 8U,
				  &(struct options){.number = 1, .repeat = 2, .min_repeat_ms = 1});

	host_functions.cost = 10U;
	(void)run(host, evaluator);
	CHECK(seconds(&host->answer, 2U, 0U) == 1e-5);
	CHECK(seconds(&host->answer, 2U, 1U) == 1e-5);
	/* 1, then 101, in each repeat: an evaluator's batch size does not leak into the next. */
	CHECK_EQ(host_functions.calls, 1U + 2U * 102U);
	host_functions.calls = 0U;
	(void)run(host, evaluator);
	CHECK_EQ(host_functions.calls, 1U + 2U * 102U);
	host_stop(host);
}

/* The case on which TVM's devices time out or answer zero: 26 ns, a clock of whole microseconds. */
TEST(a_short_function_under_a_coarse_clock)
{
	struct host *host = host_start();
	uint64_t evaluator = made(host, "tick", 8U,
				  &(struct options){.number = 20, .repeat = 3, .min_repeat_ms = 4});

	host->clock.is.cycles_hz = 1000000000U;
	host->clock.granule = 1000U;
	host_functions.cost = 26U;
	(void)run(host, evaluator);
	for (uint32_t i = 0U; i < 3U; i++) {
		double result = seconds(&host->answer, 3U, i);

		CHECK(result > 26e-9 * 0.999 && result < 26e-9 * 1.001);
	}
	host_stop(host);
}

TEST(a_zero_reading_grows_too)
{
	struct host *host = host_start();
	uint64_t evaluator = made(
		host, "tick", 11U,
		&(struct options){.number = 1, .repeat = 1, .min_repeat_ms = 1, .limit_zero = 5});

	/* No time ever passes: 1, 2, 4, 7 and 11 calls, then it gives up. */
	host_functions.cost = 0U;
	(void)run(host, evaluator);
	CHECK(seconds(&host->answer, 1U, 0U) == 0.0);
	CHECK_EQ(host_functions.calls, 1U + 1U + 2U + 4U + 7U + 11U);
	host_stop(host);
}

TEST(a_clock_that_moves_late_is_waited_for)
{
	struct host *host = host_start();
	uint64_t evaluator = made(
		host, "tick", 11U,
		&(struct options){.number = 1, .repeat = 1, .min_repeat_ms = 1, .limit_zero = 100});

	/* A tick of the clock is a millisecond, a call a microsecond. */
	host->clock.granule = 1000U;
	(void)run(host, evaluator);
	CHECK(seconds(&host->answer, 1U, 0U) > 0.0);
	host_stop(host);
}

static void check_sleeps(int64_t cooldown_ms, int64_t repeats_to_cooldown, uint32_t sleeps)
{
	struct host *host = host_start();

	(void)run(host, made(host, "tick", 10U,
			     &(struct options){.number = 1,
					       .repeat = 5,
					       .cooldown_ms = cooldown_ms,
					       .repeats_to_cooldown = repeats_to_cooldown}));
	(void)seconds(&host->answer, 5U, 4U);
	CHECK_EQ(host->sleeps, sleeps);
	CHECK_EQ(host->slept_ms, (uint64_t)cooldown_ms * sleeps);
	host_stop(host);
}

TEST(cooling_down)
{
	check_sleeps(7, 1, 5U);
	check_sleeps(7, 2, 3U); /* after the first, third and fifth */
	check_sleeps(7, 5, 1U);
	check_sleeps(7, 0, 0U);
	check_sleeps(0, 1, 0U);
	check_sleeps(0, 0, 0U);
}

TEST(numbers_that_make_no_sense_are_exceptions)
{
	static const struct options bad[] = {
		{.number = 0, .repeat = 1},
		{.number = -1, .repeat = 1},
		{.number = 1, .repeat = 0},
		{.number = 1, .repeat = -1},
		{.number = INT64_MAX, .repeat = 1},
		{.number = 1, .repeat = INT64_MAX},
		{.number = 1LL << 32, .repeat = 1},
		{.number = 1, .repeat = (1LL << 32) + 1},
		{.number = 1, .repeat = INT64_MIN},
		{.number = 1, .repeat = 1, .min_repeat_ms = -1},
		{.number = 1, .repeat = 1, .limit_zero = -1},
		{.number = 1, .repeat = 1, .cooldown_ms = -1},
		{.number = 1, .repeat = 1, .repeats_to_cooldown = INT64_MIN},
	};
	struct host *host = host_start();

	for (size_t i = 0U; i < sizeof(bad) / sizeof(bad[0]); i++) {
		expect_exception(create(host, "runtime.RPCTimeEvaluator", "tick", 12U, &bad[i]),
				 "time evaluator");
	}
	CHECK_EQ(host->server.arena.used, 0U);
	host_still_serves(host);
	host_stop(host);
}

/* The largest value of each option is taken, the next is refused, with any values of the others. */
TEST(each_option_has_a_limit)
{
	static const int64_t limit = 0x08000000;
	static const char *const globals[] = {"runtime.RPCTimeEvaluator", "minrpc.time_evaluator"};
	struct host *host = host_start();

	for (int i = 0; i < 6; i++) {
		for (int j = 0; j < 2; j++) {
			struct options options = {.number = 1, .repeat = 1};
			int64_t *all[] = {&options.number,        &options.repeat,
					  &options.min_repeat_ms, &options.limit_zero,
					  &options.cooldown_ms,   &options.repeats_to_cooldown};
			char text[64];

			*all[i] = limit;
			free_evaluator(host, get_u64(expect_returned(create(host, globals[j],
									    "tick", 11U, &options),
								     ARG_FUNCTION)));
			*all[i] = limit + 1;
			(void)snprintf(text, sizeof(text), "argument %d: expected %d to 134217728",
				       i + 4, i == 1 || (i == 0 && j == 0));
			expect_exception(create(host, globals[j], "tick", 11U, &options), text);
		}
	}
	CHECK_EQ(host->server.arena.used, 0U);
	host_stop(host);
}

/* For any number of results: a result that does not fit the arena is an exception. */
TEST(results_that_do_not_fit_are_exceptions)
{
	static const int64_t repeats[] = {9000,    1 << 20, 1 << 24, (1 << 27) - 1, 1 << 27,
					  1 << 28, 1 << 29, 1 << 30, INT32_MAX};
	struct host *host = host_start();

	for (size_t i = 0U; i < sizeof(repeats) / sizeof(repeats[0]); i++) {
		const struct options options = {.number = 1, .repeat = repeats[i]};
		static const char *const globals[] = {"runtime.RPCTimeEvaluator",
						      "minrpc.time_evaluator"};

		for (int j = 0; j < 2; j++) {
			const struct answer *answer =
				create(host, globals[j], "tick", 8U, &options);

			if (answer->code == RPC_RETURN) {
				uint64_t evaluator = get_u64(expect_returned(answer, ARG_FUNCTION));

				expect_exception(run(host, evaluator), "memory");
				free_evaluator(host, evaluator);
			}
		}
	}
	CHECK_EQ(host_functions.calls, 0U);
	CHECK_EQ(host->server.arena.used, 0U);
	host_still_serves(host);
	host_stop(host);
}

TEST(more_results_than_tvms_client_can_take_are_refused)
{
	static const struct {
		uint32_t arity;
		int64_t repeat;
		bool refused;
	} cases[] = {{8U, 251, false}, {10U, 251, false}, {11U, 250, false},
		     {11U, 251, true}, {12U, 250, false}, {12U, 251, true}};
	struct host *host = host_start();

	for (size_t i = 0U; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct options options = {.number = 1, .repeat = cases[i].repeat};
		const struct answer *answer =
			create(host, "runtime.RPCTimeEvaluator", "tick", cases[i].arity, &options);

		if (cases[i].refused) {
			expect_exception(answer, "repeat is over 250");
			continue;
		}
		free_evaluator(host, get_u64(expect_returned(answer, ARG_FUNCTION)));
	}
	/* A client that has asked for this runtime's own functions has no such limit. */
	(void)host_global(host, "minrpc.device_info");
	(void)seconds(
		run(host, made(host, "tick", 12U, &(struct options){.number = 1, .repeat = 251})),
		251U, 250U);
	/* The next session's client has not asked. */
	host_open(host, 0x31U);
	expect_exception(create(host, "runtime.RPCTimeEvaluator", "tick", 12U,
				&(struct options){.number = 1, .repeat = 251}),
			 "repeat is over 250");
	host_stop(host);
}

TEST(a_failure_anywhere_stops_the_timer)
{
	struct host *host = host_start();
	uint64_t evaluator = made(host, "fail_at", 8U, &(struct options){.number = 4, .repeat = 2});

	for (uint32_t at = 1U; at <= 9U; at++) {
		host_functions.calls = 0U;
		host_functions.fail_at = at;
		expect_exception(run(host, evaluator), "-1");
		CHECK_EQ(host_functions.calls, at);
		CHECK_EQ(host->clock.begun, host->clock.ended);
		CHECK(!host->server.timer.running);
	}
	host_functions.fail_at = 0U;
	(void)seconds(run(host, evaluator), 2U, 1U);
	host_stop(host);
}

TEST(the_failing_functions_own_text_is_told)
{
	struct host *host = host_start();

	expect_exception(
		run(host, made(host, "fail_text", 8U, &(struct options){.number = 4, .repeat = 2})),
		"no luck");
	host_stop(host);
}

TEST(a_clock_that_does_not_begin_is_told)
{
	struct host *host = host_start();
	uint64_t evaluator = made(host, "tick", 8U, &(struct options){.number = 1, .repeat = 1});

	host->clock.begin_result = -1;
	expect_exception(run(host, evaluator), "timer");
	host->clock.begin_result = 0;
	(void)seconds(run(host, evaluator), 1U, 0U);
	host_stop(host);
}

TEST(a_timer_that_runs_already_is_told)
{
	struct host *host = host_start();
	uint64_t evaluator = made(host, "tick", 8U, &(struct options){.number = 1, .repeat = 1});

	host->server.timer.running = true;
	expect_exception(run(host, evaluator), "0x504");
	host->server.timer.running = false;
	(void)seconds(run(host, evaluator), 1U, 0U);
	host_stop(host);
}

TEST(many_evaluators_live_at_once)
{
	enum {
		MANY = 100,
	};
	struct host *host = host_start();
	uint64_t evaluators[MANY];

	for (uint32_t i = 0U; i < MANY; i++) {
		evaluators[i] =
			made(host, "tick", 8U, &(struct options){.number = 1 + i, .repeat = 1});
	}
	for (uint32_t i = 0U; i < MANY; i++) {
		host_functions.calls = 0U;
		(void)run(host, evaluators[i]);
		CHECK_EQ(host_functions.calls, 2U + i);
	}
	/* The evaluators are freed from the middle outwards. */
	for (uint32_t i = 0U; i < MANY; i++) {
		free_evaluator(
			host, evaluators[i % 2U == 0U ? MANY / 2 - 1 - i / 2U : MANY / 2 + i / 2U]);
	}
	CHECK_EQ(host->server.arena.used, 0U);
	host_stop(host);
}

TEST(a_freed_evaluator_is_gone)
{
	struct host *host = host_start();
	uint64_t evaluator = made(host, "tick", 8U, &(struct options){.number = 1, .repeat = 1});
	struct args args = {0};

	free_evaluator(host, evaluator);
	expect_exception(run(host, evaluator), "0x");
	arg(&args, ARG_HANDLE, evaluator);
	arg(&args, ARG_INT, ARG_FUNCTION);
	expect_exception(host_syscall(host, RPC_FREE_HANDLE, &args), "0x");
	/* The next evaluator has another handle. */
	CHECK(made(host, "tick", 8U, &(struct options){.number = 1, .repeat = 1}) != evaluator);
	host_stop(host);
}

TEST(evaluators_end_with_their_session)
{
	struct host *host = host_start();
	uint64_t evaluator = made(host, "tick", 8U, &(struct options){.number = 1, .repeat = 1});

	host_open(host, 0x77U);
	expect_exception(run(host, evaluator), "0x");
	CHECK_EQ(host->server.arena.used, 0U);
	host_stop(host);
}

TEST(results_are_freed_after_they_are_sent)
{
	struct host *host = host_start();
	uint64_t evaluator = made(host, "tick", 8U, &(struct options){.number = 1, .repeat = 100});
	uint32_t used = host->server.arena.used;

	for (int i = 0; i < 200; i++) {
		(void)run(host, evaluator);
		CHECK_EQ(host->server.arena.used, used);
	}
	host_stop(host);
}

TEST(what_the_timed_function_returns_is_not_the_result)
{
	struct host *host = host_start();
	uint64_t evaluator = made(host, "ret", 8U, &(struct options){.number = 3, .repeat = 1});

	host_functions.type_code = ARG_STRING;
	host_functions.value.v_str = "mine";
	(void)seconds(run(host, evaluator), 1U, 0U);
	host_stop(host);
}

TEST(workspace_that_a_timed_function_keeps_is_freed)
{
	struct host *host = host_start();
	uint64_t evaluator = made(host, "leak", 8U, &(struct options){.number = 10, .repeat = 1});
	uint32_t used = host->server.arena.used;

	for (int i = 0; i < 50; i++) {
		(void)run(host, evaluator);
		CHECK_EQ(host->server.arena.used, used);
	}
	host_stop(host);
}

TEST(unknown_functions_and_modules_are_exceptions)
{
	struct host *host = host_start();
	const struct options options = {.number = 1, .repeat = 1};
	uint64_t create_function = host_global(host, "runtime.RPCTimeEvaluator");
	static const uint64_t modules[] = {0U, 0x8001U, 0x100008000U, UINT64_MAX};

	expect_exception(create(host, "runtime.RPCTimeEvaluator", "nothing", 8U, &options),
			 "nothing");
	for (size_t i = 0U; i < sizeof(modules) / sizeof(modules[0]); i++) {
		struct args args = {0};

		arg(&args, ARG_MODULE, modules[i]);
		arg_string(&args, "tick");
		for (int j = 0; j < 5; j++) {
			arg(&args, ARG_INT, 1U);
		}
		arg_string(&args, "");
		expect_exception(host_call(host, create_function, &args), "module");
	}
	host_stop(host);
}

/* ---------------------------------------------------------------- counting */

struct counts {
	uint64_t hz;
	uint64_t cycles;
	uint32_t number;
	uint32_t batches;
};

static struct counts counted(const struct answer *answer, uint32_t repeat, uint32_t i)
{
	const uint8_t *result = expect_returned(answer, ARG_BYTES);

	const uint8_t *row = result + 24U + 16U * i;

	CHECK_EQ(get_u64(result), 16U + 16U * repeat);
	/* The header: version, its size, the stride, no further columns. */
	CHECK_EQ(get_u64(result + 8), 0x0000001000100001U);
	return (struct counts){get_u64(result + 16), get_u64(row), get_u32(row + 8),
			       get_u32(row + 12)};
}

static uint64_t made_counting(struct host *host, const char *name, const struct options *options)
{
	return get_u64(expect_returned(create(host, "minrpc.time_evaluator", name, 12U, options),
				       ARG_FUNCTION));
}

TEST(counts_of_every_repeat)
{
	struct host *host = host_start();
	uint64_t evaluator = made_counting(
		host, "tick",
		&(struct options){.number = 1, .repeat = 2, .min_repeat_ms = 1, .limit_zero = 9});

	host_functions.cost = 10U;
	(void)run(host, evaluator);
	for (uint32_t i = 0U; i < 2U; i++) {
		struct counts counts = counted(&host->answer, 2U, i);

		CHECK_EQ(counts.hz, 1000000U);
		CHECK_EQ(counts.cycles, 1010U);
		CHECK_EQ(counts.number, 101U);
		CHECK_EQ(counts.batches, 2U);
	}
	host_stop(host);
}

TEST(the_empty_name_times_the_call_and_no_calls_the_timer)
{
	struct host *host = host_start();
	uint64_t empty = made_counting(host, "", &(struct options){.number = 9, .repeat = 1});
	uint64_t timer = made_counting(host, "", &(struct options){.number = 0, .repeat = 1});

	host->clock.per_sample = 3U;
	CHECK_EQ(counted(run(host, empty), 1U, 0U).number, 9U);
	CHECK_EQ(counted(run(host, timer), 1U, 0U).number, 0U);
	CHECK_EQ(counted(run(host, timer), 1U, 0U).cycles, 3U);
	expect_exception(create(host, "runtime.RPCTimeEvaluator", "", 8U,
				&(struct options){.number = 1, .repeat = 1}),
			 "");
	host_stop(host);
}

/*
 * A counter that stands still: the coarse clock has the time, and each result shows it by its top
 * bit.
 */
TEST(what_the_coarse_clock_timed_says_so)
{
	struct host *host = host_start();
	const struct options options = {.number = 4, .repeat = 2};
	uint64_t counting = made_counting(host, "tick", &options);
	uint64_t plain = made(host, "tick", 12U, &options);

	host_functions.cost = 0U;
	host->clock.is.coarse_hz = 1000U;
	host->clock.coarse_per_sample = 7U;
	(void)run(host, counting);
	for (uint32_t i = 0U; i < 2U; i++) {
		CHECK_EQ(counted(&host->answer, 2U, i).cycles, 7000U);
		CHECK_EQ(counted(&host->answer, 2U, i).batches, 1U | 1U << 31);
	}
	CHECK(seconds(run(host, plain), 2U, 1U) == 0.007 / 4);
	/* If the two agree, the time is the counter's again, without the mark. */
	host->clock.per_sample = 7001U;
	(void)run(host, counting);
	CHECK_EQ(counted(&host->answer, 2U, 1U).cycles, 7001U);
	CHECK_EQ(counted(&host->answer, 2U, 1U).batches, 1U);
	host_stop(host);
}

/* ---------------------------------------------------------------- abandoning */

static struct bytes waiting;
static uint32_t looks;
static uint32_t arrives_at; /* at this look */
static uint32_t piece_size; /* they lie in several pieces, as in a ring */

static uint32_t port_pending(void *context, uint32_t from, const uint8_t **data)
{
	uint32_t left = waiting.size - from;

	(void)context;
	looks += from == 0U;
	*data = waiting.data + from;
	return looks < arrives_at ? 0U : left < piece_size ? left : piece_size;
}

static struct host *start_pending(const uint8_t *message, uint32_t size, uint32_t look)
{
	struct host *host = host_start();

	waiting = (struct bytes){0};
	put_u8(&waiting, 0x55U);
	put_frame(&waiting, message, size);
	looks = 0U;
	arrives_at = look;
	piece_size = UINT32_MAX;
	host->platform.pending = port_pending;
	return host;
}

static const uint8_t session_start[] = {0x77U, 0U, 0U, 1U};

static void give_run(struct host *host, uint64_t evaluator)
{
	struct bytes wire = {0};

	put_call(&wire, host->session, evaluator);
	host_give(host, &wire);
}

/* The client that waited has gone: no answer, and its successor is served. */
static void expect_abandoned(struct host *host)
{
	host_expect_silence(host);
	CHECK_EQ(host->clock.begun, host->clock.ended);
	host_receive(host, &waiting);
	host_take_next(host);
	CHECK_EQ(host->message.type, TYPE_REPLY);
	host->session = host->message.session;
	host_still_serves(host);
	CHECK_EQ(arena_check(&host->server.arena), 0U);
	bytes_free(&waiting);
	host_stop(host);
}

/* A call takes 0.1 s, so two or three lie between two looks: the third look comes within ten. */
TEST(a_new_session_ends_a_long_batch)
{
	struct host *host = start_pending(session_start, sizeof(session_start), 3U);
	uint64_t evaluator =
		made_counting(host, "tick", &(struct options){.number = 1 << 27, .repeat = 1});

	host_functions.cost = 100000U;
	give_run(host, evaluator);
	CHECK(host_functions.calls <= 10U);
	expect_abandoned(host);
}

TEST(a_new_session_ends_batches_that_grow)
{
	struct host *host = start_pending(session_start, sizeof(session_start), 3U);
	uint64_t evaluator = made_counting(
		host, "tick",
		&(struct options){
			.number = 1, .repeat = 5, .min_repeat_ms = 100000, .limit_zero = 9});

	give_run(host, evaluator);
	CHECK(host_functions.calls < 600000U);
	expect_abandoned(host);
}

TEST(a_new_session_ends_a_cool_down)
{
	struct host *host = start_pending(session_start, sizeof(session_start), 5U);
	uint64_t evaluator = made_counting(host, "tick",
					   &(struct options){.number = 1,
							     .repeat = 3,
							     .cooldown_ms = 1 << 27,
							     .repeats_to_cooldown = 1});

	give_run(host, evaluator);
	CHECK(host->slept_ms <= 500U);
	expect_abandoned(host);
}

TEST(a_session_start_in_two_pieces_of_a_ring_is_seen)
{
	for (uint32_t size = 1U; size < 16U; size++) {
		struct host *host = start_pending(session_start, sizeof(session_start), 1U);
		uint64_t evaluator = made_counting(
			host, "tick", &(struct options){.number = 1 << 27, .repeat = 1});

		piece_size = size;
		host_functions.cost = 1000000U;
		give_run(host, evaluator);
		CHECK(host_functions.calls <= 2U);
		expect_abandoned(host);
	}
}

/* Bytes arrive in each call: the first look follows the untimed call, the third look the second
 * timed call.
 */
TEST(bytes_are_looked_for_after_a_call_that_they_came_in)
{
	struct host *host = start_pending(session_start, sizeof(session_start), 3U);
	uint64_t evaluator =
		made_counting(host, "tick", &(struct options){.number = 1 << 27, .repeat = 1});

	host->server.received = &host_functions.calls;
	give_run(host, evaluator);
	CHECK_EQ(host_functions.calls, 3U);
	expect_abandoned(host);
}

/*
 * Bytes that come in during each call stop the batch for a look. They start no session, so the rest
 * of the batch's calls is made, and the time is the time of all calls.
 */
TEST(a_batch_that_bytes_interrupt_has_all_its_calls)
{
	struct host *host = start_pending(session_start, sizeof(session_start), UINT32_MAX);
	uint64_t evaluator =
		made_counting(host, "tick", &(struct options){.number = 50, .repeat = 3});
	const struct answer *answer;

	host->platform.received = &host_functions.calls;
	host->server.received = &host_functions.calls;
	host_functions.cost = 10U;
	answer = run(host, evaluator);
	CHECK_EQ(host_functions.calls, 151U);
	for (uint32_t i = 0U; i < 3U; i++) {
		CHECK_EQ(counted(answer, 3U, i).number, 50U);
		CHECK_EQ(counted(answer, 3U, i).cycles, 500U);
		CHECK_EQ(counted(answer, 3U, i).batches, 1U);
	}
	/* There was a look after each call except a batch's last, and a look after each batch. */
	CHECK_EQ(looks, 1U + 3U * 50U);
	bytes_free(&waiting);
	host_stop(host);
}

/* A look is code that a time would hold: there is one after the untimed call and one after each
 * repeat. */
TEST(no_look_falls_into_a_batch_while_nothing_comes_in)
{
	static const uint32_t nothing;
	struct host *host = start_pending(session_start, sizeof(session_start), UINT32_MAX);
	uint64_t evaluator =
		made_counting(host, "tick", &(struct options){.number = 1000, .repeat = 2});

	host->platform.received = &nothing;
	host->server.received = &nothing;
	host_functions.cost = 100000U;
	give_run(host, evaluator);
	CHECK_EQ(host_functions.calls, 2001U);
	CHECK_EQ(looks, 3U);
	host_take_next(host);
	host_still_serves(host);
	bytes_free(&waiting);
	host_stop(host);
}

/* It came with the request, in one piece, so the port does not have it any more. */
TEST(a_session_start_right_behind_the_request_is_seen)
{
	struct host *host = start_pending(session_start, sizeof(session_start), UINT32_MAX);
	uint64_t evaluator =
		made_counting(host, "tick", &(struct options){.number = 1 << 27, .repeat = 1});
	struct bytes wire = {0};

	host_functions.cost = 1000000U;
	put_call(&wire, host->session, evaluator);
	put(&wire, waiting.data, waiting.size);
	host_give(host, &wire);
	CHECK(host_functions.calls <= 2U);
	host_take_next(host);
	CHECK_EQ(host->message.type, TYPE_REPLY);
	host->session = host->message.session;
	host_still_serves(host);
	bytes_free(&waiting);
	host_stop(host);
}

/* Also in a device's first run, in which nothing has been timed before: a call takes 1 ms. */
TEST(looks_are_a_quarter_of_a_second_apart)
{
	struct host *host = start_pending(session_start, sizeof(session_start), UINT32_MAX);
	uint64_t evaluator =
		made_counting(host, "tick", &(struct options){.number = 1000, .repeat = 2});

	host_functions.cost = 1000U;
	CHECK_EQ(counted(run(host, evaluator), 2U, 1U).number, 1000U);
	/* Three looks in each batch, one after each batch, and one after the untimed call. */
	CHECK_EQ(looks, 2U * 4U + 1U);
	bytes_free(&waiting);
	host_stop(host);
}

/*
 * The time of a call is unknown: looks happen all the same, and the batch ends.
 */
TEST(calls_between_two_looks_under_a_clock_that_stands_still)
{
	struct host *host = start_pending(session_start, sizeof(session_start), UINT32_MAX);
	uint64_t evaluator =
		made_counting(host, "tick", &(struct options){.number = 100000, .repeat = 2});

	host->clock.is.cycles_hz = UINT32_MAX;
	CHECK_EQ(counted(run(host, evaluator), 2U, 1U).number, 100000U);
	CHECK_EQ(host_functions.calls, 200001U);
	bytes_free(&waiting);
	host_stop(host);
}

/* Other waiting bytes, and a damaged start, do not end the measurement. */
TEST(other_bytes_end_nothing)
{
	static const uint8_t messages[][5] = {
		{0x77U, 0U, 1U, 1U}, {0U, 0U, 0U, 1U}, {0x77U, 0U, 0x10U, 1U}};
	uint32_t sizes[] = {4U, 4U, 4U};

	for (size_t i = 0U; i < 6U; i++) {
		struct host *host = i < 3U ? start_pending(messages[i], sizes[i], 1U)
					   : start_pending(session_start, i == 3U ? 3U : 4U, 1U);
		uint64_t evaluator =
			made_counting(host, "tick", &(struct options){.number = 50, .repeat = 2});

		if (i == 4U) {
			waiting.data[waiting.size - 1U] ^= 1U;
		} else if (i == 5U) {
			waiting.size--;
		}
		host_functions.cost = 100000U;
		CHECK_EQ(counted(run(host, evaluator), 2U, 1U).number, 50U);
		CHECK_EQ(host_functions.calls, 101U);
		CHECK(looks > 20U);
		bytes_free(&waiting);
		host_stop(host);
	}
}

CHECK_MAIN(CASE(one_untimed_call_then_number_calls_a_repeat), CASE(every_arity_is_understood),
	   CASE(other_numbers_of_arguments_are_exceptions),
	   CASE(batches_grow_until_the_time_is_reached),
	   CASE(a_short_function_under_a_coarse_clock), CASE(a_zero_reading_grows_too),
	   CASE(a_clock_that_moves_late_is_waited_for), CASE(cooling_down),
	   CASE(numbers_that_make_no_sense_are_exceptions), CASE(each_option_has_a_limit),
	   CASE(results_that_do_not_fit_are_exceptions),
	   CASE(more_results_than_tvms_client_can_take_are_refused),
	   CASE(a_failure_anywhere_stops_the_timer), CASE(the_failing_functions_own_text_is_told),
	   CASE(a_clock_that_does_not_begin_is_told), CASE(a_timer_that_runs_already_is_told),
	   CASE(many_evaluators_live_at_once), CASE(a_freed_evaluator_is_gone),
	   CASE(evaluators_end_with_their_session), CASE(results_are_freed_after_they_are_sent),
	   CASE(what_the_timed_function_returns_is_not_the_result),
	   CASE(workspace_that_a_timed_function_keeps_is_freed),
	   CASE(unknown_functions_and_modules_are_exceptions), CASE(counts_of_every_repeat),
	   CASE(the_empty_name_times_the_call_and_no_calls_the_timer),
	   CASE(a_new_session_ends_a_long_batch), CASE(a_new_session_ends_batches_that_grow),
	   CASE(a_new_session_ends_a_cool_down),
	   CASE(a_session_start_in_two_pieces_of_a_ring_is_seen),
	   CASE(bytes_are_looked_for_after_a_call_that_they_came_in),
	   CASE(a_batch_that_bytes_interrupt_has_all_its_calls),
	   CASE(no_look_falls_into_a_batch_while_nothing_comes_in),
	   CASE(a_session_start_right_behind_the_request_is_seen),
	   CASE(looks_are_a_quarter_of_a_second_apart),
	   CASE(calls_between_two_looks_under_a_clock_that_stands_still),
	   CASE(other_bytes_end_nothing), CASE(what_the_coarse_clock_timed_says_so))
