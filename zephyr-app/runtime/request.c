/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * RPC packets: what each code carries and what it is answered.
 */
#include <string.h>

#include "rpc.h"

/* What the codes from GetGlobalFunc (9) on take, as minrpc_check_args reads it; NULL: more than one form. */
static const char *const syscall_args[] = {
	"s", "hi", "d", "di", "diip", "dh", "dh", NULL, "tn", "d", "dh", "dh", "d",
};

static tvm_crt_error_t decode(struct minrpc_server *server, struct minrpc_cursor *body,
			      struct minrpc_args *args)
{
	uint8_t *buffer = server->config->receive_buffer;
	struct minrpc_scratch scratch = {.at = body->end,
					 .end = buffer + server->config->receive_size};
	uint32_t culprit = 0U;

	switch (minrpc_packed_decode(body, &scratch, &server->dialect, args, &culprit)) {
	case MINRPC_PACKED_OK:
		return kTvmErrorNoError;
	case MINRPC_PACKED_TYPE:
		return minrpc_server_fail(server, kTvmErrorFunctionCallWrongArgType,
					  "bad type code %u", (unsigned int)culprit);
	case MINRPC_PACKED_SCRATCH:
		return minrpc_server_fail(server, kTvmErrorBufferTooSmall,
					  "the arguments outgrow the receive buffer");
	default:
		return minrpc_server_fail(server, kTvmErrorFramingPayloadIncomplete,
					  "malformed arguments");
	}
}

static tvm_crt_error_t call_function(struct minrpc_server *server, struct minrpc_cursor *body)
{
	uintptr_t handle = minrpc_handle(minrpc_take_u64(body));
	struct minrpc_call call;
	tvm_crt_error_t error = decode(server, body, &call.args);

	if (error == kTvmErrorNoError) {
		error = minrpc_call_handle(server, handle, &call);
	}
	if (error == kTvmErrorNoError) {
		error = minrpc_reply_call(server, &call);
	}
	return error;
}

static tvm_crt_error_t init_server(struct minrpc_server *server, struct minrpc_cursor *body)
{
	uint32_t size = minrpc_take_size(body);
	const uint8_t *version = minrpc_take(body, size);

	if (version == NULL || size != 5U || memcmp(version, "0.", 2U) != 0 ||
	    memcmp(version + 3, ".0", 2U) != 0 || (version[2] != '7' && version[2] != '8')) {
		return minrpc_server_fail(server, kTvmErrorSessionInvalidState,
					  "expected protocol 0.7.0 or 0.8.0");
	}
	server->dialect = version[2] == '7' ? MINRPC_DIALECT_0_7 : MINRPC_DIALECT_0_8;
	return minrpc_reply_void(server);
}

static tvm_crt_error_t get_global_function(struct minrpc_server *server, const char *name)
{
	uint32_t index;

	/* Unknown: handle 0, which clients of all versions take for "no such function". */
	return minrpc_reply_handle(server, minrpc_global_find(name, &index) == kTvmErrorNoError
						   ? MINRPC_HANDLE_GLOBAL + index
						   : 0U);
}

static tvm_crt_error_t free_handle(struct minrpc_server *server, uintptr_t handle, int64_t type)
{
	tvm_crt_error_t error = kTvmErrorNoError;

	switch (type) {
	case kTVMNDArrayHandle:
		error = minrpc_arena_free(&server->arena, handle, MINRPC_ARENA_NDARRAY);
		break;
	case kTVMPackedFuncHandle:
		if (handle >= MINRPC_HANDLE_EVALUATOR) {
			error = minrpc_evaluator_free(server, handle);
		}
		break;
	case kTVMObjectHandle:
	case kTVMModuleHandle: /* the system library stays */
		break;
	default:
		return minrpc_server_fail(server, kTvmErrorFunctionCallWrongArgType,
					  "bad type code %u", (unsigned int)type);
	}
	if (error != kTvmErrorNoError) {
		return minrpc_fail_handle(server, "handle", handle);
	}
	return minrpc_reply_void(server);
}

static tvm_crt_error_t allocate(struct minrpc_server *server, uint32_t size, uint32_t alignment)
{
	void *data = NULL;

	if (alignment > 32768U || __builtin_popcount(alignment) != 1) {
		return minrpc_server_fail(server, kTvmErrorPlatformNoMemory, "bad alignment %u",
					  (unsigned int)alignment);
	}
	if (minrpc_arena_alloc(&server->arena, size, alignment, MINRPC_ARENA_DATA, &data) !=
	    kTvmErrorNoError) {
		return minrpc_server_fail_memory(server, size);
	}
	return minrpc_reply_handle(server, (uintptr_t)data);
}

