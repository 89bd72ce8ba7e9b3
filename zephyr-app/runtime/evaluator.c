/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The time evaluator. Each one is an object whose one function times another; nothing of a run
 * outlives it.
 */
#include <string.h>

#include "rpc.h"

/* More calls than this in one batch gain nothing, whatever the clock reads. */
#ifndef NUMBER_MAX
#define NUMBER_MAX 0x40000000U
#endif

/* No option is larger: a result of so many repeats still has a size of 32 bits. */
#define OPTION_MAX 0x08000000U

/* The results that a message of 2,048 bytes has room for beside 43 bytes of headers. */
#define REPEAT_MAX_TVM 250U

/* Batches that read zero before a repeat gives up, where the client's TVM has no such argument. */
#define LIMIT_ZERO_DEFAULT 100U

/* A cool-down is slept in pieces of so much, with a look at the link after each. */
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
	bool counting; /* the result is in cycles */
	uint32_t options[OPTIONS];
};

/* One repeat as it was measured: its last batch. */
struct sample {
	uint64_t cycles;
	uint32_t number;
	uint32_t batches; /* that it took to get there; top bit: timed by the coarse clock */
};

#define COARSE_CLOCK (1U << 31)

/*
 * A counting evaluator's result: this, the names of the further columns with a NUL behind each,
 * filled up to `size` with zeros, and then a row for each repeat: a sample, and a u64 for each
 * column. All little-endian.
 */
struct counting_header {
	uint16_t version; /* of this; later ones append before the names */
	uint16_t size;    /* up to the first row, a multiple of 8 */
	uint16_t stride;  /* from row to row, likewise */
	uint16_t columns; /* behind a row's sample */
	uint64_t cycles_hz;
};

#define COUNTING_VERSION 1U

_Static_assert(sizeof(struct counting_header) == 16U && sizeof(struct sample) == 16U,
	       "on every machine the same");

/*
 * The function of the empty name: a counting evaluator times the call itself, and with number 0 the
 * timer.
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

/*
 * What a counting evaluator can time without a module: the call itself, and with number 0 the
 * timer.
 */
static const TVMBackendPackedCFunc empty_functions[] = {empty_function};
static const TVMFuncRegistry empty_registry = {"\001\000\0", empty_functions};
static const struct minrpc_callee empty_callee = {.packed = &empty_registry};

/*
 * module, name, device type and id, the options, and last a string: 8, 10, 11 or 12 arguments by
 * the client's age.
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
 * In their order on the wire. v0.14's cache_flush_bytes stays unread, as on TVM's own devices: what
 * it flushes is a host's cache.
 */
static bool take_options(struct minrpc_server *server, const struct minrpc_args *args,
			 struct evaluator *evaluator)
{
	/* Number and repeat are at least 1, but for what times the timer. */
	uint32_t positive = evaluator->counting ? 1U << REPEAT : 1U << NUMBER | 1U << REPEAT;
	uint32_t option = NUMBER;

