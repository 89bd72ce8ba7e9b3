/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The time evaluator. Each one is a block in the arena; nothing of a run outlives it.
 */
#include <string.h>

#include "rpc.h"

/* More calls than this in one batch gain nothing, whatever the clock reads. */
#ifndef NUMBER_MAX
#define NUMBER_MAX 0x40000000U
#endif

/* No option is larger: a result of so many repeats still has a size of 32 bits. */
#define OPTION_MAX 0x08000000U

/* Batches that read zero before a repeat gives up, where the client's TVM has no such argument. */
#define LIMIT_ZERO_DEFAULT 100U

enum option {
	NUMBER,
	REPEAT,
	MIN_REPEAT_MS,
	LIMIT_ZERO_TIME_ITERATIONS,
	COOLDOWN_INTERVAL_MS,
	REPEATS_TO_COOLDOWN,
	OPTIONS,
};

struct minrpc_evaluator {
	struct minrpc_evaluator *next;
	uintptr_t handle;
	TVMBackendPackedCFunc function;
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

/* A counting evaluator's result. All little-endian. */
struct counting_result {
	uint64_t cycles_hz;
	struct sample samples[];
};

/* The function of the empty name: a counting evaluator times the call itself, and with number 0 the timer. */
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

/* module, name, device type and id, the options, and last a string: 8, 10, 11 or 12 arguments by the client's age. */
static bool check_form(struct minrpc_server *server, const struct minrpc_args *args)
{
	int count = args->count >= 8 && args->count != 9 && args->count < 12 ? args->count : 12;
	char form[13];

	memset(form, MINRPC_ARG_INT[0], sizeof(form));
	form[0] = MINRPC_ARG_MODULE[0];
	form[1] = MINRPC_ARG_STRING[0];
	form[count - 1] = MINRPC_ARG_STRING[0];
	form[count] = '\0';
	return minrpc_check_args(server, "time evaluator", args, form);
}

/*
 * In their order on the wire. v0.14's cache_flush_bytes stays unread, as on TVM's own devices: what it flushes is a
 * host's cache.
 */
static bool take_options(struct minrpc_server *server, const struct minrpc_args *args,
			 struct minrpc_evaluator *evaluator)
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
			return minrpc_server_fail(server, "time evaluator: argument %d: expected %u to %u",
						  i, (unsigned int)least, OPTION_MAX);
		}
		evaluator->options[option] = value;
	}
	return true;
}

static bool find_function(struct minrpc_server *server, const TVMValue *values,
			  struct minrpc_evaluator *evaluator)
{
	const struct minrpc_library *library = &server->config->library;
	const char *name = values[1].v_str;

	if (!minrpc_check_module(server, &values[0])) {
		return false;
	}
	evaluator->function = minrpc_library_at(library, minrpc_library_find(library, name));
	if (evaluator->counting && *name == '\0') {
		evaluator->function = empty_function;
	}
	return evaluator->function != NULL ||
	       minrpc_server_fail(server, "no function %s in the library", name);
}

static bool create(struct minrpc_server *server, struct minrpc_call *call, bool counting)
{
	struct minrpc_evaluator *made;

	if (!check_form(server, &call->args)) {
		return false;
	}
	made = minrpc_server_alloc(server, sizeof(*made), 1U, MINRPC_ARENA_EVALUATOR);
	if (made == NULL) {
		return false;
	}
	memset(made, 0, sizeof(*made));
	made->counting = counting;
	if (!find_function(server, call->args.values, made) ||
	    !take_options(server, &call->args, made)) {
		(void)minrpc_arena_free(&server->arena, (uintptr_t)made, MINRPC_ARENA_EVALUATOR);
		return false;
	}
	made->handle = MINRPC_HANDLE_EVALUATOR | server->evaluator_serial++;
	made->next = server->evaluators;
	server->evaluators = made;
	call->value.v_int64 = (int64_t)made->handle;
	call->type_code = kTVMPackedFuncHandle;
	return true;
}

bool minrpc_evaluator_create(struct minrpc_server *server, struct minrpc_call *call)
{
	return create(server, call, false);
}

bool minrpc_evaluator_create_counting(struct minrpc_server *server, struct minrpc_call *call)
{
	return create(server, call, true);
}

/* Where the evaluator of this handle is linked, or NULL. */
static struct minrpc_evaluator **find(struct minrpc_server *server, uintptr_t handle)
{
	struct minrpc_evaluator **link = &server->evaluators;

	while (*link != NULL && (*link)->handle != handle) {
		link = &(*link)->next;
	}
	if (*link == NULL) {
		(void)minrpc_fail_handle(server, kTVMPackedFuncHandle, handle);
		return NULL;
	}
	return link;
}

