/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "functions.h"

#include <string.h>

#include "check.h"
#include "host.h"
#include "operators.h"

#define PACKED TVMValue *args, int *codes, int count, TVMValue *value, int *code, void *resource
#define UNUSED                                                                                     \
	(void)args;                                                                                \
	(void)codes;                                                                               \
	(void)count;                                                                               \
	(void)value;                                                                               \
	(void)code;                                                                                \
	(void)resource

struct host_functions host_functions;

void host_functions_reset(void)
{
	memset(&host_functions, 0, sizeof(host_functions));
	host_functions.cost = 1U;
}

static int tick(PACKED)
{
	UNUSED;
	host_functions.calls++;
	host_current()->clock.now += host_functions.cost;
	return 0;
}

static int fail_at(PACKED)
{
	(void)tick(args, codes, count, value, code, resource);
	return host_functions.calls == host_functions.fail_at ? -1 : 0;
}

static int fail_text(PACKED)
{
	UNUSED;
	TVMAPISetLastError("no luck");
	return -1;
}

static int ask(PACKED)
{
	int64_t last = count == 0 ? 0 : args[count - 1].v_int64;
	int last_code = count == 0 ? 0 : codes[count - 1];
	uint32_t size;
	const uint8_t *answer = minrpc_ask_client("why?", 4U, &size);

	(void)resource;
	CHECK(size != 0U);
	CHECK(count == 0 || (args[count - 1].v_int64 == last && codes[count - 1] == last_code));
	value->v_int64 = answer[0];
	*code = kTVMArgInt;
	host_functions.calls++;
	return 0;
}

static int leak(PACKED)
{
	UNUSED;
	if (TVMBackendAllocWorkspace(1, 0, 1000U, 0, 8) == NULL) {
		return -1;
	}
	value->v_int64 = 1;
	*code = kTVMArgInt;
	return 0;
}

static int workspace(PACKED)
{
	void *outer = TVMBackendAllocWorkspace(1, 0, 2000U, 2, 32);
	void *inner = TVMBackendAllocWorkspace(1, 0, 0U, 2, 32);

	UNUSED;
	if (outer == NULL || inner == NULL) {
		return -1;
	}
	memset(outer, 0x5a, 2000U);
	return TVMBackendFreeWorkspace(1, 0, inner) != 0 ||
			       TVMBackendFreeWorkspace(1, 0, outer) != 0
		       ? -1
		       : 0;
}

static int bad_free(PACKED)
{
	UNUSED;
	return TVMBackendFreeWorkspace(1, 0, host_current());
}

static int ret(PACKED)
{
	UNUSED;
	*value = host_functions.value;
	*code = host_functions.type_code;
	return 0;
}

static int echo(PACKED)
{
	UNUSED;
	if (count > 0) {
		*value = args[0];
		*code = codes[0];
	}
	return 0;
}

static int array(PACKED)
{
	void *block;

	UNUSED;
	block = minrpc_arena_alloc(&host_current()->server.arena, sizeof(DLTensor), 1U,
				   MINRPC_ARENA_NDARRAY);
	if (block == NULL) {
		return -1;
	}
	memcpy(block, &host_functions.array, sizeof(DLTensor));
	value->v_handle = block;
	*code = kTVMNDArrayHandle;
	return 0;
}

static int call_inc(PACKED)
{
	TVMFunctionHandle inc;

	UNUSED;
	/* The state is the same as after an earlier call of another function. */
	value->v_int64 = 7;
	*code = kTVMArgInt;
	if (TVMBackendGetFuncFromEnv(NULL,
				     host_functions.nested == NULL ? "inc" : host_functions.nested,
				     &inc) != 0) {
		return -1;
	}
	return TVMFuncCall(inc, args, codes, count, value, code);
}

static int talk(PACKED)
{
	static char text[4096];

	UNUSED;
	memset(text, 'x', sizeof(text));
	return minrpc_server_log(&host_current()->server, text, host_functions.log_size);
}

static int beside(PACKED)
{
	UNUSED;
	*host_functions.where ^= 0x10U;
	return 0;
}

static int overrun(PACKED)
{
	void *block = TVMBackendAllocWorkspace(1, 0, 16U, 0, 8);

	UNUSED;
	memset(block, 0x77, host_functions.log_size);
	return TVMBackendFreeWorkspace(1, 0, block);
}

static int crossed(PACKED)
{
	void *first = TVMBackendAllocWorkspace(1, 0, 16U, 0, 8);
	void *second = TVMBackendAllocWorkspace(1, 0, 16U, 0, 8);

	UNUSED;
	if (TVMBackendFreeWorkspace(1, 0, first) != 0) {
		return -1;
	}
	return TVMBackendFreeWorkspace(1, 0, second);
}

char host_resource;
const float host_constants[4] = {1.5F, -2.0F, 3.0F, 4.0F};

static int resource_function(PACKED)
{
	UNUSED;
	value->v_int64 = resource == &host_resource;
	*code = kTVMArgInt;
	return 0;
}

static const TVMBackendPackedCFunc functions[] = {
	tick,     fail_at, fail_text,         leak,   workspace, bad_free, ret, echo, array,
	call_inc, talk,    resource_function, beside, overrun,   crossed,  ask,
};

const TVMFuncRegistry host_registry = {
	.names = "\020\000tick\0fail_at\0fail_text\0leak\0workspace\0bad_free\0ret\0echo\0array\0"
		 "call_inc\0talk\0resource\0beside\0overrun\0crossed\0ask\0",
	.funcs = functions,
};
