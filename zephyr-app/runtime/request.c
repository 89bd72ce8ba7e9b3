/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * RPC packets: what each code carries and what it is answered.
 */
#include <string.h>

#include "rpc.h"

#define DEVICE MINRPC_ARG_DEVICE
#define DTYPE MINRPC_ARG_DTYPE
#define HANDLE MINRPC_ARG_HANDLE
#define INT MINRPC_ARG_INT
#define TENSOR MINRPC_ARG_TENSOR

/* What the codes from GetGlobalFunc (9) on take, one behind another. */
static const char forms[] = MINRPC_ARG_STRING "\0"
			    HANDLE INT "\0"
			    DEVICE "\0"
			    DEVICE INT "\0"
			    DEVICE INT INT DTYPE "\0"
			    DEVICE HANDLE "\0"
			    DEVICE HANDLE "\0"
			    TENSOR TENSOR HANDLE "\0"
			    TENSOR MINRPC_ARG_STRING_OR_NULL "\0"
			    DEVICE "\0"
			    DEVICE HANDLE "\0"
			    DEVICE HANDLE "\0"
			    DEVICE;

static const char *form_of(uint32_t code, const struct minrpc_args *args)
{
	if (code == MINRPC_RPC_COPY_AMONG_REMOTE && args->count == MINRPC_COPY_AMONG_0_7) {
		return HANDLE INT HANDLE INT INT DEVICE DEVICE DTYPE HANDLE;
	}
	return minrpc_nth(forms, code - MINRPC_RPC_GET_GLOBAL_FUNC);
}

static bool decode(struct minrpc_server *server, struct minrpc_cursor *body,
		   struct minrpc_args *args)
{
	uint8_t *buffer = server->config->receive_buffer;
	struct minrpc_packed packed = {
		.wire = *body,
		.scratch = {body->end, buffer + server->config->receive_size},
		.args = args,
		.dialect = server->dialect,
	};
	enum minrpc_packed_status status = minrpc_packed_decode(&packed);

	server->dialect = packed.dialect;
	switch (status) {
	case MINRPC_PACKED_OK:
		return true;
	case MINRPC_PACKED_TYPE:
		return minrpc_fail_type(server, packed.culprit);
	case MINRPC_PACKED_SCRATCH:
		return minrpc_server_fail(server, "arguments outgrow the receive buffer");
	default:
		return minrpc_server_fail(server, "malformed arguments");
	}
}

static bool call_function(struct minrpc_server *server, struct minrpc_cursor *body,
			  struct minrpc_call *call)
{
	uintptr_t handle = minrpc_take_handle(body);

	if (!decode(server, body, &call->args) || !minrpc_call_handle(server, handle, call)) {
		return false;
	}
	return minrpc_reply_call(server, call);
}

static bool init_server(struct minrpc_server *server, struct minrpc_cursor *body)
{
	static const char versions[][6] = {"0.7.0", "0.8.0"}; /* in the order of the dialects */
	uint32_t size = minrpc_take_size(body);
	const uint8_t *version = minrpc_take(body, size);

	for (uint32_t i = 0U; i < 2U && version != NULL && size == 5U; i++) {
		if (memcmp(version, versions[i], 5U) == 0) {
			server->dialect = (uint8_t)(MINRPC_DIALECT_0_7 + i);
			return minrpc_reply_void(server);
		}
	}
	return minrpc_server_fail(server, "expected protocol 0.7.0 or 0.8.0");
}

static bool free_block(struct minrpc_server *server, uintptr_t handle, enum minrpc_arena_kind kind)
{
	if (minrpc_arena_free(&server->arena, handle, kind) != kTvmErrorNoError) {
		return minrpc_fail_handle(server, kTVMDLTensorHandle, handle);
	}
	return minrpc_reply_void(server);
}

static bool free_handle(struct minrpc_server *server, uintptr_t handle, uint32_t type)
{
	switch (type) {
	case kTVMNDArrayHandle:
		return free_block(server, handle, MINRPC_ARENA_NDARRAY);
	case kTVMPackedFuncHandle:
		if (handle >= MINRPC_HANDLE_EVALUATOR && !minrpc_evaluator_free(server, handle)) {
			return false;
		}
		break;
	case kTVMObjectHandle:
	case kTVMModuleHandle: /* the system library stays */
		break;
	default:
		return minrpc_fail_type(server, type);
	}
	return minrpc_reply_void(server);
}

