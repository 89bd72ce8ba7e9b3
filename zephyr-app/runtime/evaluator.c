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
	uint32_t options[OPTIONS];
	bool counting; /* the result is in cycles */
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
static tvm_crt_error_t check_form(struct minrpc_server *server, const struct minrpc_args *args)
{
	char letters[] = "msiiiiiiiiis";

	if (args->count >= 8 && args->count <= 12 && args->count != 9) {
		letters[args->count - 1] = 's';
		letters[args->count] = '\0';
	}
	return minrpc_check_args(server, "time evaluator", args, letters);
}

/*
 * In their order on the wire; TVM v0.9 sends all but the limit. v0.14's cache_flush_bytes stays unread, as on TVM's
 * own devices: what it flushes is a host's cache.
 */
static tvm_crt_error_t take_options(struct minrpc_server *server, const struct minrpc_args *args,
				    struct minrpc_evaluator *evaluator)
{
	uint32_t option = 0U;

	evaluator->options[LIMIT_ZERO_TIME_ITERATIONS] = LIMIT_ZERO_DEFAULT;
	for (int i = 4; i < args->count - 1 && option < OPTIONS; i++, option++) {
		int64_t value = args->values[i].v_int64;
		int64_t least = option == REPEAT || (option == NUMBER && !evaluator->counting);

		if (value < least || value > OPTION_MAX) {
			return minrpc_server_fail(server, kTvmErrorFunctionCallWrongArgType,
						  "time evaluator: argument %d: expected %d to %u", i,
						  (int)least, OPTION_MAX);
		}
		option += args->count == 10 && option == LIMIT_ZERO_TIME_ITERATIONS;
		evaluator->options[option] = (uint32_t)value;
	}
	return kTvmErrorNoError;
}

static tvm_crt_error_t find_function(struct minrpc_server *server, const TVMValue *values,
				     bool counting, TVMBackendPackedCFunc *function)
{
	uint32_t index;

	if (values[0].v_int64 != MINRPC_HANDLE_MODULE) {
		return minrpc_fail_handle(server, "module", (uintptr_t)values[0].v_int64);
	}
	if (counting && values[1].v_str[0] == '\0') {
		*function = empty_function;
		return kTvmErrorNoError;
	}
	if (minrpc_library_find(&server->config->library, values[1].v_str, &index) !=
	    kTvmErrorNoError) {
		return minrpc_server_fail(server, kTvmErrorFunctionNameNotFound,
					  "no function %s in the system library", values[1].v_str);
	}
	*function = minrpc_library_at(&server->config->library, index);
	return kTvmErrorNoError;
}

static tvm_crt_error_t create(struct minrpc_server *server, struct minrpc_call *call, bool counting)
{
	struct minrpc_evaluator made = {.next = server->evaluators, .counting = counting};
	tvm_crt_error_t error = check_form(server, &call->args);
	void *block;

	if (error == kTvmErrorNoError) {
		error = find_function(server, call->args.values, counting, &made.function);
	}
	if (error == kTvmErrorNoError) {
		error = take_options(server, &call->args, &made);
	}
	if (error != kTvmErrorNoError) {
		return error;
	}
	if (minrpc_arena_alloc(&server->arena, sizeof(made), 1U, MINRPC_ARENA_EVALUATOR, &block) !=
	    kTvmErrorNoError) {
		return minrpc_server_fail_memory(server, sizeof(made));
	}
	made.handle = MINRPC_HANDLE_EVALUATOR | (server->evaluator_serial++ & ~MINRPC_HANDLE_EVALUATOR);
	memcpy(block, &made, sizeof(made));
	server->evaluators = block;
	call->value.v_int64 = (int64_t)made.handle;
	call->type_code = kTVMPackedFuncHandle;
	return kTvmErrorNoError;
}

tvm_crt_error_t minrpc_evaluator_create(struct minrpc_server *server, struct minrpc_call *call)
{
	return create(server, call, false);
}

tvm_crt_error_t minrpc_evaluator_create_counting(struct minrpc_server *server,
						 struct minrpc_call *call)
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
	return *link == NULL ? NULL : link;
}

tvm_crt_error_t minrpc_evaluator_free(struct minrpc_server *server, uintptr_t handle)
{
	struct minrpc_evaluator **link = find(server, handle);
	struct minrpc_evaluator *evaluator;

	if (link == NULL) {
		return kTvmErrorTimeEvaluatorBadHandle;
	}
	evaluator = *link;
	*link = evaluator->next;
	return minrpc_arena_free(&server->arena, (uintptr_t)evaluator, MINRPC_ARENA_EVALUATOR);
}

/* Calls the function `number` times. The loop is what is timed: nothing else belongs in it. */
static int run_batch(const struct minrpc_evaluator *evaluator, uint32_t number, struct minrpc_call *call)
{
	TVMBackendPackedCFunc function = evaluator->function;
	int status = 0;

	while (number-- != 0U && status == 0) {
		status = function(call->args.values, call->args.type_codes, call->args.count,
				  &call->value, &call->type_code, NULL);
	}
	return status;
}

