/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * What a function handle names, and what arguments a request may have.
 */
#include <string.h>

#include "rpc.h"

bool minrpc_fail_handle(struct minrpc_server *server, int type_code, uintptr_t handle)
{
	return minrpc_server_fail(server, "no live %s 0x%x", minrpc_type_name(type_code),
				  (unsigned int)handle);
}

bool minrpc_fail_type(struct minrpc_server *server, uint32_t type_code)
{
	return minrpc_server_fail(server, "bad type code %u", (unsigned int)type_code);
}

bool minrpc_check_args(struct minrpc_server *server, const char *function,
		       const struct minrpc_args *args, const char *form)
{
	int count = (int)strlen(form);

	if (args->count != count) {
		return minrpc_server_fail(server, "%s: expected %d arguments, got %d", function,
					  count, args->count);
	}
	for (int i = 0; i < count; i++) {
		int either = (uint8_t)form[i] >> 4;
		int other = form[i] & 0xf;
		int code = args->type_codes[i];

		if (code != either && code != other) {
			return minrpc_server_fail(server, "%s: argument %d: expected %s, got %s",
						  function, i, minrpc_type_name(either),
						  minrpc_type_name(code));
		}
	}
	return true;
}

struct minrpc_constant {
	struct minrpc_constant *next;
	const void *address;
};

bool minrpc_server_is_constant(const struct minrpc_server *server, const void *address)
{
	const struct minrpc_constant *constant = server->constants;

	for (; constant != NULL; constant = constant->next) {
		if (constant->address == address) {
			return true;
		}
	}
	return false;
}

/* The client may name what the function returned in later calls. */
static bool note_constant(struct minrpc_server *server, const struct minrpc_call *call)
{
	const void *address = call->value.v_handle;
	struct minrpc_constant *made;

	if (call->type_code != kTVMOpaqueHandle || address == NULL ||
	    minrpc_server_is_constant(server, address)) {
		return true;
	}
	made = minrpc_server_alloc(server, sizeof(*made), 1U, MINRPC_ARENA_CONSTANT);
	if (made == NULL) {
		return false;
	}
	made->address = address;
	made->next = server->constants;
	server->constants = made;
	return true;
}

bool minrpc_run(struct minrpc_server *server, TVMBackendPackedCFunc function, uint32_t number,
		struct minrpc_call *call)
{
	int status = 0;

	while (number-- != 0U && status == 0) {
		status = function(call->args.values, call->args.type_codes, call->args.count,
				  &call->value, &call->type_code, NULL);
	}
	if (status != 0 && server->error[0] == '\0') {
		(void)minrpc_server_fail(server, "returned %d, no message", status);
	}
	return status == 0;
}

static bool bind_tensors(struct minrpc_server *server, const struct minrpc_args *args,
			 bool constants)
{
	for (int i = 0; i < args->count; i++) {
		if (args->type_codes[i] == kTVMDLTensorHandle &&
		    !minrpc_bind_tensor(server, args->values[i].v_handle, constants)) {
			return false;
		}
	}
	return true;
}

static bool is_global(uintptr_t handle)
{
	return handle - MINRPC_HANDLE_GLOBAL < MINRPC_HANDLE_MODULE;
}

static bool dispatch(struct minrpc_server *server, uintptr_t handle, struct minrpc_call *call)
{
	if (handle >= MINRPC_HANDLE_EVALUATOR) {
		return minrpc_evaluator_call(server, handle, call);
	}
	if (is_global(handle)) {
		minrpc_global global = minrpc_global_at((uint32_t)(handle - MINRPC_HANDLE_GLOBAL));

		if (global != NULL) {
			return global(server, call);
		}
	} else if (handle - MINRPC_HANDLE_FUNCTION < MINRPC_HANDLE_MODULE) {
		TVMBackendPackedCFunc function = minrpc_library_at(
			&server->config->library, (uint32_t)(handle - MINRPC_HANDLE_FUNCTION));

		if (function != NULL) {
			return minrpc_run(server, function, 1U, call) && note_constant(server, call);
		}
	}
	return minrpc_fail_handle(server, kTVMPackedFuncHandle, handle);
}

bool minrpc_call_handle(struct minrpc_server *server, uintptr_t handle, struct minrpc_call *call)
{
	uint32_t used = server->arena.used;
	bool done;

	call->value.v_int64 = 0;
	call->type_code = kTVMNullptr;
	/* Global functions write to what they get, so a constant is nothing for them. */
	done = bind_tensors(server, &call->args, !is_global(handle)) &&
	       dispatch(server, handle, call);
	if (server->arena.used != used) {
		minrpc_arena_release(&server->arena, MINRPC_ARENA_WORKSPACE);
	}
	return done;
}