static bool allocate(struct minrpc_server *server, uint32_t size, uint32_t alignment)
{
	void *data;

	if (alignment - 1U >= 32768U || (alignment & (alignment - 1U)) != 0U) {
		return minrpc_server_fail(server, "bad alignment %u", (unsigned int)alignment);
	}
	data = minrpc_server_alloc(server, size, alignment, MINRPC_ARENA_DATA);
	if (data == NULL) {
		return false;
	}
	return minrpc_reply_handle(server, (uintptr_t)data);
}

static bool allocate_tensor(struct minrpc_server *server, const DLTensor *tensor)
{
	uint32_t size = minrpc_tensor_size(tensor, tensor->shape);

	if (size == MINRPC_NO_SIZE) {
		return minrpc_fail_shape(server);
	}
	return allocate(server, size, MINRPC_TENSOR_ALIGNMENT);
}

static uintptr_t handle_in(const TVMValue *value)
{
	return minrpc_handle((uint64_t)value->v_int64);
}

static uint32_t size_in(const TVMValue *value)
{
	return minrpc_size((uint64_t)value->v_int64);
}

/* Of a system call: packed as those of a function are. */
static bool take_args(struct minrpc_server *server, uint32_t code, struct minrpc_cursor *body,
		      struct minrpc_args *args)
{
	return decode(server, body, args) &&
	       minrpc_check_args(server, "system call", args, form_of(code, args));
}

bool minrpc_request(struct minrpc_server *server, struct minrpc_cursor *packet)
{
	uint32_t code = minrpc_take_u32(packet);
	struct minrpc_call call;
	const TVMValue *values = NULL;

	if (code >= MINRPC_RPC_GET_GLOBAL_FUNC && code <= MINRPC_RPC_DEV_GET_CURRENT_STREAM) {
		if (!take_args(server, code, packet, &call.args)) {
			return false;
		}
		values = call.args.values;
	}
	switch (code) {
	case MINRPC_RPC_SHUTDOWN:
		/* No answer is expected. Only the session ends: the next one is served. */
		server->session.established = false;
		return true;
	case MINRPC_RPC_INIT_SERVER:
		return init_server(server, packet);
	case MINRPC_RPC_CALL_FUNC:
		return call_function(server, packet, &call);
	case MINRPC_RPC_COPY_FROM_REMOTE:
		return minrpc_copy_from_remote(server, packet);
	case MINRPC_RPC_COPY_TO_REMOTE:
		return minrpc_copy_to_remote(server, packet);
	case MINRPC_RPC_GET_GLOBAL_FUNC:
		/* Unknown: handle 0, which clients of all versions take for "no such function". */
		return minrpc_reply_handle(server, minrpc_global_find(&server->config->library,
								      values[0].v_str));
	case MINRPC_RPC_FREE_HANDLE:
		return free_handle(server, handle_in(&values[0]), size_in(&values[1]));
	case MINRPC_RPC_DEV_ALLOC_DATA:
		if (server->dialect == MINRPC_DIALECT_UNKNOWN) {
			server->dialect = MINRPC_DIALECT_0_7;
		}
		return allocate(server, size_in(&values[1]), size_in(&values[2]));
	case MINRPC_RPC_DEV_ALLOC_DATA_WITH_SCOPE:
		return allocate_tensor(server, values[0].v_handle);
	case MINRPC_RPC_DEV_FREE_DATA:
		return free_block(server, handle_in(&values[1]), MINRPC_ARENA_DATA);
	case MINRPC_RPC_COPY_AMONG_REMOTE:
		return minrpc_copy_among_remote(server, &call.args);
	case MINRPC_RPC_DEV_CREATE_STREAM:
	case MINRPC_RPC_DEV_GET_CURRENT_STREAM:
		return minrpc_reply_handle(server, 0U);
	case MINRPC_RPC_DEV_STREAM_SYNC: /* there is one stream */
	case MINRPC_RPC_DEV_FREE_STREAM:
	case MINRPC_RPC_DEV_SET_STREAM:
		return minrpc_reply_void(server);
	case MINRPC_RPC_DEV_SET_DEVICE:
	case MINRPC_RPC_DEV_GET_ATTR:
		return minrpc_server_fail(server, "not supported");
	default:
		return minrpc_server_fail(server, "unknown RPC code %u", (unsigned int)code);
	}
}
