/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * RPC packets: decodes each request, carries it out and describes its reply.
 */
#include <string.h>

#include "rpc.h"

static bool decode(struct minrpc_server *server, struct minrpc_cursor *body,
		   struct minrpc_args *args)
{
	uint8_t *buffer = server->config->receive_buffer;
	struct minrpc_packed packed;
	enum minrpc_packed_status status;

	packed.wire = *body;
	packed.scratch.at = body->end;
	packed.scratch.end = buffer + server->config->receive_size;
	packed.args = args;
	packed.dialect = server->dialect;
	status = minrpc_packed_decode(&packed);
	server->dialect = packed.dialect;
#if MINRPC_ASK
	server->scratch = packed.scratch.at;
#endif
	switch (status) {
	case MINRPC_PACKED_OK:
		return true;
	case MINRPC_PACKED_TYPE:
		return minrpc_fail_type(server, packed.culprit);
	case MINRPC_PACKED_SCRATCH:
		return minrpc_fail(server, "arguments outgrow the receive buffer");
	default:
		return minrpc_fail(server, "malformed arguments");
	}
}

static bool call_function(struct minrpc_server *server, struct minrpc_cursor *body)
{
	uintptr_t handle = minrpc_take_handle(body);
	struct minrpc_call call;

	call.server = server;
	return decode(server, body, &call.args) && minrpc_call_handle(handle, &call) &&
	       minrpc_reply_call(server, &call);
}

static bool init_server(struct minrpc_server *server, struct minrpc_cursor *body)
{
	/* in the order of enum minrpc_dialect */
	static const char versions[][6] = {"0.7.0", "0.8.0"};
	uint32_t size = minrpc_take_size(body);
	const uint8_t *version = minrpc_take_bytes(body, size);

	for (uint32_t i = 0U; i < 2U && version != NULL && size == 5U; i++) {
		if (memcmp(version, versions[i], 5U) == 0) {
			server->dialect = (uint8_t)(MINRPC_DIALECT_0_7 + i);
			return minrpc_reply_void(server);
		}
	}
	return minrpc_fail(server, "expected protocol 0.7.0 or 0.8.0");
}

/* ------------------------------------------------- requests with packed arguments */

static uintptr_t handle_in(const TVMValue *value)
{
	return minrpc_handle((uint64_t)value->v_int64);
}

static uint32_t size_in(const TVMValue *value)
{
	return minrpc_size((uint64_t)value->v_int64);
}

/* Returns handle 0 for an unknown name, which all clients take for "no such function". */
static bool get_global_function(struct minrpc_call *call)
{
	const char *name = call->args.values[0].v_str;

	/* TVM's clients look up no name with such a first letter. */
	call->server->own_client |= *name == ':' || *name == 'm';
	return minrpc_return_handle(call, kTVMOpaqueHandle, minrpc_global_find(call->server, name));
}

static bool free_block(struct minrpc_server *server, uintptr_t handle, uint32_t kinds)
{
#if MINRPC_CODE_LOADING
	if (minrpc_arena_free(minrpc_code_arena(server), handle, kinds & MINRPC_ARENA_CODE)) {
		return true;
	}
#endif
	return minrpc_arena_free(&server->arena, handle, kinds) ||
	       minrpc_fail_handle(server, kTVMDLTensorHandle, handle);
}

/*
 * Frees an object by the handle that the client got for it. A function of a module is freed with
 * the module, so nothing is done.
 */
static bool free_object(struct minrpc_server *server, uintptr_t handle, uint32_t type)
{
	struct minrpc_object *object = minrpc_object_find(server, handle);
	bool function = type == kTVMPackedFuncHandle;

	if (object != NULL && object->type_code == type && handle == object->handle + function) {
		minrpc_object_free(server, object);
		return true;
	}
	/* The system library is never freed. */
	return handle < MINRPC_HANDLE_OBJECT ||
	       (function && minrpc_check_function(server, handle)) ||
	       minrpc_fail_handle(server, (int)type, handle);
}

static bool free_handle(struct minrpc_call *call)
{
	uintptr_t handle = handle_in(&call->args.values[0]);
	uint32_t type = size_in(&call->args.values[1]);

	switch (type) {
	case kTVMNDArrayHandle:
		return free_block(call->server, handle, MINRPC_ARENA_NDARRAY);
	case kTVMPackedFuncHandle:
	case kTVMModuleHandle:
		return free_object(call->server, handle, type);
	case kTVMObjectHandle:
		return true;
	default:
		return minrpc_fail_type(call->server, type);
	}
}

static bool allocate_bytes(struct minrpc_call *call, uint32_t size, uint32_t alignment)
{
	void *data;

	if (alignment - 1U >= 32768U || (alignment & (alignment - 1U)) != 0U) {
		return minrpc_fail(call->server, "bad alignment %u", (unsigned int)alignment);
	}
	data = minrpc_server_alloc(call->server, size, alignment, MINRPC_ARENA_DATA);
	return data != NULL && minrpc_return_handle(call, kTVMOpaqueHandle, (uintptr_t)data);
}

