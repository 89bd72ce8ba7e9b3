/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The time evaluator. Each evaluator is an object with one function, which times another function.
 * A run leaves no state behind.
 */
#include <string.h>

#include "rpc.h"

/* The largest number of calls in a batch: more calls don't improve any clock's result. */
#ifndef NUMBER_MAX
#define NUMBER_MAX 0x40000000U
#endif

/* The largest value of each option. */
#define OPTION_MAX 0x08000000U

/* The number of results that fit a message of 2,048 bytes with 43 bytes of headers. */
#define REPEAT_MAX_TVM 250U

/*
 * Number of batches that may read zero before a repeat gives up, for clients without this option.
 */
#define LIMIT_ZERO_DEFAULT 100U

/* A cool-down sleeps in pieces of this length, with a look at the link after each. */
#define COOLDOWN_PIECE_MS 100U

enum option {
	NUMBER,
	REPEAT,
	MIN_REPEAT_MS,
	LIMIT_ZERO_TIME_ITERATIONS,
	COOLDOWN_INTERVAL_MS,
	REPEATS_TO_COOLDOWN,
	OPTIONS,
};

struct evaluator {
	struct minrpc_object object;
	struct minrpc_callee callee;
	uint32_t options[OPTIONS];
	bool counting; /* report cycles instead of seconds */
#if MINRPC_COUNTERS
	uint32_t chosen; /* set of counters to read with each repeat */
#endif
};

#define is_counting(evaluator) (MINRPC_COUNTING && (evaluator)->counting)

/* The measurement of a repeat: its last batch. */
struct sample {
	uint64_t cycles;
	uint32_t number;
	uint32_t batches; /* that the repeat needed; top bit: the coarse clock was used */
};

#define COARSE_CLOCK (1U << 31)

#if MINRPC_COUNTING
/*
 * A counting evaluator's result. This header comes first. The names of the counters follow, a NUL
 * behind each, padded with zeros up to `size`. Then comes a row for each repeat: a sample, and a
 * u64 for each counter. All numbers are little-endian.
 */
struct counting_header {
	uint8_t version;  /* of this format; later versions append fields in front of the names */
	uint8_t native;   /* 1 for a function of struct minrpc_function, 0 for one of TVM's form */
	uint16_t size;    /* bytes in front of the first row, a multiple of 8 */
	uint16_t stride;  /* bytes of a row, a multiple of 8 */
	uint16_t columns; /* number of u64 behind the sample of a row */
	uint64_t cycles_hz;
};

#define COUNTING_VERSION 1U

_Static_assert(sizeof(struct counting_header) == 16U && sizeof(struct sample) == 16U,
	       "on every machine the same");

/*
 * The functions with the names "" and " ", of TVM's form and of our own. A counting evaluator times
 * with them the cost of a call, which depends on the form, and, with number 0, of the timer.
 */
static int empty_function(TVMValue *args, int *type_codes, int num_args, TVMValue *out_ret_value,
			  int *out_ret_tcode, void *resource_handle)
{
	(void)args;
	(void)type_codes;
	(void)num_args;
	(void)out_ret_value;
	(void)out_ret_tcode;
	(void)resource_handle;
	return 0;
}

/* The registry of the empty function. */
static const TVMBackendPackedCFunc empty_functions[] = {empty_function};
static const TVMFuncRegistry empty_registry = {"\001\000\0", empty_functions};

static bool run_nothing(struct minrpc_call *call)
{
	(void)call;
	return true;
}

static const struct minrpc_function native_empty_function = {" ", NULL, run_nothing};
#endif

/*
 * The arguments are module, name, device type, device id, the options, and a string. Their number
 * is 8, 10, 11 or 12, depending on the client's version of TVM.
 */
static bool check_form(struct minrpc_call *call)
{
	int count = call->args.count;
	char form[] = "msiiiiiiiiis";

	if (count >= 8 && count != 9 && count < 12) {
		form[count - 1] = 's';
		form[count] = '\0';
	}
	return minrpc_check_arguments(call, form);
}

/*
 * Reads the options in their order on the wire. Ignores v0.14's cache_flush_bytes, as TVM's own
 * devices do: it is for the caches of a host.
 */
static bool take_options(struct minrpc_server *server, const struct minrpc_args *args,
			 struct evaluator *evaluator)
{
	/* Number and repeat are at least 1. Only a counting evaluator may have number 0. */
	uint32_t positive = is_counting(evaluator) ? 1U << REPEAT : 1U << NUMBER | 1U << REPEAT;
	uint32_t option = NUMBER;