static tvm_crt_error_t time_batch(struct minrpc_server *server, const struct minrpc_evaluator *evaluator,
				  uint32_t number, struct minrpc_call *call, uint64_t *cycles)
{
	const struct minrpc_platform *platform = server->config->platform;
	void *context = server->config->context;
	tvm_crt_error_t error = minrpc_timer_start(&server->timer, platform, context);
	int status;

	if (error != kTvmErrorNoError) {
		return minrpc_server_fail(server, error, "timer error 0x%x",
					  (unsigned int)error);
	}
	status = run_batch(evaluator, number, call);
	(void)minrpc_timer_stop(&server->timer, platform, context, cycles);
	if (status == 0) {
		return kTvmErrorNoError;
	}
	return minrpc_call_failed(server, status);
}

/* How many calls should reach `wanted` cycles, when `number` took `cycles`: never under 1.6 times as many. */
static uint32_t grow(uint32_t number, uint64_t cycles, uint64_t wanted)
{
	uint64_t next = (uint64_t)number + number / 2U + number / 8U + 1U;

	if (cycles != 0U) {
		uint64_t needed = wanted > UINT64_MAX / number ? NUMBER_MAX
							       : wanted * number / cycles + 1U;

		next = needed > next ? needed : next;
	}
	return next > NUMBER_MAX ? NUMBER_MAX : (uint32_t)next;
}

static tvm_crt_error_t time_repeat(struct minrpc_server *server,
				   const struct minrpc_evaluator *evaluator,
				   struct minrpc_call *call, struct sample *sample)
{
	uint32_t zeros = 0U;
	uint64_t wanted;

	*sample = (struct sample){.number = evaluator->options[NUMBER]};
	for (;;) {
		tvm_crt_error_t error =
			time_batch(server, evaluator, sample->number, call, &sample->cycles);

		if (error != kTvmErrorNoError) {
			return error;
		}
		sample->batches++;
		zeros += sample->cycles == 0U;
		wanted = minrpc_clock_convert(evaluator->options[MIN_REPEAT_MS], 1000U,
					      server->timer.clock.cycles_hz);
		if (sample->cycles >= wanted || sample->number == 0U || sample->number == NUMBER_MAX ||
		    (sample->cycles == 0U && zeros >= evaluator->options[LIMIT_ZERO_TIME_ITERATIONS])) {
			break;
		}
		sample->number = grow(sample->number, sample->cycles, wanted);
	}
	sample->batches |= server->timer.fell_back ? COARSE_CLOCK : 0U;
	return kTvmErrorNoError;
}

static void store(const struct minrpc_server *server, const struct minrpc_evaluator *evaluator,
		  uint32_t index, const struct sample *sample, void *out)
{
	uint64_t cycles_hz = server->timer.clock.cycles_hz;
	struct counting_result *counts = out;
	double *seconds = out;

	if (evaluator->counting) {
		counts->cycles_hz = cycles_hz;
		counts->samples[index] = *sample;
	} else {
		seconds[index] = minrpc_clock_seconds(sample->cycles, cycles_hz) / sample->number;
	}
}

static tvm_crt_error_t time_repeats(struct minrpc_server *server,
				    const struct minrpc_evaluator *evaluator,
				    struct minrpc_call *call, void *out)
{
	const struct minrpc_config *config = server->config;
	/* One untimed call first: caches warm, and what fails fails here. */
	int status = run_batch(evaluator, 1U, call);
	tvm_crt_error_t error = status == 0 ? kTvmErrorNoError : minrpc_call_failed(server, status);

	for (uint32_t i = 0U; i < evaluator->options[REPEAT] && error == kTvmErrorNoError; i++) {
		struct sample sample;

		error = time_repeat(server, evaluator, call, &sample);
		store(server, evaluator, i, &sample, out);
		if (evaluator->options[COOLDOWN_INTERVAL_MS] != 0U &&
		    evaluator->options[REPEATS_TO_COOLDOWN] != 0U &&
		    i % evaluator->options[REPEATS_TO_COOLDOWN] == 0U) {
			config->platform->sleep_ms(config->context,
						   evaluator->options[COOLDOWN_INTERVAL_MS]);
		}
	}
	return error;
}

tvm_crt_error_t minrpc_evaluator_call(struct minrpc_server *server, uintptr_t handle,
				      struct minrpc_call *call)
{
	struct minrpc_evaluator **link = find(server, handle);
	struct result {
		TVMByteArray bytes;
		uint64_t values[];
	} *result;
	uint32_t size;
	tvm_crt_error_t error;

	if (link == NULL) {
		(void)minrpc_fail_handle(server, "evaluator", handle);
		return kTvmErrorTimeEvaluatorBadHandle;
	}
	size = (*link)->options[REPEAT];
	size = (*link)->counting ? (uint32_t)(sizeof(struct counting_result) + size * sizeof(struct sample))
				 : (uint32_t)(size * sizeof(double));
	if (minrpc_arena_alloc(&server->arena, (uint32_t)sizeof(*result) + size, 1U,
			       MINRPC_ARENA_RESULT, &server->result) != kTvmErrorNoError) {
		return minrpc_server_fail_memory(server, size);
	}
	result = server->result;
	result->bytes = (TVMByteArray){(const char *)result->values, size};
	error = time_repeats(server, *link, call, result->values);
	call->value.v_handle = &result->bytes;
	call->type_code = kTVMBytes;
	return error;
}
