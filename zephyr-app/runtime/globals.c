/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Global functions: TVM's clients look some up by name; this device adds others.
 */
#include "rpc.h"

static bool system_lib(struct minrpc_call *call)
{
	return minrpc_return_handle(call, kTVMModuleHandle, MINRPC_HANDLE_MODULE);
}

static bool module_get_function(struct minrpc_call *call)
{
	const TVMValue *values = call->args.values;
	struct minrpc_library library;
	uint32_t first;
	uint32_t index;

	if (!minrpc_find_module(call->server, minrpc_handle((uint64_t)values[0].v_int64), &library,
				&first)) {
		return false;
	}
	index = minrpc_library_find(&library, values[1].v_str);
	/* A missing function is no failure: the result is null. */
	return index == MINRPC_NO_FUNCTION ||
	       minrpc_return_handle(call, kTVMPackedFuncHandle, first + index);
}

static bool max_packet_size(struct minrpc_call *call)
{
	uint32_t size = call->server->config->receive_size;

	/*
	 * Clients also limit their reads by this number, and hang on a reply that exceeds their own
	 * buffer.
	 */
	if (size > MINRPC_CLIENT_PACKET) {
		size = MINRPC_CLIENT_PACKET;
	}
	return minrpc_return_int(call, size - MINRPC_SESSION_HEADER - MINRPC_PACKET_LENGTH);
}

static bool reset_server(struct minrpc_call *call)
{
	const struct minrpc_config *config = call->server->config;

	if (config->platform->reset != NULL) {
		config->platform->reset(config->context);
	}
	return minrpc_fail(call->server, "can't reset");
}

/* Clients keep handles only for a session, so new functions may be inserted anywhere. */
static const struct minrpc_function functions[] = {
	{"runtime.SystemLib", NULL, system_lib},
	{"tvm.rpc.server.ModuleGetFunction", "msi", module_get_function},
	{"tvm.rpc.server.GetCRTMaxPacketSize", NULL, max_packet_size},
	{"runtime.RPCTimeEvaluator", NULL, minrpc_evaluator_create},
	{"tvm.testing.reset_server", NULL, reset_server},
#if MINRPC_DEVICE_INFO
	{"minrpc.device_info", "", minrpc_device_info},
#endif
#if MINRPC_COUNTING
	{"minrpc.time_evaluator", NULL, minrpc_evaluator_create_counting},
#endif
#if MINRPC_RANDOM_FILL
	{"tvm.contrib.random.random_fill", "w", minrpc_random_fill},
#endif
#if MINRPC_FILL
	{"minrpc.threefry", "wi", minrpc_threefry},
	{"minrpc.fill", "wb", minrpc_fill},
	{"minrpc.checksum", "t", minrpc_checksum},
#endif
#if MINRPC_NUMBERED
	{"minrpc.resend", NULL, minrpc_resend_version},
#endif
#if MINRPC_COUNTERS
	{"minrpc.counters", "", minrpc_counters_list},
	{"minrpc.memory", "i", minrpc_memory},
#endif
#if MINRPC_CODE_LOADING
	{"minrpc.code_alloc", "i", minrpc_code_alloc},
	{"minrpc.code_load", "hi", minrpc_code_load},
#endif
#if MINRPC_LAYOUT
	{"minrpc.layout", "hihi", minrpc_layout},
#endif
};

const struct minrpc_module minrpc_globals = {
	.functions = functions,
	.count = sizeof(functions) / sizeof(functions[0]),
};

uintptr_t minrpc_global_find(const struct minrpc_server *server, const char *name)
{
	struct minrpc_library library = {&minrpc_globals, 1U};
	uint32_t first = MINRPC_HANDLE_GLOBAL;
	uint32_t index;

	if (*name == ':') {
		library = server->config->library;
		first = MINRPC_HANDLE_FUNCTION;
		name++;
	}
	index = minrpc_library_find(&library, name);
	return index == MINRPC_NO_FUNCTION ? 0U : first + index;
}