static bool allocate(struct minrpc_call *call)
{
	if (call->server->dialect == MINRPC_DIALECT_UNKNOWN) {
		call->server->dialect = MINRPC_DIALECT_0_7;
	}
	return allocate_bytes(call, size_in(&call->args.values[1]), size_in(&call->args.values[2]));
}

static bool allocate_tensor(struct minrpc_call *call)
{
	const DLTensor *tensor = call->args.values[0].v_handle;
	uint32_t size = minrpc_tensor_size(tensor, tensor->shape);

	if (size == MINRPC_NO_SIZE) {
		return minrpc_fail_shape(call->server);
	}
	return allocate_bytes(call, size, MINRPC_TENSOR_ALIGNMENT);
}

static bool free_data(struct minrpc_call *call)
{
	return free_block(call->server, handle_in(&call->args.values[1]),
			  MINRPC_ARENA_DATA | MINRPC_ARENA_CODE);
}

/* The only stream has handle 0 and is always synchronized. */
static bool return_stream(struct minrpc_call *call)
{
	return minrpc_return_handle(call, kTVMOpaqueHandle, 0U);
}

static bool do_nothing(struct minrpc_call *call)
{
	(void)call;
	return true;
}

static bool refuse(struct minrpc_call *call)
{
	return minrpc_fail(call->server, "not supported");
}

/* Only error texts need a request's name. */
#if MINRPC_ERROR_TEXTS
#define NAME(name) name
#else
#define NAME(name) ""
#endif

#define FIRST MINRPC_RPC_GET_GLOBAL_FUNC

static const struct minrpc_function requests[] = {
	[MINRPC_RPC_GET_GLOBAL_FUNC - FIRST] = {NAME("GetGlobalFunc"), "s", get_global_function},
	[MINRPC_RPC_FREE_HANDLE - FIRST] = {NAME("FreeHandle"), "hi", free_handle},
	[MINRPC_RPC_DEV_SET_DEVICE - FIRST] = {NAME("DevSetDevice"), "d", refuse},
	[MINRPC_RPC_DEV_GET_ATTR - FIRST] = {NAME("DevGetAttr"), "di", refuse},
	[MINRPC_RPC_DEV_ALLOC_DATA - FIRST] = {NAME("DevAllocData"), "diiy", allocate},
	[MINRPC_RPC_DEV_FREE_DATA - FIRST] = {NAME("DevFreeData"), "dh", free_data},
	[MINRPC_RPC_DEV_STREAM_SYNC - FIRST] = {NAME("DevStreamSync"), "dh", do_nothing},
	[MINRPC_RPC_COPY_AMONG_REMOTE - FIRST] = {NAME("CopyAmongRemote"), NULL,
						  minrpc_copy_among_remote},
	[MINRPC_RPC_DEV_ALLOC_DATA_WITH_SCOPE - FIRST] = {NAME("DevAllocDataWithScope"), "tz",
							  allocate_tensor},
	[MINRPC_RPC_DEV_CREATE_STREAM - FIRST] = {NAME("DevCreateStream"), "d", return_stream},
	[MINRPC_RPC_DEV_FREE_STREAM - FIRST] = {NAME("DevFreeStream"), "dh", do_nothing},
	[MINRPC_RPC_DEV_SET_STREAM - FIRST] = {NAME("DevSetStream"), "dh", do_nothing},
	[MINRPC_RPC_DEV_GET_CURRENT_STREAM - FIRST] = {NAME("DevGetCurrentStream"), "d",
						       return_stream},
};

static bool run_request(struct minrpc_server *server, const struct minrpc_function *request,
			struct minrpc_cursor *body)
{
	struct minrpc_callee callee;
	struct minrpc_call call;

	callee.function = request;
	call.server = server;
	call.callee = &callee;
	call.value.v_int64 = 0;
	call.type_code = kTVMNullptr;
	/* Here a tensor is only a description. Its data is bound where it is used. */
	return decode(server, body, &call.args) &&
	       (request->arguments == NULL || minrpc_check_arguments(&call, request->arguments)) &&
	       request->run(&call) && minrpc_reply_value(server, &call);
}

/* ------------------------------------------------------------------- all requests */

bool minrpc_request(struct minrpc_server *server, struct minrpc_cursor *packet)
{
	uint32_t code = minrpc_take_u32(packet);

	switch (code) {
	case MINRPC_RPC_SHUTDOWN:
		/* There is no answer. Only the session ends; the device serves the next session. */
		server->session.established = false;
		minrpc_forget_session(server);
		return true;
	case MINRPC_RPC_INIT_SERVER:
		return init_server(server, packet);
	case MINRPC_RPC_CALL_FUNC:
		return call_function(server, packet);
	case MINRPC_RPC_COPY_FROM_REMOTE:
		return minrpc_copy_from_remote(server, packet);
	case MINRPC_RPC_COPY_TO_REMOTE:
		return minrpc_copy_to_remote(server, packet);
	default:
		if (code - FIRST < sizeof(requests) / sizeof(requests[0])) {
			return run_request(server, &requests[code - FIRST], packet);
		}
		return minrpc_fail(server, "unknown RPC code %u", (unsigned int)code);
	}
}
