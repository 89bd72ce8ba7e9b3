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
	{"tvm.contrib.random.random_fill", minrpc_random_fill},
	{"tvm.testing.reset_server", reset_server},
	{"minrpc.device_info", minrpc_device_info},
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
