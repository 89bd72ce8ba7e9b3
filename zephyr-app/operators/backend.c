/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * TVM's C ABI for generated code. The ABI has no context argument, so this file keeps the image's
 * only server.
 */
#include "operators.h"

#include <string.h>

/* NULL when no generated code is linked. */
TVM_WEAK const TVMModule *TVMSystemLibEntryPoint(void);

#ifndef MINRPC_LIBRARIES
#define MINRPC_LIBRARIES 0
#endif

#if MINRPC_LIBRARIES
/* The functions of the typed libraries that are linked in. */
extern const TVMFuncRegistry minrpc_linked_functions;
#endif

static struct minrpc_server *server;

struct minrpc_library minrpc_system_library(void)
{
	static struct minrpc_module modules[2 + MINRPC_LIBRARIES];

	if (TVMSystemLibEntryPoint != NULL) {
		modules[0].packed = TVMSystemLibEntryPoint()->registry;
	}
	modules[1] = minrpc_operators;
#if MINRPC_LIBRARIES
	modules[2].packed = &minrpc_linked_functions;
#endif
	return (struct minrpc_library){modules, sizeof(modules) / sizeof(modules[0])};
}

/* Links the functions that loaded code calls, by relocations that change nothing. */
#define KEEP(symbol) __asm__ volatile(".reloc ., BFD_RELOC_NONE, " #symbol)

void minrpc_tvm_bind(struct minrpc_server *bound)
{
#if MINRPC_CODE_LOADING
	KEEP(TVMAPISetLastError);
	KEEP(TVMBackendAllocWorkspace);
	KEEP(TVMBackendFreeWorkspace);
	KEEP(TVMBackendParallelLaunch);
#if MINRPC_ASK
	KEEP(minrpc_ask_client);
	KEEP(minrpc_escapable_client);
	KEEP(minrpc_escape_client);
#endif
#endif
	server = bound;
}

#if MINRPC_ASK
const void *minrpc_ask_client(const void *question, uint32_t size, uint32_t *answer_size)
{
	return minrpc_ask(server, question, size, answer_size);
}

bool minrpc_escapable_client(void (*run)(void *context), void *context)
{
	return minrpc_escapable(server, run, context);
}

void minrpc_escape_client(void)
{
	__builtin_longjmp(server->escape, 1);
}
#endif

void TVMAPISetLastError(const char *message)
{
	(void)minrpc_set_error(server, message);
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
	void *block;

	(void)device_type;
	(void)device_id;
	(void)dtype_code_hint;
	(void)dtype_bits_hint;
	block = minrpc_workspace_alloc(&server->arena, size, MINRPC_TENSOR_ALIGNMENT);
	if (block == NULL) {
		(void)minrpc_fail_memory(server, &server->arena, size);
	}
	return block;
}

int TVMBackendFreeWorkspace(int device_type, int device_id, void *ptr)
{
	(void)device_type;
	(void)device_id;
	switch (minrpc_workspace_free(&server->arena, ptr)) {
	case MINRPC_DAMAGE_NONE:
		return 0;
	case MINRPC_DAMAGE_FOREIGN:
		return fail("the function freed memory that is not its newest workspace");
	case MINRPC_DAMAGE_BEFORE:
		return fail("the function wrote before its workspace");
	default:
		return fail("the function wrote past its workspace");
	}
}

int TVMFuncGetGlobal(const char *name, TVMFunctionHandle *out)
{
	uint32_t index = minrpc_library_find(&server->config->library, name);

	*out = NULL;
	if (index == MINRPC_NO_FUNCTION) {
		(void)minrpc_fail(server, "no function \"%s\" in the system library", name);
		return -1;
	}
	/* Not zero, and an index, since C can't convert a function pointer to a handle. */
	*out = (TVMFunctionHandle)(uintptr_t)(index + 1U);
	return 0;
}

/* Calls a function for generated code, whose tensors are bound to memory already. */
int TVMFuncCall(TVMFunctionHandle function, TVMValue *args, int *type_codes, int num_args,
		TVMValue *ret_value, int *ret_type_code)
{
	struct minrpc_callee callee;
	struct minrpc_call call = {.server = server,
				   .callee = &callee,
				   .type_code = kTVMNullptr,
				   .args = {args, type_codes, num_args}};
	const char *form;

	if (!minrpc_library_at(&server->config->library, (uint32_t)(uintptr_t)function - 1U,
			       &callee)) {
		return fail("the function called a handle that names no function");
	}
	form = callee.function != NULL ? callee.function->arguments : NULL;
	if ((form != NULL && !minrpc_check_arguments(&call, form)) ||
	    !minrpc_invoke(&callee, 1U, &call)) {
		return -1;
	}
	*ret_value = call.value;
	*ret_type_code = call.type_code;
	return 0;
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