	evaluator->options[LIMIT_ZERO_TIME_ITERATIONS] = LIMIT_ZERO_DEFAULT;
	for (int i = 4; i < args->count - 1 && option < OPTIONS; i++, option++) {
		uint32_t value = minrpc_size((uint64_t)args->values[i].v_int64);
		uint32_t least;

		/* TVM up to v0.9 does not send this option. */
		option += option == LIMIT_ZERO_TIME_ITERATIONS && args->count < 11;
		least = positive >> option & 1U;
		if (value < least || value > OPTION_MAX) {
			return minrpc_fail(server, "time evaluator: argument %d: expected %u to %u",
					   i, (unsigned int)least, OPTION_MAX);
		}
		evaluator->options[option] = value;
	}
	return true;
}

/*
 * TVM's clients from v0.12 on hang on an answer of more than 2,048 bytes. Clients of v0.10 and
 * v0.11 take it, but send the same 11 arguments as v0.12 and v0.13, so all clients that send 11 are
 * refused.
 */
static bool check_repeat(struct minrpc_server *server, const struct minrpc_args *args,
			 const struct evaluator *evaluator)
{
	return evaluator->options[REPEAT] <= REPEAT_MAX_TVM || args->count < 11 ||
	       server->own_client ||
	       minrpc_fail(server,
			   "time evaluator: repeat is over %u, TVM from v0.12 on can't take it",
			   REPEAT_MAX_TVM);
}

static bool find_timed_function(struct minrpc_server *server, const TVMValue *values,
				struct evaluator *evaluator)
{
	uintptr_t module = minrpc_handle((uint64_t)values[0].v_int64);
	const char *name = values[1].v_str;
	struct minrpc_library library;
	uint32_t first;

	if (!minrpc_find_module(server, module, &library, &first)) {
		return false;
	}
#if MINRPC_COUNTING
	if (evaluator->counting && *name == '\0') {
		evaluator->callee.packed = &empty_registry;
		return true;
	}
	if (evaluator->counting && *name == ' ') {
		evaluator->callee.function = &native_empty_function;
		return true;
	}
#endif
	/*
	 * The evaluator is freed with a loaded module. No object has the system library's handle.
	 */
	evaluator->object.owner = (uint32_t)module;
	return minrpc_library_at(&library, minrpc_library_find(&library, name),
				 &evaluator->callee) ||
	       minrpc_fail(server, "no function %s in the library", name);
}

#if MINRPC_COUNTERS
/* Reads the counters' names from the last argument. */
static bool take_counters(struct minrpc_server *server, const struct minrpc_args *args,
			  struct evaluator *evaluator)
{
	return !evaluator->counting ||
	       minrpc_counters_choose(server, args->values[args->count - 1].v_str,
				      &evaluator->chosen);
}
#else
#define take_counters(server, args, evaluator) true
#endif

static bool create(struct minrpc_call *call, bool counting)
{
	struct minrpc_server *server = call->server;
	struct evaluator *made;

	if (!check_form(call)) {
		return false;
	}
	made = minrpc_object_create(server, sizeof(*made));
	if (made == NULL) {
		return false;
	}
	made->counting = counting;
	made->object.type_code = kTVMPackedFuncHandle;
	made->object.module.functions = &minrpc_evaluator_function;
	made->object.module.count = 1U;
	made->object.module.resource = made;
	if (!find_timed_function(server, call->args.values, made) ||
	    !take_options(server, &call->args, made) || !check_repeat(server, &call->args, made) ||
	    !take_counters(server, &call->args, made)) {
		minrpc_object_free(server, &made->object);
		return false;
	}
	return minrpc_return_handle(call, kTVMPackedFuncHandle, made->object.handle + 1U);
}

bool minrpc_evaluator_create(struct minrpc_call *call)
{
	return create(call, false);
}

#if MINRPC_COUNTING
bool minrpc_evaluator_create_counting(struct minrpc_call *call)
{
	return create(call, true);
}
#endif

/* ------------------------------------------------------------------------- a run */

struct run {
	struct minrpc_server *server;
	const struct evaluator *evaluator;
	struct minrpc_call *call;
	struct sample sample; /* of the current repeat */
	bool done;            /* the current batch succeeded */
#if MINRPC_ABANDON
	uint32_t between; /* number of calls between two looks at the link */
#endif
#if MINRPC_COUNTERS
	uint64_t *counted; /* destination of the current repeat's counters */
#endif
};

