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

/* A checksum of the arguments in the receive buffer, with all that they point to there. */
static uint32_t arguments_check(const TVMValue *args, const int *codes, int count)
{
	uint32_t check = minrpc_crc32(0U, codes, (uint32_t)count * sizeof(*codes));

	check = minrpc_crc32(check, args, (uint32_t)count * sizeof(*args));
	for (int i = 0; i < count; i++) {
		const DLTensor *tensor = args[i].v_handle;
		const TVMByteArray *bytes = args[i].v_handle;

		if (codes[i] == kTVMDLTensorHandle) {
			check = minrpc_crc32(check, tensor, sizeof(*tensor));
			check = minrpc_crc32(check, tensor->shape,
					     (uint32_t)tensor->ndim * sizeof(*tensor->shape));
		} else if (codes[i] == kTVMBytes) {
			check = minrpc_crc32(check, bytes, sizeof(*bytes));
			check = minrpc_crc32(check, bytes->data, (uint32_t)bytes->size);
		} else if (codes[i] == kTVMStr) {
			check = minrpc_crc32(check, args[i].v_str,
					     (uint32_t)strlen(args[i].v_str) + 1U);
		}
	}
	return check;
}

static int ask(PACKED)
{
	uint32_t check = arguments_check(args, codes, count);
	uint32_t size;
	const uint8_t *answer = minrpc_ask_client("why?", 4U, &size);

	(void)resource;
	CHECK(size != 0U);
	CHECK_EQ(arguments_check(args, codes, count), check);
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

/* Goes on after a failure, as a caller may that looks at no result. */
static int insist(PACKED)
{
	(void)call_inc(args, codes, count, value, code, resource);
	return call_inc(args, codes, count, value, code, resource);
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
	tick,     fail_at, fail_text,         leak,   workspace, bad_free, ret, echo,   array,
	call_inc, talk,    resource_function, beside, overrun,   crossed,  ask, insist,
};

const TVMFuncRegistry host_registry = {
	.names = "\021\000tick\0fail_at\0fail_text\0leak\0workspace\0bad_free\0ret\0echo\0array\0"
		 "call_inc\0talk\0resource\0beside\0overrun\0crossed\0ask\0insist\0",
	.funcs = functions,
};
