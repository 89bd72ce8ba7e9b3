/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Global functions: what TVM's clients look up by name, and what this device adds.
 */
#include <string.h>

#include "rpc.h"

static bool return_int(struct minrpc_call *call, int type_code, uint32_t value)
{
	call->value.v_int64 = value;
	call->type_code = type_code;
	return true;
}

static bool system_lib(struct minrpc_server *server, struct minrpc_call *call)
{
	(void)server;
	return return_int(call, kTVMModuleHandle, MINRPC_HANDLE_MODULE);
}

bool minrpc_check_module(struct minrpc_server *server, const TVMValue *value)
{
	uintptr_t handle = minrpc_handle((uint64_t)value->v_int64);

	if (handle == MINRPC_HANDLE_MODULE) {
		return true;
	}
	return minrpc_fail_handle(server, kTVMModuleHandle, handle);
}

/* 0 when the library has none of that name. */
static uintptr_t find_function(const struct minrpc_library *library, const char *name)
{
	uint32_t index = minrpc_library_find(library, name);

	return index == MINRPC_NO_FUNCTION ? 0U : MINRPC_HANDLE_FUNCTION + index;
}

static bool module_get_function(struct minrpc_server *server, struct minrpc_call *call)
{
	const TVMValue *values = call->args.values;
	uintptr_t handle;

	if (!minrpc_check_args(server, "ModuleGetFunction", &call->args,
			       MINRPC_ARG_MODULE MINRPC_ARG_STRING MINRPC_ARG_INT) ||
	    !minrpc_check_module(server, &values[0])) {
		return false;
	}
	/* Null, when there is none: not found is not a failure. */
	handle = find_function(&server->config->library, values[1].v_str);
	return handle == 0U || return_int(call, kTVMPackedFuncHandle, (uint32_t)handle);
}

static bool max_packet_size(struct minrpc_server *server, struct minrpc_call *call)
{
	uint32_t size = server->config->receive_size;

	/* A client cuts what it reads by this too, and hangs on a reply that its own buffer can't take. */
	if (size > MINRPC_CLIENT_PACKET) {
		size = MINRPC_CLIENT_PACKET;
	}
	return return_int(call, kTVMArgInt, size - MINRPC_SESSION_HEADER - MINRPC_PACKET_LENGTH);
}

static bool reset_server(struct minrpc_server *server, struct minrpc_call *call)
{
	const struct minrpc_config *config = server->config;

	(void)call;
	if (config->platform->reset != NULL) {
		config->platform->reset(config->context);
	}
	return minrpc_server_fail(server, "can't reset");
}

/* One behind another, and in the same order as the functions. */
static const char names[] = "runtime.SystemLib\0"
			    "tvm.rpc.server.ModuleGetFunction\0"
			    "tvm.rpc.server.GetCRTMaxPacketSize\0"
			    "runtime.RPCTimeEvaluator\0"
			    "tvm.contrib.random.random_fill\0"
			    "tvm.testing.reset_server\0"
			    "minrpc.device_info\0"
			    "minrpc.resend\0"
			    "minrpc.time_evaluator";

static const minrpc_global functions[] = {
	system_lib,
	module_get_function,
	max_packet_size,
	minrpc_evaluator_create,
	minrpc_random_fill,
	reset_server,
	minrpc_device_info,
	minrpc_resend_version,
	minrpc_evaluator_create_counting,
};

#define COUNT ((uint32_t)(sizeof(functions) / sizeof(functions[0])))

uintptr_t minrpc_global_find(const struct minrpc_library *library, const char *name)
{
	uint32_t index;

	if (*name == ':') {
		return find_function(library, name + 1);
	}
	index = minrpc_names_find(names, COUNT, name);
	return index == COUNT ? 0U : MINRPC_HANDLE_GLOBAL + index;
}

minrpc_global minrpc_global_at(uint32_t index)
{
	return index < COUNT ? functions[index] : NULL;
}