static uint32_t option(const struct run *run, enum option which)
{
	return run->evaluator->options[which];
}

static bool invoke(struct run *run, uint32_t number)
{
	return minrpc_invoke(&run->evaluator->callee, number, run->call);
}

static bool invoke_timed(struct run *run, uint32_t number)
{
	return minrpc_invoke_timed(&run->evaluator->callee, number, run->call);
}

#if MINRPC_ABANDON

/* True when the port does not notice arrivals, so that looks at the link must be spaced in time. */
static bool has_to_space(const struct run *run)
{
	const struct minrpc_platform *platform = run->server->config->platform;

	return platform->pending != NULL && platform->received == NULL;
}

/*
 * Sets the number of calls between two looks to a quarter of a second's worth, at least 1. `number`
 * calls took `cycles`.
 */
static void space_looks(struct run *run, uint32_t number, uint64_t cycles)
{
	uint64_t quarter = run->server->timer.clock.cycles_hz / 4U;

	run->between = UINT32_MAX;
	if (has_to_space(run) && number != 0U) {
		/* A batch measured as 0 cycles is assumed to take 1 cycle. */
		run->between = minrpc_size(minrpc_clock_convert(quarter, cycles + 1U, number) + 1U);
	}
}

/* Makes one call and times it alone, to space the looks. */
static bool invoke_to_space(struct run *run)
{
	const struct minrpc_config *config = run->server->config;
	struct minrpc_clock_sample start;
	struct minrpc_clock_sample stop;
	bool done;

	config->platform->clock_describe(config->context, &run->server->timer.clock);
	config->platform->clock_sample(config->context, &start);
	done = invoke(run, 1U);
	config->platform->clock_sample(config->context, &stop);
	space_looks(run, 1U, stop.cycles - start.cycles);
	return done;
}

/* Makes one untimed call: it warms the caches, and a function that fails does so here. */
static bool warm_up(struct run *run)
{
	bool done;

	run->between = UINT32_MAX;
	done = has_to_space(run) ? invoke_to_space(run) : invoke(run, 1U);
	return done && !minrpc_is_abandoned(run->server);
}

/*
 * Makes the calls of a batch. Looks at the link when bytes have arrived, or about every quarter of
 * a second where the port does not notice arrivals. The time of the batch contains these looks.
 */
static bool run_batch(struct run *run)
{
	uint32_t left = run->sample.number;

	for (;;) {
		uint32_t piece = left < run->between ? left : run->between;

		if (!invoke_timed(run, piece)) {
			return false;
		}
		left -= piece - run->server->left;
		if (left == 0U) {
			return true;
		}
		if (minrpc_is_abandoned(run->server)) {
			return false;
		}
	}
}

#else

#define space_looks(run, number, cycles) ((void)0)
#define warm_up(run)                     invoke(run, 1U)
#define run_batch(run)                   invoke_timed(run, (run)->sample.number)

#endif

#if MINRPC_COUNTERS

static void read_counters(struct run *run, bool begins)
{
	minrpc_counters_read(run->server, run->evaluator->chosen, run->counted, begins);
}

static void mask_interrupts(const struct run *run, bool masked)
{
	const struct minrpc_config *config = run->server->config;

	if ((run->evaluator->chosen & MINRPC_MASKED) != 0U) {
		config->platform->interrupts_mask(config->context, masked);
	}
}

/* Measures the peaks in a separate, untimed call. */
static bool find_peaks(struct run *run)
{
	return minrpc_counters_peaks(run->server, run->evaluator->chosen, &run->evaluator->callee,
				     run->call, run->counted);
}

static bool enable_counters(struct run *run, bool on)
{
	return minrpc_counters_enable(run->server, run->evaluator->chosen, on);
}

static uint32_t names_size(const struct minrpc_server *server, const struct evaluator *evaluator)
{
	return minrpc_counters_names(server, evaluator->chosen, NULL);
}

static uint32_t count_of(const struct evaluator *evaluator)
{
	return minrpc_counters_count(evaluator->chosen);
}

#else

#define read_counters(run, begins)    ((void)0)
#define mask_interrupts(run, masked)  ((void)0)
#define find_peaks(run)               true
#define enable_counters(run, on)      true
#define names_size(server, evaluator) ((void)(server), (void)(evaluator), 0U)
#define count_of(evaluator)           ((void)(evaluator), 0U)