	evaluator->options[LIMIT_ZERO_TIME_ITERATIONS] = LIMIT_ZERO_DEFAULT;
	for (int i = 4; i < args->count - 1 && option < OPTIONS; i++, option++) {
		uint32_t value = minrpc_size((uint64_t)args->values[i].v_int64);
		uint32_t least;

		/* TVM up to v0.9 sends no limit. */
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
 * TVM's clients from v0.12 on wait for ever for an answer of more than 2,048 bytes. They send at
 * least 11 arguments, as do those of v0.10 and v0.11.
 */
static bool check_repeat(struct minrpc_server *server, const struct minrpc_args *args,
			 const struct evaluator *evaluator)
{
	return evaluator->options[REPEAT] <= REPEAT_MAX_TVM || args->count < 11 ||
	       server->own_client ||
	       minrpc_fail(server, "time evaluator: repeat is over %u, TVM can't take the answer",
			   REPEAT_MAX_TVM);
}

static bool find_function(struct minrpc_server *server, const TVMValue *values,
			  struct evaluator *evaluator)
{
	uintptr_t module = minrpc_handle((uint64_t)values[0].v_int64);
	const char *name = values[1].v_str;
	struct minrpc_library library;
	uint32_t first;

	if (!minrpc_find_module(server, module, &library, &first)) {
		return false;
	}
	if (evaluator->counting && *name == '\0') {
		evaluator->callee = empty_callee;
		return true;
	}
	/* It goes with its function, where that can go. */
	evaluator->object.owner = module == MINRPC_HANDLE_MODULE ? 0U : (uint32_t)module;
	return minrpc_library_at(&library, minrpc_library_find(&library, name),
				 &evaluator->callee) ||
	       minrpc_fail(server, "no function %s in the library", name);
}

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
	made->object.module = (struct minrpc_module){
		.functions = &minrpc_evaluator_function, .count = 1U, .resource = made};
	if (!find_function(server, call->args.values, made) ||
	    !take_options(server, &call->args, made) || !check_repeat(server, &call->args, made)) {
		minrpc_object_free(server, &made->object);
		return false;
	}
	call->value.v_int64 = made->object.handle + 1U;
	call->type_code = kTVMPackedFuncHandle;
	return true;
}

bool minrpc_evaluator_create(struct minrpc_call *call)
{
	return create(call, false);
}

bool minrpc_evaluator_create_counting(struct minrpc_call *call)
{
	return create(call, true);
}

/*
 * A batch, and between its calls, about every quarter of a second, a look at whether anybody still
 * waits for it: `between` calls lie between two looks. What a look costs is in the time, at most
 * once in so long.
 */
static bool run_batch(struct minrpc_server *server, const struct evaluator *evaluator,
		      struct minrpc_call *call, uint32_t number, uint32_t between)
{
	while (number > between) {
		if (!minrpc_invoke(&evaluator->callee, between, call) ||
		    minrpc_is_abandoned(server)) {
			return false;
		}
		number -= between;
	}
	return minrpc_invoke(&evaluator->callee, number, call);
}

/* So many calls take a quarter of a second, when `number` took `cycles`. */
static uint32_t calls_between(const struct minrpc_server *server, uint32_t number, uint64_t cycles)
{
	uint64_t quarter = server->timer.clock.cycles_hz / 4U;

	if (server->config->platform->pending == NULL || number == 0U) {
		return UINT32_MAX;
	}
	/* What took no time is taken for as long as the clock might not see. */
	return minrpc_size(minrpc_clock_convert(quarter, cycles + 1U, number)) + 1U;
}

static bool time_batch(struct minrpc_server *server, const struct evaluator *evaluator,
		       struct minrpc_call *call, struct sample *sample, uint32_t between)
{
	const struct minrpc_platform *platform = server->config->platform;
	void *context = server->config->context;
	tvm_crt_error_t error = minrpc_timer_start(&server->timer, platform, context);
	bool done;