bool minrpc_evaluator_free(struct minrpc_server *server, uintptr_t handle)
{
	struct minrpc_evaluator **link = find(server, handle);
	struct minrpc_evaluator *evaluator;

	if (link == NULL) {
		return false;
	}
	evaluator = *link;
	*link = evaluator->next;
	(void)minrpc_arena_free(&server->arena, (uintptr_t)evaluator, MINRPC_ARENA_EVALUATOR);
	return true;
}

static bool time_batch(struct minrpc_server *server, const struct minrpc_evaluator *evaluator,
		       struct minrpc_call *call, struct sample *sample)
{
	const struct minrpc_platform *platform = server->config->platform;
	void *context = server->config->context;
	tvm_crt_error_t error = minrpc_timer_start(&server->timer, platform, context);
	bool done;

	if (error != kTvmErrorNoError) {
		return minrpc_server_fail(server, "timer error 0x%x", (unsigned int)error);
	}
	done = minrpc_run(server, evaluator->function, sample->number, call);
	(void)minrpc_timer_stop(&server->timer, platform, context, &sample->cycles);
	sample->batches++;
	return done;
}

/* How many calls should reach `wanted` cycles, when `number` took `cycles`: never under 1.6 times as many. */
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

static bool time_repeat(struct minrpc_server *server, const struct minrpc_evaluator *evaluator,
			struct minrpc_call *call, struct sample *sample)
{
	uint64_t wanted;

	sample->number = evaluator->options[NUMBER];
	sample->batches = 0U;
	for (;;) {
		if (!time_batch(server, evaluator, call, sample)) {
			return false;
		}
		wanted = minrpc_timer_cycles(&server->timer, evaluator->options[MIN_REPEAT_MS]);
		if (sample->cycles >= wanted || sample->number == 0U || sample->number == NUMBER_MAX ||
		    (sample->cycles == 0U &&
		     sample->batches >= evaluator->options[LIMIT_ZERO_TIME_ITERATIONS])) {
			break;
		}
		sample->number = grow(sample->number, sample->cycles, wanted);
	}
	sample->batches |= server->timer.fell_back ? COARSE_CLOCK : 0U;
	return true;
}

static void cool_down(const struct minrpc_config *config, const struct minrpc_evaluator *evaluator,
		      uint32_t index)
{
	uint32_t interval = evaluator->options[COOLDOWN_INTERVAL_MS];
	uint32_t repeats = evaluator->options[REPEATS_TO_COOLDOWN];

	if (interval != 0U && repeats != 0U && index % repeats == 0U) {
		config->platform->sleep_ms(config->context, interval);
	}
}

static bool time_repeats(struct minrpc_server *server, const struct minrpc_evaluator *evaluator,
			 struct minrpc_call *call, void *out)
{
	struct counting_result *counts = out;
	double *seconds = out;

	/* One untimed call first: caches warm, and what fails fails here. */
	if (!minrpc_run(server, evaluator->function, 1U, call)) {
		return false;
	}
	for (uint32_t i = 0U; i < evaluator->options[REPEAT]; i++) {
		struct sample sample;

		if (!time_repeat(server, evaluator, call, &sample)) {
			return false;
		}
		if (evaluator->counting) {
			counts->cycles_hz = server->timer.clock.cycles_hz;
			counts->samples[i] = sample;
		} else {
			seconds[i] = minrpc_timer_seconds(&server->timer, sample.cycles) /
				     sample.number;
		}
		cool_down(server->config, evaluator, i);
	}
	return true;
}

bool minrpc_evaluator_call(struct minrpc_server *server, uintptr_t handle, struct minrpc_call *call)
{
	struct minrpc_evaluator **link = find(server, handle);
	const struct minrpc_evaluator *evaluator;
	struct result {
		TVMByteArray bytes;
		uint64_t values[];
	} *result;
	uint32_t size;

	if (link == NULL) {
		return false;
	}
	evaluator = *link;
	size = evaluator->options[REPEAT] * (uint32_t)sizeof(double);
	if (evaluator->counting) {
		size = 2U * size + (uint32_t)sizeof(struct counting_result);
	}
	result = minrpc_server_alloc(server, (uint32_t)sizeof(*result) + size, 1U, MINRPC_ARENA_RESULT);
	server->result = result;
	if (result == NULL || !time_repeats(server, evaluator, call, result->values)) {
		return false;
	}
	result->bytes = (TVMByteArray){(const char *)result->values, size};
	call->value.v_handle = &result->bytes;
	call->type_code = kTVMBytes;
	return true;
}