#endif

/* changed: the clock's register that the batch has changed, or NULL. */
static bool check_clock(const struct run *run, const char *changed)
{
	struct minrpc_server *server = run->server;
	const char *name = minrpc_callee_name(&run->evaluator->callee);

	if (changed != NULL) {
		return minrpc_fail(server,
				   "%s changed %s, the device's clock: its time is not known", name,
				   changed);
	}
	return server->timer.clock.round_cycles == 0U || !server->timer.fell_back ||
	       minrpc_fail(server,
			   "%s: the device's clocks disagree: the time is not known, since the "
			   "function, or another, has set one of them",
			   name);
}

static bool time_batch(struct run *run)
{
	struct minrpc_server *server = run->server;
	const struct minrpc_platform *platform = server->config->platform;
	void *context = server->config->context;
	const char *changed;
	tvm_crt_error_t error;
	bool done;

	(void)minrpc_restore(server, false);
	mask_interrupts(run, true);
	read_counters(run, true);
	error = minrpc_timer_start(&server->timer, platform, context);
	if (error != kTvmErrorNoError) {
		mask_interrupts(run, false);
		return minrpc_fail(server, "timer error 0x%x", (unsigned int)error);
	}
	done = run_batch(run);
	(void)minrpc_timer_stop(&server->timer, platform, context, &run->sample.cycles);
	read_counters(run, false);
	changed = minrpc_restore(server, false);
	mask_interrupts(run, false);
	run->sample.batches++;
	return done && !minrpc_is_abandoned(server) && check_clock(run, changed);
}

static void try_batch(void *context)
{
	struct run *run = context;

	run->done = time_batch(run);
}

/* Also ends the timer of a batch that minrpc_ask has ended. */
static bool time_batch_or_end(struct run *run)
{
	struct minrpc_server *server = run->server;
	uint64_t cycles;

	if (minrpc_escapable(server, try_batch, run)) {
		return run->done;
	}
	(void)minrpc_timer_stop(&server->timer, server->config->platform, server->config->context,
				&cycles);
	mask_interrupts(run, false);
	return false;
}

/*
 * Returns the number of calls that should reach `wanted` cycles, given that `number` calls took
 * `cycles`: at least 1.6 times `number`.
 */
static uint32_t grow(uint32_t number, uint64_t cycles, uint64_t wanted)
{
	uint32_t next = 0U;
	uint32_t least;

	if (cycles != 0U) {
		next = minrpc_size(minrpc_clock_convert(wanted, cycles, number) + 1U);
	}
	least = number + number / 2U + number / 8U + 1U;
	if (next < least) {
		next = least;
	}
	return next > NUMBER_MAX ? NUMBER_MAX : next;
}

static bool time_repeat(struct run *run)
{
	struct sample *sample = &run->sample;
	uint64_t wanted;

	sample->number = option(run, NUMBER);
	sample->batches = 0U;
	if (!find_peaks(run)) {
		return false;
	}
	for (;;) {
		if (!time_batch_or_end(run)) {
			return false;
		}
		space_looks(run, sample->number, sample->cycles);
		wanted = minrpc_timer_cycles(&run->server->timer, option(run, MIN_REPEAT_MS));
		if (sample->cycles >= wanted || sample->number == 0U ||
		    sample->number == NUMBER_MAX ||
		    (sample->cycles == 0U &&
		     sample->batches >= option(run, LIMIT_ZERO_TIME_ITERATIONS))) {
			break;
		}
		sample->number = grow(sample->number, sample->cycles, wanted);
	}
	return true;
}

/* Sleeps in pieces, since the client may go away meanwhile. Returns false then. */
static bool cool_down(const struct run *run, uint32_t index)
{
	const struct minrpc_config *config = run->server->config;
	uint32_t left = option(run, COOLDOWN_INTERVAL_MS);
	uint32_t repeats = option(run, REPEATS_TO_COOLDOWN);
	uint32_t piece;

	if (repeats == 0U || index % repeats != 0U) {
		return true;
	}
	for (; left != 0U; left -= piece) {
		piece = left;
#if MINRPC_ABANDON
		if (config->platform->pending != NULL && piece > COOLDOWN_PIECE_MS) {
			piece = COOLDOWN_PIECE_MS;
		}
#endif
		config->platform->sleep_ms(config->context, piece);
		if (minrpc_is_abandoned(run->server)) {
			return false;
		}
	}
	return true;
}

