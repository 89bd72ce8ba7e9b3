/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Global functions: what TVM's clients look up by name, and what this device adds.
 */
#include <string.h>

#include "rpc.h"

typedef tvm_crt_error_t (*global_function)(struct minrpc_server *server, struct minrpc_call *call);

static tvm_crt_error_t return_int(struct minrpc_call *call, int type_code, int64_t value)
{
	call->value.v_int64 = value;
	call->type_code = type_code;
	return kTvmErrorNoError;
}

static tvm_crt_error_t system_lib(struct minrpc_server *server, struct minrpc_call *call)
{
	(void)server;
	return return_int(call, kTVMModuleHandle, MINRPC_HANDLE_MODULE);
}

static tvm_crt_error_t module_get_function(struct minrpc_server *server, struct minrpc_call *call)
{
	const TVMValue *values = call->args.values;
	uint32_t index;
	tvm_crt_error_t error =
		minrpc_check_args(server, "ModuleGetFunction", &call->args, "msi");

	if (error != kTvmErrorNoError) {
		return error;
	}
	if (values[0].v_int64 != MINRPC_HANDLE_MODULE) {
		return minrpc_fail_handle(server, "module", (uintptr_t)values[0].v_int64);
	}
	if (minrpc_library_find(&server->config->library, values[1].v_str, &index) !=
	    kTvmErrorNoError) {
		return kTvmErrorNoError; /* null: not found is not a failure */
	}
	return return_int(call, kTVMPackedFuncHandle, MINRPC_HANDLE_FUNCTION + index);
}

static tvm_crt_error_t max_packet_size(struct minrpc_server *server, struct minrpc_call *call)
{
	uint32_t size = server->config->receive_size;

	/* A client cuts what it reads by this too, and hangs on a reply that its own buffer can't take. */
	if (size > MINRPC_CLIENT_PACKET) {
		size = MINRPC_CLIENT_PACKET;
	}
	return return_int(call, kTVMArgInt, size - MINRPC_SESSION_HEADER - MINRPC_PACKET_LENGTH);
}

/* xorshift32: the same bytes in each session. */
static uint32_t next_random(struct minrpc_server *server)
{
	uint32_t x = server->random_state;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	server->random_state = x;
	return x;
}

static tvm_crt_error_t random_fill(struct minrpc_server *server, struct minrpc_call *call)
{
	tvm_crt_error_t error = minrpc_check_args(server, "random_fill", &call->args, "t");
	const DLTensor *tensor = call->args.values[0].v_handle;
	uint32_t element;
	uint32_t size;

	if (error != kTvmErrorNoError) {
		return error;
	}
	(void)minrpc_tensor_size(tensor, &size);
	element = tensor->dtype.bits / 8U;
	for (uint32_t i = 0U; i < size; i++) {
		uint8_t byte = (uint8_t)(next_random(server) >> 24);

		/* A float's top byte: exponents a little below that of 2, so no infinity, no NaN, no denormal. */
		if (tensor->dtype.code >= kDLFloat && element > 1U && i % element == element - 1U) {
			byte = (byte & 0x83U) | 0x3cU;
		}
		((uint8_t *)tensor->data)[i] = byte;
	}
	return kTvmErrorNoError;
}

static tvm_crt_error_t reset_server(struct minrpc_server *server, struct minrpc_call *call)
{
	const struct minrpc_config *config = server->config;

	(void)call;
	if (config->platform->reset != NULL) {
		config->platform->reset(config->context);
	}
	return minrpc_server_fail(server, kTvmErrorFunctionCallNotImplemented,
				  "can't reset");
}

/* All little-endian; later versions append. */
struct device_info {
	uint32_t version;
	uint32_t max_packet;
	uint32_t arena_size;
	uint32_t arena_used;
	uint32_t arena_peak;
	uint32_t arena_largest_free;
	uint64_t timer_hz;
	struct minrpc_link_counters counters;
	uint32_t receive_overruns;
	uint32_t stack_size; /* 0: not known */
	uint32_t stack_peak;
	struct minrpc_clock_sample now; /* since version 2 */
	struct minrpc_clock clock;      /* last: what pads its end differs between ABIs */
};

/* No arguments, so the receive buffer is free to hold the answer: at its end, where no copy of this request reaches. */
static tvm_crt_error_t device_info(struct minrpc_server *server, struct minrpc_call *call)
{
	struct reply {
		TVMByteArray bytes;
		struct device_info info;
	} *reply = (void *)((uint8_t *)server->config->receive_buffer +
			    ((server->config->receive_size - sizeof(*reply)) & ~7U));
	const struct minrpc_platform *platform = server->config->platform;
	struct minrpc_clock clock;

	platform->clock_describe(server->config->context, &clock);
	reply->info = (struct device_info){
		.version = 3U,
		.max_packet = server->config->receive_size,
		.arena_size = server->arena.size,
		.arena_used = server->arena.used,
		.arena_peak = server->arena.peak,
		.arena_largest_free = minrpc_arena_largest_free(&server->arena),
		.timer_hz = clock.cycles_hz,
		.counters = server->counters,
		.clock = clock,
	};
	platform->clock_sample(server->config->context, &reply->info.now);
	if (platform->receive_overruns != NULL) {
		reply->info.receive_overruns = platform->receive_overruns(server->config->context);
	}
	reply->bytes = (TVMByteArray){(const char *)&reply->info, sizeof(reply->info)};
	if (platform->stack_use != NULL) {
		platform->stack_use(server->config->context, &reply->info.stack_size,
				    &reply->info.stack_peak);
	}
	call->value.v_handle = &reply->bytes;
	call->type_code = kTVMBytes;
	return kTvmErrorNoError;
}

/* Being there says that numbered messages are understood; the value is their version. */
static tvm_crt_error_t resend(struct minrpc_server *server, struct minrpc_call *call)
{
	(void)server;
	return return_int(call, kTVMArgInt, 1);
}

static const struct {
	const char *name;
	global_function function;
} globals[] = {
	{"runtime.SystemLib", system_lib},
	{"tvm.rpc.server.ModuleGetFunction", module_get_function},
	{"tvm.rpc.server.GetCRTMaxPacketSize", max_packet_size},
	{"runtime.RPCTimeEvaluator", minrpc_evaluator_create},
	{"tvm.contrib.random.random_fill", random_fill},
	{"tvm.testing.reset_server", reset_server},
	{"minrpc.device_info", device_info},
	{"minrpc.resend", resend},
	{"minrpc.time_evaluator", minrpc_evaluator_create_counting},
};

#define GLOBAL_COUNT (sizeof(globals) / sizeof(globals[0]))

tvm_crt_error_t minrpc_global_find(const char *name, uint32_t *index)
{
	for (*index = 0U; *index < GLOBAL_COUNT; (*index)++) {
		if (strcmp(globals[*index].name, name) == 0) {
			return kTvmErrorNoError;
		}
	}
	return kTvmErrorFunctionNameNotFound;
}

tvm_crt_error_t minrpc_global_call(struct minrpc_server *server, uint32_t index,
				   struct minrpc_call *call)
{
	if (index >= GLOBAL_COUNT) {
		return minrpc_fail_handle(server, "function", MINRPC_HANDLE_GLOBAL + index);
	}
	return globals[index].function(server, call);
}