static tvm_crt_error_t allocate_tensor(struct minrpc_server *server, const DLTensor *tensor)
{
	uint32_t size;

	if (!minrpc_tensor_size(tensor, &size)) {
		return minrpc_fail_shape(server);
	}
	return allocate(server, size, MINRPC_TENSOR_ALIGNMENT);
}

static tvm_crt_error_t free_data(struct minrpc_server *server, uintptr_t handle)
{
	if (minrpc_arena_free(&server->arena, handle, MINRPC_ARENA_DATA) != kTvmErrorNoError) {
		return minrpc_fail_handle(server, "allocation", handle);
	}
	return minrpc_reply_void(server);
}

static uintptr_t handle_in(const TVMValue *value)
{
	return minrpc_handle((uint64_t)value->v_int64);
}

static uint32_t size_in(const TVMValue *value)
{
	return (uint64_t)value->v_int64 > UINT32_MAX ? UINT32_MAX : (uint32_t)value->v_int64;
}

static tvm_crt_error_t system_call(struct minrpc_server *server, uint32_t code,
				   struct minrpc_cursor *body)
{
	struct minrpc_args args;
	const char *letters = syscall_args[code - MINRPC_RPC_GET_GLOBAL_FUNC];
	tvm_crt_error_t error = decode(server, body, &args);
	const TVMValue *values = args.values;

	if (error == kTvmErrorNoError && letters != NULL) {
		error = minrpc_check_args(server, "system call", &args, letters);
	}
	if (error != kTvmErrorNoError) {
		return error;
	}
	switch (code) {
	case MINRPC_RPC_GET_GLOBAL_FUNC:
		return get_global_function(server, values[0].v_str);
	case MINRPC_RPC_FREE_HANDLE:
		return free_handle(server, handle_in(&values[0]), values[1].v_int64);
	case MINRPC_RPC_DEV_ALLOC_DATA:
		if (server->dialect == MINRPC_DIALECT_UNKNOWN) {
			server->dialect = MINRPC_DIALECT_0_7;
		}
		return allocate(server, size_in(&values[1]), size_in(&values[2]));
	case MINRPC_RPC_DEV_ALLOC_DATA_WITH_SCOPE:
		return allocate_tensor(server, values[0].v_handle);
	case MINRPC_RPC_DEV_FREE_DATA:
		return free_data(server, handle_in(&values[1]));
	case MINRPC_RPC_COPY_AMONG_REMOTE:
		return minrpc_copy_among_remote(server, &args);
	case MINRPC_RPC_DEV_CREATE_STREAM:
	case MINRPC_RPC_DEV_GET_CURRENT_STREAM:
		return minrpc_reply_handle(server, 0U);
	case MINRPC_RPC_DEV_SET_DEVICE:
	case MINRPC_RPC_DEV_GET_ATTR:
		return minrpc_server_fail(server, kTvmErrorFunctionCallNotImplemented,
					  "not supported");
	default: /* the streams, of which there is one */
		return minrpc_reply_void(server);
	}
}

tvm_crt_error_t minrpc_request(struct minrpc_server *server, struct minrpc_cursor *packet)
{
	uint32_t code = minrpc_take_u32(packet);

	switch (code) {
	case MINRPC_RPC_SHUTDOWN:
		/* No answer is expected. Only the session ends: the next one is served. */
		server->session.established = false;
		return kTvmErrorNoError;
	case MINRPC_RPC_INIT_SERVER:
		return init_server(server, packet);
	case MINRPC_RPC_CALL_FUNC:
		return call_function(server, packet);
	case MINRPC_RPC_COPY_FROM_REMOTE:
		return minrpc_copy_from_remote(server, packet);
	case MINRPC_RPC_COPY_TO_REMOTE:
		return minrpc_copy_to_remote(server, packet);
	default:
		if (code >= MINRPC_RPC_GET_GLOBAL_FUNC && code <= MINRPC_RPC_DEV_GET_CURRENT_STREAM) {
			return system_call(server, code, packet);
		}
		return minrpc_server_fail(server, kTvmErrorFunctionCallNotImplemented,
					  "unknown RPC code %u", (unsigned int)code);
	}
}