#if MINRPC_COUNTING
static uint32_t row_size(const struct evaluator *evaluator)
{
	(void)evaluator; /* unused without counters */
	return (uint32_t)sizeof(struct sample) + count_of(evaluator) * (uint32_t)sizeof(uint64_t);
}

static struct sample *row_at(const struct run *run, void *out, uint32_t index)
{
	uint8_t *rows = (uint8_t *)((struct counting_header *)out + 1) +
			names_size(run->server, run->evaluator);

	return (struct sample *)(void *)(rows + index * row_size(run->evaluator));
}
#endif

/*
 * Stores the result of the current repeat. A plain evaluator's results are seconds, as TVM's
 * clients expect.
 */
static void keep(const struct run *run, void *out, uint32_t index)
{
	const struct sample *sample = &run->sample;
	double *seconds = out;

#if MINRPC_COUNTING
	if (run->evaluator->counting) {
		struct sample *row = row_at(run, out, index);

		*row = *sample;
		row->batches |= run->server->timer.fell_back ? COARSE_CLOCK : 0U;
		return;
	}
#endif
	seconds[index] = minrpc_clock_seconds(sample->cycles,
					      run->server->timer.clock.cycles_hz * sample->number);
}

/*
 * Returns the size of the result in bytes. The client's repeat times a row with many counters may
 * exceed 4 GiB, so the size has 64 bits.
 */
static uint64_t result_size(const struct minrpc_server *server, const struct evaluator *evaluator)
{
	uint64_t repeat = evaluator->options[REPEAT];

	(void)server; /* only counters use it */
#if MINRPC_COUNTING
	if (evaluator->counting) {
		return repeat * row_size(evaluator) + sizeof(struct counting_header) +
		       names_size(server, evaluator);
	}
#endif
	return repeat * sizeof(double);
}

static bool time_repeats(struct run *run, void *out)
{
	if (!warm_up(run)) {
		return false;
	}
	for (uint32_t i = 0U; i < option(run, REPEAT); i++) {
#if MINRPC_COUNTERS
		run->counted = (uint64_t *)(row_at(run, out, i) + 1);
#endif
		if (!time_repeat(run)) {
			return false;
		}
		keep(run, out, i);
		if (!cool_down(run, i)) {
			return false;
		}
	}
#if MINRPC_COUNTING
	if (run->evaluator->counting) {
		*(struct counting_header *)out = (struct counting_header){
			.version = COUNTING_VERSION,
			.native = run->evaluator->callee.function != NULL,
			.size = (uint16_t)(sizeof(struct counting_header) +
					   names_size(run->server, run->evaluator)),
			.stride = (uint16_t)row_size(run->evaluator),
			.columns = (uint16_t)count_of(run->evaluator),
			.cycles_hz = run->server->timer.clock.cycles_hz,
		};
#if MINRPC_COUNTERS
		memset((struct counting_header *)out + 1, 0,
		       names_size(run->server, run->evaluator));
		(void)minrpc_counters_names(run->server, run->evaluator->chosen,
					    (char *)((struct counting_header *)out + 1));
#endif
	}
#endif
	return true;
}

/* Runs the evaluator: the arguments are the timed function's, the result is the evaluator's. */
static bool evaluate(struct minrpc_call *call)
{
	struct minrpc_server *server = call->server;
	const struct evaluator *evaluator = call->resource;
	struct run run = {.server = server, .evaluator = evaluator, .call = call};
	struct result {
		TVMByteArray bytes;
		uint64_t values[];
	} *result;
	uint64_t size = result_size(server, evaluator);
	bool done;

	call->callee = &evaluator->callee;
	if (!minrpc_bind_arguments(call)) {
		return false;
	}
	result = minrpc_server_alloc(server, minrpc_size(sizeof(*result) + size), 1U,
				     MINRPC_ARENA_RESULT);
	server->result = result;
	if (result == NULL || !enable_counters(&run, true)) {
		return false;
	}
	done = time_repeats(&run, result->values);
	(void)enable_counters(&run, false);
	if (!done) {
		return false;
	}
	result->bytes.data = (const char *)result->values;
	result->bytes.size = (size_t)size;
	call->value.v_handle = &result->bytes;
	call->type_code = kTVMBytes;
	return true;
}

const struct minrpc_function minrpc_evaluator_function = {"time evaluator", NULL, evaluate};
