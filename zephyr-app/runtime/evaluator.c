/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The time evaluator. Each one is a block in the arena; nothing of a run outlives it.
 */
#include <string.h>

#include "rpc.h"

/* More calls than this in one batch gain nothing, whatever the clock reads. */
#define NUMBER_MAX 0x40000000U

/* Batches that read zero before a repeat gives up, where the client's TVM has no such argument. */
#define LIMIT_ZERO_DEFAULT 100U

struct minrpc_evaluator {
	struct minrpc_evaluator *next;
	uint32_t serial;
	TVMBackendPackedCFunc function;
	uint32_t number;
	uint32_t repeat;
	uint32_t min_repeat_ms;
	uint32_t limit_zero_time_iterations;
	uint32_t cooldown_interval_ms;
	uint32_t repeats_to_cooldown;
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

/* Arguments between repeat and the last, by how many there are: TVM v0.8, v0.9, v0.10, v0.14. */
static const char *letters_for(int count)
{
	switch (count) {
	case 8:
		return "msiiiiis";
	case 10:
		return "msiiiiiiis";
	case 11:
		return "msiiiiiiiis";
	default:
		return "msiiiiiiiiis";
	}
}

/* Integers of the request, narrowed; false when one is out of its range. */
static bool take_range(const TVMValue *value, uint32_t least, uint32_t most, uint32_t *out)
{
	*out = (uint32_t)value->v_int64;
	return value->v_int64 >= (int64_t)least && value->v_int64 <= (int64_t)most;
}

static bool take_options(const struct minrpc_args *args, struct minrpc_evaluator *evaluator)
{
	const TVMValue *at = &args->values[4];
	bool good = take_range(at++, evaluator->counting ? 0U : 1U, NUMBER_MAX, &evaluator->number);

	good = take_range(at++, 1U, INT32_MAX, &evaluator->repeat) && good;
	good = take_range(at++, 0U, INT32_MAX, &evaluator->min_repeat_ms) && good;
	evaluator->limit_zero_time_iterations = LIMIT_ZERO_DEFAULT;
	if (args->count >= 11) {
		good = take_range(at++, 0U, INT32_MAX, &evaluator->limit_zero_time_iterations) && good;
	}
	if (args->count >= 10) {
		good = take_range(at++, 0U, INT32_MAX, &evaluator->cooldown_interval_ms) && good;
		good = take_range(at++, 0U, INT32_MAX, &evaluator->repeats_to_cooldown) && good;
	}
	/* v0.14's cache_flush_bytes stays unread, as on TVM's own devices: what it flushes is a host's cache. */
	return good;
}

static tvm_crt_error_t find_function(struct minrpc_server *server, const TVMValue *values,
				     bool counting, TVMBackendPackedCFunc *function)
{
	uint32_t index;

	if (values[0].v_int64 != MINRPC_HANDLE_MODULE) {
		return minrpc_server_fail(server, kTvmErrorFunctionIndexInvalid,
					  "time evaluator: no module has handle 0x%x",
					  (unsigned int)values[0].v_int64);
	}
	if (counting && values[1].v_str[0] == '\0') {
		*function = empty_function;
		return kTvmErrorNoError;
	}
	if (minrpc_library_find(&server->config->library, values[1].v_str, &index) !=
	    kTvmErrorNoError) {
		return minrpc_server_fail(server, kTvmErrorFunctionNameNotFound,
					  "time evaluator: no function \"%s\" in the system library",
					  values[1].v_str);
	}
	*function = minrpc_library_at(&server->config->library, index);
	return kTvmErrorNoError;
}

static tvm_crt_error_t fail_memory(struct minrpc_server *server, uint32_t size)
{
	return minrpc_server_fail(server, kTvmErrorPlatformNoMemory,
				  "time evaluator: out of device memory: needs %u bytes, largest free %u",
				  (unsigned int)size,
				  (unsigned int)minrpc_arena_largest_free(&server->arena));
}

static tvm_crt_error_t create(struct minrpc_server *server, struct minrpc_call *call, bool counting)
{
	struct minrpc_evaluator made = {.next = server->evaluators, .counting = counting};
	tvm_crt_error_t error = minrpc_check_args(server, "time evaluator", &call->args,
						  letters_for(call->args.count));
	void *block;

	if (error == kTvmErrorNoError) {
		error = find_function(server, call->args.values, counting, &made.function);
	}
	if (error != kTvmErrorNoError) {
		return error;
	}
	if (!take_options(&call->args, &made)) {
		return minrpc_server_fail(server, kTvmErrorFunctionCallWrongArgType,
					  "time evaluator: number and repeat must be 1 or more, the "
					  "others 0 or more");
	}
	if (minrpc_arena_alloc(&server->arena, sizeof(made), 1U, MINRPC_ARENA_EVALUATOR, &block) !=
	    kTvmErrorNoError) {
		return fail_memory(server, sizeof(made));
	}
	made.serial = ++server->evaluator_serial;
	memcpy(block, &made, sizeof(made));
	server->evaluators = block;
	call->value.v_int64 = (int64_t)(MINRPC_HANDLE_EVALUATOR + made.serial);
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
static struct minrpc_evaluator **find(struct minrpc_server *server, uint64_t handle)
{
	struct minrpc_evaluator **link = &server->evaluators;

	while (*link != NULL && MINRPC_HANDLE_EVALUATOR + (*link)->serial != handle) {
		link = &(*link)->next;
	}
	return *link == NULL ? NULL : link;
}

tvm_crt_error_t minrpc_evaluator_free(struct minrpc_server *server, uint64_t handle)
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
		return minrpc_server_fail(server, error, "the platform timer did not start: error 0x%x",
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

	*sample = (struct sample){.number = evaluator->number};
	for (;;) {
		tvm_crt_error_t error =
			time_batch(server, evaluator, sample->number, call, &sample->cycles);

		if (error != kTvmErrorNoError) {
			return error;
		}
		sample->batches++;
		zeros += sample->cycles == 0U;
		wanted = minrpc_clock_convert(evaluator->min_repeat_ms, 1000U,
					      server->timer.clock.cycles_hz);
		if (sample->cycles >= wanted || sample->number == 0U || sample->number == NUMBER_MAX ||
		    (sample->cycles == 0U && zeros >= evaluator->limit_zero_time_iterations)) {
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

	for (uint32_t i = 0U; i < evaluator->repeat && error == kTvmErrorNoError; i++) {
		struct sample sample;

		error = time_repeat(server, evaluator, call, &sample);
		store(server, evaluator, i, &sample, out);
		if (evaluator->cooldown_interval_ms != 0U && evaluator->repeats_to_cooldown != 0U &&
		    i % evaluator->repeats_to_cooldown == 0U) {
			config->platform->sleep_ms(config->context, evaluator->cooldown_interval_ms);
		}
	}
	return error;
}

tvm_crt_error_t minrpc_evaluator_call(struct minrpc_server *server, uint64_t handle,
				      struct minrpc_call *call)
{
	struct minrpc_evaluator **link = find(server, handle);
	struct result {
		TVMByteArray bytes;
		uint64_t values[];
	} *result;
	uint64_t size;
	tvm_crt_error_t error;

	if (link == NULL) {
		return minrpc_server_fail(server, kTvmErrorTimeEvaluatorBadHandle,
					  "time evaluator: handle %u is not live",
					  (unsigned int)handle);
	}
	size = (*link)->counting ? sizeof(struct counting_result) +
					   (uint64_t)(*link)->repeat * sizeof(struct sample)
				 : (uint64_t)(*link)->repeat * sizeof(double);
	if (size > UINT32_MAX - sizeof(*result) ||
	    minrpc_arena_alloc(&server->arena, (uint32_t)(sizeof(*result) + size), 1U,
			       MINRPC_ARENA_RESULT, &server->result) != kTvmErrorNoError) {
		return fail_memory(server, (uint32_t)(size > UINT32_MAX ? UINT32_MAX : size));
	}
	result = server->result;
	result->bytes = (TVMByteArray){(const char *)result->values, (size_t)size};
	error = time_repeats(server, *link, call, result->values);
	call->value.v_handle = &result->bytes;
	call->type_code = kTVMBytes;
	return error;
}
