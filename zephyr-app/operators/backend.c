/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * TVM's C ABI for generated code. It has no context argument, so the one server of the image is kept here.
 */
#include "operators.h"

#include <string.h>

/* NULL where no generated code is linked. */
TVM_WEAK const TVMModule *TVMSystemLibEntryPoint(void);

static struct minrpc_server *server;
static const TVMFuncRegistry *registries[2];
static struct minrpc_library library;

struct minrpc_library operators_library(void)
{
	const TVMModule *generated =
		TVMSystemLibEntryPoint != NULL ? TVMSystemLibEntryPoint() : NULL;

	library = (struct minrpc_library){.registries = registries};
	if (generated != NULL) {
		registries[library.count++] = generated->registry;
	}
	registries[library.count++] = &operators_registry;
	return library;
}

void operators_bind(struct minrpc_server *bound)
{
	server = bound;
}

bool operator_is_constant(const DLTensor *tensor)
{
	return minrpc_server_is_constant(server, tensor->data);
}

void TVMAPISetLastError(const char *message)
{
	(void)minrpc_server_fail(server, "%s", message);
}

const char *TVMGetLastError(void)
{
	return server->error;
}

static int fail(const char *message)
{
	TVMAPISetLastError(message);
	return -1;
}

void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int dtype_code_hint,
			       int dtype_bits_hint)
{
	uint32_t size = nbytes > UINT32_MAX ? UINT32_MAX : (uint32_t)nbytes;

	(void)device_type;
	(void)device_id;
	(void)dtype_code_hint;
	(void)dtype_bits_hint;
	return minrpc_server_alloc(server, size, MINRPC_TENSOR_ALIGNMENT, MINRPC_ARENA_WORKSPACE);
}

int TVMBackendFreeWorkspace(int device_type, int device_id, void *ptr)
{
	(void)device_type;
	(void)device_id;
	if (minrpc_arena_free(&server->arena, (uintptr_t)ptr, MINRPC_ARENA_WORKSPACE) !=
	    kTvmErrorNoError) {
		return fail("the function freed workspace that is not live");
	}
	return 0;
}

int TVMFuncGetGlobal(const char *name, TVMFunctionHandle *out)
{
	uint32_t index = minrpc_library_find(&library, name);

	*out = NULL;
	if (index == MINRPC_NO_FUNCTION) {
		(void)minrpc_server_fail(server, "no function \"%s\" in the system library", name);
		return -1;
	}
	/* Non-zero, and an index instead of a function pointer, which C would not convert. */
	*out = (TVMFunctionHandle)(uintptr_t)(index + 1U);
	return 0;
}

int TVMFuncCall(TVMFunctionHandle function, TVMValue *args, int *type_codes, int num_args,
		TVMValue *ret_value, int *ret_type_code)
{
	TVMBackendPackedCFunc packed =
		minrpc_library_at(&library, (uint32_t)(uintptr_t)function - 1U);

	if (packed == NULL) {
		return fail("the function called a handle that names no function");
	}
	*ret_type_code = kTVMNullptr;
	return packed(args, type_codes, num_args, ret_value, ret_type_code, NULL);
}

int TVMFuncFree(TVMFunctionHandle function)
{
	(void)function;
	return 0;
}

int TVMBackendGetFuncFromEnv(void *mod_node, const char *func_name, TVMFunctionHandle *out)
{
	(void)mod_node;
	return TVMFuncGetGlobal(func_name, out);
}

int TVMBackendRegisterSystemLibSymbol(const char *name, void *ptr)
{
	(void)name;
	(void)ptr;
	return fail("functions are registered by a TVMFuncRegistry, not at run time");
}

int TVMBackendParallelLaunch(FTVMParallelLambda flambda, void *cdata, int num_task)
{
	TVMParallelGroupEnv group = {NULL, num_task > 0 ? num_task : 1};

	for (int task = 0; task < group.num_task; task++) {
		int status = flambda(task, &group, cdata);

		if (status != 0) {
			return status;
		}
	}
	return 0;
}