	if (error != kTvmErrorNoError) {
		return minrpc_fail(server, "timer error 0x%x", (unsigned int)error);
	}
	done = run_batch(server, evaluator, call, sample->number, between);
	(void)minrpc_timer_stop(&server->timer, platform, context, &sample->cycles);
	sample->batches++;
	return done && !minrpc_is_abandoned(server);
}

/*
 * How many calls should reach `wanted` cycles, when `number` took `cycles`: never under 1.6 times
 * as many.
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

static bool time_repeat(struct minrpc_server *server, const struct evaluator *evaluator,
			struct minrpc_call *call, struct sample *sample, uint32_t between)
{
	uint64_t wanted;

	sample->number = evaluator->options[NUMBER];
	sample->batches = 0U;
	for (;;) {
		if (!time_batch(server, evaluator, call, sample, between)) {
			return false;
		}
		between = calls_between(server, sample->number, sample->cycles);
		wanted = minrpc_timer_cycles(&server->timer, evaluator->options[MIN_REPEAT_MS]);
		if (sample->cycles >= wanted || sample->number == 0U ||
		    sample->number == NUMBER_MAX ||
		    (sample->cycles == 0U &&
		     sample->batches >= evaluator->options[LIMIT_ZERO_TIME_ITERATIONS])) {
			break;
		}
		sample->number = grow(sample->number, sample->cycles, wanted);
	}
	sample->batches |= server->timer.fell_back ? COARSE_CLOCK : 0U;
	return true;
}

/* In pieces, as nobody may be waiting any more. False when so. */
static bool cool_down(struct minrpc_server *server, const struct evaluator *evaluator,
		      uint32_t index)
{
	const struct minrpc_config *config = server->config;
	uint32_t left = evaluator->options[COOLDOWN_INTERVAL_MS];
	uint32_t repeats = evaluator->options[REPEATS_TO_COOLDOWN];

	if (repeats == 0U || index % repeats != 0U) {
		return true;
	}
	while (left != 0U) {
		uint32_t piece = left;

		if (config->platform->pending != NULL && piece > COOLDOWN_PIECE_MS) {
			piece = COOLDOWN_PIECE_MS;
		}
		config->platform->sleep_ms(config->context, piece);
		if (minrpc_is_abandoned(server)) {
			return false;
		}
		left -= piece;
	}
	return true;
}

/* A plain evaluator's result is the seconds of each repeat, as TVM's clients expect. */
static uint32_t result_size(const struct evaluator *evaluator)
{
	uint32_t repeat = evaluator->options[REPEAT];

	if (!evaluator->counting) {
		return repeat * (uint32_t)sizeof(double);
	}
	return repeat * (uint32_t)sizeof(struct sample) + (uint32_t)sizeof(struct counting_header);
}

/* Tells also how many calls may be made until the next look at the link. */
static bool first_call(struct minrpc_server *server, const struct evaluator *evaluator,
		       struct minrpc_call *call, uint32_t *between)
{
	const struct minrpc_config *config = server->config;
	struct minrpc_clock_sample start = {0};
	struct minrpc_clock_sample stop = {0};
	bool done;

	if (config->platform->pending != NULL) {
		config->platform->clock_describe(config->context, &server->timer.clock);
		config->platform->clock_sample(config->context, &start);
	}
	done = minrpc_invoke(&evaluator->callee, 1U, call);
	if (config->platform->pending != NULL) {
		config->platform->clock_sample(config->context, &stop);
	}
	*between = calls_between(server, 1U, stop.cycles - start.cycles);
	return done;
}

static bool time_repeats(struct minrpc_server *server, const struct evaluator *evaluator,
			 struct minrpc_call *call, void *out)
{
	struct counting_header *header = out;
	struct sample *rows = (struct sample *)(header + 1);
	double *seconds = out;

	uint32_t between;

	/* One untimed call first: caches warm, and what fails fails here. */
	if (!first_call(server, evaluator, call, &between)) {
		return false;
	}
	for (uint32_t i = 0U; i < evaluator->options[REPEAT]; i++) {
		struct sample sample;

		if (!time_repeat(server, evaluator, call, &sample, between)) {
			return false;
		}
		if (evaluator->counting) {
			rows[i] = sample;
		} else {
			seconds[i] =
				minrpc_timer_seconds(&server->timer, sample.cycles) / sample.number;
		}
		if (!cool_down(server, evaluator, i)) {
			return false;
		}
	}
	if (evaluator->counting) {
		*header = (struct counting_header){
			.version = COUNTING_VERSION,
			.size = sizeof(*header),
			.stride = sizeof(struct sample),
			.cycles_hz = server->timer.clock.cycles_hz,
		};
	}
	return true;
}

/* The arguments are those of the function that is timed; the result is that of the evaluator. */
static bool evaluate(struct minrpc_call *call)
{
	struct minrpc_server *server = call->server;
	const struct evaluator *evaluator = call->resource;
	struct result {
		TVMByteArray bytes;
		uint64_t values[];
	} *result;
	uint32_t size = result_size(evaluator);

	call->callee = &evaluator->callee;
	if (!minrpc_bind_arguments(call)) {
		return false;
	}
	result = minrpc_server_alloc(server, (uint32_t)sizeof(*result) + size, 1U,
				     MINRPC_ARENA_RESULT);
	server->result = result;
	if (result == NULL || !time_repeats(server, evaluator, call, result->values)) {
		return false;
	}
	result->bytes = (TVMByteArray){(const char *)result->values, size};
	call->value.v_handle = &result->bytes;
	call->type_code = kTVMBytes;
	return true;
}

const struct minrpc_function minrpc_evaluator_function = {"time evaluator", NULL, evaluate};
