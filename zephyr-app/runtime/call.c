/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * What a function handle names, and what arguments a request may have.
 */
#include <string.h>

#include "rpc.h"

struct expected {
	char letter;
	int8_t type_code;
	int8_t also;
};

static const struct expected expectations[] = {
	{'d', kDLDevice, kDLDevice},          {'h', kTVMOpaqueHandle, kTVMNullptr},
	{'i', kTVMArgInt, kTVMArgBool},       {'m', kTVMModuleHandle, kTVMOpaqueHandle},
	{'n', kTVMStr, kTVMNullptr},          {'p', kTVMDataType, kTVMDataType},
	{'s', kTVMStr, kTVMStr},              {'t', kTVMDLTensorHandle, kTVMDLTensorHandle},
};

static const struct expected *expectation(char letter)
{
	const struct expected *expected = expectations;

	while (expected->letter != letter) {
		expected++;
	}
	return expected;
}

tvm_crt_error_t minrpc_fail_handle(struct minrpc_server *server, const char *what, uintptr_t handle)
{
	return minrpc_server_fail(server, kTvmErrorFunctionIndexInvalid, "no live %s 0x%x", what,
				  (unsigned int)handle);
}

tvm_crt_error_t minrpc_check_args(struct minrpc_server *server, const char *function,
				  const struct minrpc_args *args, const char *letters)
{
	if (args->count != (int)strlen(letters)) {
		return minrpc_server_fail(server, kTvmErrorFunctionCallNumArguments,
					  "%s: expected %u arguments, got %d", function,
					  (unsigned int)strlen(letters), args->count);
	}
	for (int i = 0; i < args->count; i++) {
		const struct expected *expected = expectation(letters[i]);
		int code = args->type_codes[i];

		if (code != expected->type_code && code != expected->also) {
			return minrpc_server_fail(server, kTvmErrorFunctionCallWrongArgType,
						  "%s: argument %d: expected %s, got %s", function, i,
						  minrpc_type_name(expected->type_code),
						  minrpc_type_name(code));
		}
	}
	return kTvmErrorNoError;
}

tvm_crt_error_t minrpc_call_failed(struct minrpc_server *server, int status)
{
	if (server->error[0] == '\0') {
		(void)minrpc_server_fail(server, kTvmErrorPlatformCheckFailure,
					 "it returned %d and no message", status);
	}
	return kTvmErrorPlatformCheckFailure;
}

struct minrpc_constant {
	struct minrpc_constant *next;
	const void *address;
};

bool minrpc_server_is_constant(const struct minrpc_server *server, const void *address)
{
	const struct minrpc_constant *constant = server->constants;

	while (constant != NULL && constant->address != address) {
		constant = constant->next;
	}
	return constant != NULL;
}

/* The client may name what the function returned in later calls. */
static tvm_crt_error_t note_constant(struct minrpc_server *server, const struct minrpc_call *call)
{
	struct minrpc_constant made = {server->constants, call->value.v_handle};
	void *block;

	if (call->type_code != kTVMOpaqueHandle || made.address == NULL ||
	    minrpc_server_is_constant(server, made.address)) {
		return kTvmErrorNoError;
	}
	if (minrpc_arena_alloc(&server->arena, sizeof(made), 1U, MINRPC_ARENA_CONSTANT, &block) !=
	    kTvmErrorNoError) {
		return minrpc_server_fail_memory(server, sizeof(made));
	}
	memcpy(block, &made, sizeof(made));
	server->constants = block;
	return kTvmErrorNoError;
}

static tvm_crt_error_t call_library(struct minrpc_server *server, TVMBackendPackedCFunc function,
				    struct minrpc_call *call)
{
	int status = function(call->args.values, call->args.type_codes, call->args.count,
			      &call->value, &call->type_code, NULL);

	return status == 0 ? note_constant(server, call) : minrpc_call_failed(server, status);
}

static tvm_crt_error_t bind_constant(struct minrpc_server *server, const DLTensor *tensor)
{
	uint32_t size;

	return minrpc_tensor_size(tensor, &size) ? kTvmErrorNoError : minrpc_fail_shape(server);
}

/* Global functions write to what they get, so a constant is nothing for them. */
static tvm_crt_error_t bind_tensors(struct minrpc_server *server, const struct minrpc_args *args,
				    bool constants)
{
	tvm_crt_error_t error = kTvmErrorNoError;

	for (int i = 0; i < args->count && error == kTvmErrorNoError; i++) {
		DLTensor *tensor = args->values[i].v_handle;

		if (args->type_codes[i] != kTVMDLTensorHandle) {
			continue;
		}
		if (constants && tensor->byte_offset == 0U &&
		    minrpc_server_is_constant(server, tensor->data)) {
			error = bind_constant(server, tensor);
		} else {
			error = minrpc_bind_tensor(server, tensor);
		}
	}
	return error;
}

static bool is_global(uintptr_t handle)
{
	return handle - MINRPC_HANDLE_GLOBAL < MINRPC_HANDLE_MODULE;
}

static tvm_crt_error_t dispatch(struct minrpc_server *server, uintptr_t handle,
				struct minrpc_call *call)
{
	uintptr_t index = handle - MINRPC_HANDLE_FUNCTION;

	if (handle >= MINRPC_HANDLE_EVALUATOR) {
		return minrpc_evaluator_call(server, handle, call);
	}
	if (index < MINRPC_HANDLE_MODULE) {
		TVMBackendPackedCFunc function =
			minrpc_library_at(&server->config->library, (uint32_t)index);

		if (function != NULL) {
			return call_library(server, function, call);
		}
	} else if (is_global(handle)) {
		return minrpc_global_call(server, (uint32_t)(handle - MINRPC_HANDLE_GLOBAL), call);
	}
	return minrpc_fail_handle(server, "function", handle);
}

tvm_crt_error_t minrpc_call_handle(struct minrpc_server *server, uintptr_t handle,
				   struct minrpc_call *call)
{
	tvm_crt_error_t error = bind_tensors(server, &call->args, !is_global(handle));
	uint32_t used = server->arena.used;

	call->value.v_int64 = 0;
	call->type_code = kTVMNullptr;
	if (error == kTvmErrorNoError) {
		error = dispatch(server, handle, call);
	}
	if (server->arena.used != used) {
		minrpc_arena_release(&server->arena, MINRPC_ARENA_WORKSPACE);
	}
	return error;
}
